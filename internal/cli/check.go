package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/inspection"
	"github.com/messaginginbox/operator/internal/manifest"
	"github.com/messaginginbox/operator/internal/schedule"
)

func newCheckCommand() *cobra.Command {
	var (
		files       []string
		output      string
		databaseURL string
	)
	command := &cobra.Command{
		Use:   "check -f FILE...",
		Short: "Evaluate manifests as the operator would, without a cluster",
		Long: `Evaluates MessagingInbox manifests with the operator's own code and prints the
conditions that they would get. With --database-url, or the environment variable
INBOX_DATABASE_URL, it also inspects that database, and changes nothing there; the variable
INBOX_DATABASE_CA may hold the certificate authorities of the server, in PEM.

Exit code 0: Ready would be True for every resource. Exit code 1: it would not, or a
manifest would be refused.`,
		Example: `  inbox check -f inbox.yaml
  inbox check -f orders.yaml -f shop.yaml -o json
  INBOX_DATABASE_URL=postgresql://... inbox check -f inbox.yaml`,
		RunE: func(command *cobra.Command, arguments []string) error {
			inboxes, err := readManifests(append(files, arguments...))
			if err != nil {
				return err
			}
			if databaseURL == "" {
				databaseURL = os.Getenv(databaseURLVariable)
			}
			return printChecks(command.OutOrStdout(), output, checkAll(command.Context(), inboxes, databaseURL))
		},
	}
	addManifestFlags(command, &files, &output)
	command.Flags().StringVar(&databaseURL, "database-url", "", "also inspect this database; prefer the environment variable "+databaseURLVariable+", since arguments show in the list of processes")
	return command
}

// check is the verdict on one resource.
type check struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Ready     bool   `json:"ready"`
	// DatabaseInspected is false when the verdict is about the manifest alone.
	DatabaseInspected bool               `json:"databaseInspected"`
	Conditions        []metav1.Condition `json:"conditions"`
}

func checkAll(ctx context.Context, inboxes []*v1alpha1.MessagingInbox, databaseURL string) []check {
	checks := make([]check, 0, len(inboxes))
	for _, inbox := range inboxes {
		conditions := evaluate(ctx, inbox, databaseURL)
		checks = append(checks, check{
			Namespace:         inbox.Namespace,
			Name:              inbox.Name,
			Ready:             meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady),
			DatabaseInspected: databaseURL != "",
			Conditions:        conditions,
		})
	}
	return checks
}

// evaluate judges one manifest, and the database behind the URL unless that is empty.
func evaluate(ctx context.Context, inbox *v1alpha1.MessagingInbox, databaseURL string) []metav1.Condition {
	spec := &inbox.Spec
	var (
		facts assessment.DatabaseFacts
		keys  assessment.BusinessKeyFacts
	)
	if databaseURL != "" {
		facts, keys = inspectDatabase(ctx, spec, databaseURL)
	}
	pruning := assessment.PruningFacts{ScheduleError: scheduleError(string(spec.Pruning.Schedule), spec.Pruning.TimeZone)}
	var drills assessment.DrillFacts
	if ticks := spec.Drill.Schedule; ticks != nil {
		drills.ScheduleError = scheduleError(string(*ticks), spec.Pruning.TimeZone)
	}
	safe := assessment.RetentionSafe(spec, assessment.Requirement(spec))
	if safe.Status != metav1.ConditionTrue {
		pruning.Blocker = &safe
	}
	conditions := []metav1.Condition{
		safe,
		assessment.DatabaseReachable(facts),
		assessment.SchemaBeforeApply(spec, facts),
		assessment.PruningHealthy(spec, pruning),
		assessment.CoverageComplete(spec),
		assessment.TransportsObserved(spec, assessment.Observations{}), // a check goes to no broker
		assessment.TransactionShared(spec, nil),                        // a manifest has no more than the names of the handlers' Secrets
		assessment.BusinessKeysEnforced(spec, keys),
		assessment.ContractProven(spec, drills),
	}
	return append(assessment.Summarize(conditions, facts.Connection, facts.Schema.Failure), conditions...)
}

func scheduleError(expression, timeZone string) *schedule.Error {
	_, err := schedule.Parse(expression, timeZone)
	var refused *schedule.Error
	if err != nil && !errors.As(err, &refused) {
		refused = &schedule.Error{Reason: v1alpha1.ReasonInvalidSchedule, Message: err.Error()}
	}
	return refused
}

// inspectDatabase also tells what is wrong with the URL, as the operator would of a Secret.
func inspectDatabase(ctx context.Context, spec *v1alpha1.MessagingInboxSpec, url string) (facts assessment.DatabaseFacts, keys assessment.BusinessKeyFacts) {
	facts.Inspected = true
	target, err := parseTarget(url)
	if err != nil {
		failure := database.Classify(err)
		failure.Message = "The database URL of the check: " + failure.Message
		facts.Connection = &failure
		return facts, keys
	}
	facts.Target = target.String()
	connection, err := target.Connect(ctx, database.Limits{})
	if err != nil {
		failure := database.Classify(err)
		facts.Connection = &failure
		return facts, keys
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }() // nothing was written
	if facts.Connection = inspection.Server(ctx, connection); facts.Connection == nil {
		facts.Schema = inspection.Schema(ctx, connection, spec)
		keys = inspection.BusinessKeys(ctx, connection, spec)
	}
	return facts, keys
}

func printChecks(out io.Writer, format string, checks []check) error {
	allReady := true
	for _, one := range checks {
		allReady = allReady && one.Ready
	}
	var err error
	if format == outputJSON {
		err = printJSON(out, struct {
			Ready   bool    `json:"ready"`
			Inboxes []check `json:"inboxes"`
		}{allReady, checks})
	} else {
		err = printCheckTable(out, checks)
	}
	if err != nil {
		return err
	}
	if !allReady {
		return &exitError{code: exitFailure, err: errors.New("the condition Ready would not be True")}
	}
	return nil
}

func printCheckTable(out io.Writer, checks []check) error {
	for i, one := range checks {
		if i > 0 {
			_, _ = fmt.Fprintln(out) // the table's own writer reports a broken output
		}
		_, _ = fmt.Fprintln(out, qualified(one.Namespace, one.Name))
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "CONDITION\tSTATUS\tREASON\tMESSAGE")
		for _, condition := range one.Conditions {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", condition.Type, condition.Status, condition.Reason, oneLine(condition.Message))
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("printing the conditions: %w", err)
		}
	}
	return nil
}

// readManifests reads every file, and joins what is wrong in any of them.
func readManifests(files []string) ([]*v1alpha1.MessagingInbox, error) {
	if len(files) == 0 {
		return nil, errors.New("name at least one manifest with -f FILE")
	}
	var (
		inboxes []*v1alpha1.MessagingInbox
		broken  []error
	)
	for _, file := range files {
		read, err := manifest.Read(file)
		inboxes = append(inboxes, read...)
		if err != nil {
			broken = append(broken, err)
		}
	}
	return inboxes, errors.Join(broken...)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	return nil
}
