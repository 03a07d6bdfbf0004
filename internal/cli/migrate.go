package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
)

// migration is what the command migrate is told.
type migration struct {
	target
	approvedPlan string
	buildTimeout time.Duration
	dryRun       bool
}

func newMigrateCommand() *cobra.Command {
	m := &migration{}
	command := &cobra.Command{
		Use:   "migrate [--approved-plan DIGEST]",
		Short: "Bring the inbox table to the contract, by additive steps only",
		Long: `Compares the table with the contract, and applies the steps that are missing: create
the table, build an index concurrently. It alters and drops nothing that is there, but
an invalid index that an interrupted build left.

With --dry-run, or without --approved-plan, it only prints the plan and its digest. The
connection URL comes from the environment variable ` + databaseURLVariable + `.

Exit code 0: the table keeps the contract, or the plan was printed. 4: refused, since
the table needs a person. 1: an error.`,
		Example: `  inbox migrate
  inbox migrate --approved-plan sha256:...`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return m.run(command) },
	}
	m.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&m.approvedPlan, "approved-plan", "", "digest of the plan that may be applied")
	flags.DurationVar(&m.buildTimeout, "build-timeout", 30*time.Minute, "longest time that one index build may take")
	flags.BoolVar(&m.dryRun, "dry-run", false, "only print the plan")
	return command
}

func (m *migration) run(command *cobra.Command) error {
	ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	connection, err := m.connect(ctx, database.Limits{ApplicationName: "messaging-inbox migrate"})
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }() // every step is done or undone by now

	out := command.OutOrStdout()
	if m.dryRun || m.approvedPlan == "" {
		observed, inspectErr := dbschema.Inspect(ctx, connection, m.contract)
		if inspectErr != nil {
			return errors.New(dbschema.Classify(inspectErr).Message)
		}
		return printPlan(out, dbschema.Compare(m.contract, observed))
	}
	observed, err := dbschema.Apply(ctx, connection, m.contract, m.approvedPlan, dbschema.ApplyOptions{
		BuildTimeout: m.buildTimeout,
		Progress: func(progress dbschema.BuildProgress) {
			_, _ = fmt.Fprintf(command.ErrOrStderr(), "%s: %d of %d blocks\n", progress.Phase, progress.BlocksDone, progress.BlocksTotal)
		},
	})
	if err != nil {
		return errors.New(dbschema.Classify(err).Message)
	}
	return printPlan(out, dbschema.Compare(m.contract, observed))
}

func printPlan(out io.Writer, verdict dbschema.Verdict) error {
	for _, finding := range verdict.Findings {
		_, _ = fmt.Fprintf(out, "%s: %s\n", finding.Reason, finding.Message)
	}
	for _, step := range verdict.Plan.Steps {
		_, _ = fmt.Fprintf(out, "\n-- %s\n%s;\n", step.Description, step.SQL)
	}
	switch {
	case !verdict.Plan.Empty():
		_, _ = fmt.Fprintf(out, "\nApply with --approved-plan %s\n", verdict.Plan.Digest())
	case verdict.Met():
		_, _ = fmt.Fprintln(out, "The table keeps the contract.")
	default:
		return &exitError{code: exitRefused, err: errors.New("the table needs a person; nothing was changed")}
	}
	return nil
}
