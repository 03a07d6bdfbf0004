package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// windowCommand is what the command window is told.
type windowCommand struct {
	*cluster
	files  []string
	output string
}

func newWindowCommand() *cobra.Command {
	w := &windowCommand{cluster: newCluster()}
	command := &cobra.Command{
		Use:   "window (-f FILE... | [NAME])",
		Short: "Print how long a message of each transport can come back, term by term",
		Long: `Prints each transport's redelivery window with every term that entered it, its value
and where it came from (default, declared, dsn or observed), and the retention that
they require together. With -f it reads manifests and needs no cluster; otherwise it reads
the named resource, or all of the namespace, from the cluster that kubectl would use, and
what the operator has observed counts as it does in the status. With -o json, one object is
printed for each resource.`,
		Example: `  inbox window -f inbox.yaml
  kubectl inbox window orders -n shop`,
		ValidArgsFunction: w.completeName,
		RunE: func(command *cobra.Command, arguments []string) error {
			inboxes, err := w.read(command, arguments)
			if err != nil {
				return err
			}
			for i, inbox := range inboxes {
				if i > 0 && w.output != outputJSON {
					_, _ = fmt.Fprintln(command.OutOrStdout()) // printWindow reports a broken output
				}
				if err := printWindow(command.OutOrStdout(), w.output, inbox); err != nil {
					return err
				}
			}
			return nil
		},
	}
	addManifestFlags(command, &w.files, &w.output)
	w.addFlags(command)
	w.addAllNamespacesFlag(command)
	complete(command, "output", oneOf(outputTable, outputJSON))
	return command
}

// read takes the resources from the files, and without one from the cluster.
func (w *windowCommand) read(command *cobra.Command, arguments []string) ([]*v1alpha1.MessagingInbox, error) {
	switch {
	case len(w.files) > 0:
		return readManifests(append(w.files, arguments...)) // -f a.yaml b.yaml, as a shell expands -f *.yaml
	case len(arguments) > 1:
		return nil, errors.New("name one MessagingInbox, or manifests with -f FILE")
	case len(arguments) == 1 && w.allNamespaces:
		return nil, errNamedAcrossNamespaces
	case len(arguments) == 1 && isFile(arguments[0]):
		return nil, fmt.Errorf("%[1]s is a file: to read it, say -f %[1]s", arguments[0])
	}
	connected, err := w.connect()
	if err != nil {
		return nil, err
	}
	if len(arguments) == 1 {
		return connected.onlyInbox(command.Context(), arguments[0])
	}
	list, err := connected.inboxes(command.Context(), w.allNamespaces)
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, errors.New(noneFound(connected, w.allNamespaces))
	}
	inboxes := make([]*v1alpha1.MessagingInbox, 0, len(list.Items))
	for i := range list.Items {
		inboxes = append(inboxes, &list.Items[i])
	}
	return inboxes, nil
}

// isFile says whether an argument looks like a manifest rather than a resource.
func isFile(argument string) bool {
	extension := filepath.Ext(argument)
	return extension == ".yaml" || extension == ".yml" || extension == ".json" || strings.Contains(argument, "/") || argument == "-"
}

func printWindow(out io.Writer, format string, inbox *v1alpha1.MessagingInbox) error {
	requirement, _ := assessment.ObservedRequirement(&inbox.Spec, assessment.LastSeen(inbox, time.Now()))
	safe := retentionSafe(inbox, requirement)
	if format == outputJSON {
		return printJSON(out, windowDocument(inbox, requirement, safe.Status == metav1.ConditionTrue))
	}
	return printWindowTable(out, inbox, requirement, safe)
}

// retentionSafe is the operator's own condition when it is about this spec: the operator
// also knows what lies in failure transports, and who else deletes.
func retentionSafe(inbox *v1alpha1.MessagingInbox, requirement redelivery.Requirement) metav1.Condition {
	told := meta.FindStatusCondition(inbox.Status.Conditions, v1alpha1.ConditionRetentionSafe)
	if told != nil && told.ObservedGeneration == inbox.Generation {
		return *told
	}
	return assessment.RetentionSafe(&inbox.Spec, requirement)
}

// windowJSON is the documented shape of "inbox window -o json". A duration that is
// unbounded is null.
type windowJSON struct {
	Name              string          `json:"name"`
	Namespace         string          `json:"namespace,omitempty"`
	Required          requiredJSON    `json:"required"`
	DecidingTransport string          `json:"decidingTransport"`
	Safe              bool            `json:"safe"`
	Transports        []transportJSON `json:"transports"`
}

type requiredJSON struct {
	Seconds           *float64 `json:"seconds"`
	WithMarginSeconds *float64 `json:"withMarginSeconds"`
}

type transportJSON struct {
	Name       string     `json:"name"`
	Covered    bool       `json:"covered"`
	Role       string     `json:"role,omitempty"`
	Seconds    *float64   `json:"seconds"`
	Terms      []termJSON `json:"terms"`
	Undeclared []string   `json:"undeclared"`
}

type termJSON struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Origin  string  `json:"origin"`
}

func windowDocument(inbox *v1alpha1.MessagingInbox, requirement redelivery.Requirement, safe bool) windowJSON {
	withMargin, bounded := requirement.WithMargin(int64(inbox.Spec.Retention.MarginPercent))
	document := windowJSON{
		Name:      inbox.Name,
		Namespace: inbox.Namespace,
		Required: requiredJSON{
			Seconds:           boundedSeconds(requirement.Required, requirement.Bounded),
			WithMarginSeconds: boundedSeconds(withMargin, bounded),
		},
		DecidingTransport: requirement.Deciding,
		Safe:              safe,
		Transports:        []transportJSON{},
	}
	roles := assessment.Roles(&inbox.Spec)
	for _, window := range requirement.Windows {
		transport := transportJSON{
			Name:       window.Transport,
			Covered:    window.Covered,
			Role:       roles[window.Transport].Is,
			Seconds:    boundedSeconds(window.Duration, window.Bounded),
			Terms:      []termJSON{},
			Undeclared: append([]string{}, window.Undeclared...),
		}
		for _, term := range window.Terms {
			transport.Terms = append(transport.Terms, termJSON{Name: term.Name, Seconds: term.Value.Seconds(), Origin: string(term.Origin)})
		}
		document.Transports = append(document.Transports, transport)
	}
	return document
}

func boundedSeconds(d time.Duration, bounded bool) *float64 {
	if !bounded {
		return nil
	}
	seconds := d.Seconds()
	return &seconds
}

func printWindowTable(out io.Writer, inbox *v1alpha1.MessagingInbox, requirement redelivery.Requirement, safe metav1.Condition) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "%s\n\n", qualified(inbox.Namespace, inbox.Name))
	_, _ = fmt.Fprintln(table, "TRANSPORT\tTERM\tVALUE\tORIGIN")
	roles := assessment.Roles(&inbox.Spec)
	var notCovered []string
	for _, window := range requirement.Windows {
		name := window.Transport
		if role, is := roles[name]; is {
			notCovered = append(notCovered, fmt.Sprintf("  %s: %s: %s.", name, role.Is, role.Meaning))
			name += " (not covered)"
		}
		for _, term := range window.Terms {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", name, term.Name, assessment.Human(term.Value), term.Origin)
			name = ""
		}
		for _, field := range window.Undeclared {
			_, _ = fmt.Fprintf(table, "%s\t%s\tunbounded\tundeclared\n", name, field)
			name = ""
		}
		_, _ = fmt.Fprintf(table, "%s\twindow\t%s\tsum\n", name, humanOr(window.Duration, window.Bounded))
	}
	if len(notCovered) > 0 {
		_, _ = fmt.Fprintf(table, "\nNot covered:\n%s\n", strings.Join(notCovered, "\n"))
	}
	withMargin, bounded := requirement.WithMargin(int64(inbox.Spec.Retention.MarginPercent))
	_, _ = fmt.Fprintf(table, "\nRequired: %s, with a margin of %d %%: %s\n", humanOr(requirement.Required, requirement.Bounded), inbox.Spec.Retention.MarginPercent, humanOr(withMargin, bounded))
	_, _ = fmt.Fprintf(table, "RetentionSafe: %s (%s). %s\n", safe.Status, safe.Reason, safe.Message)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the windows: %w", err)
	}
	return nil
}

func humanOr(d time.Duration, bounded bool) string {
	if !bounded {
		return "unbounded"
	}
	return assessment.Human(d)
}
