package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/pruner"
)

// pruning is what the command prune is told.
type pruning struct {
	target
	guard             guard
	options           pruner.Options
	terminationLog    string
	timeLimitExitCode int
}

func newPruneCommand() *cobra.Command {
	p := &pruning{}
	command := &cobra.Command{
		Use:   "prune --retention DURATION --required-window DURATION",
		Short: "Delete expired proofs from the inbox table",
		Long: `Deletes the records that are older than the retention, in short transactions, and
never one at or inside it. It refuses when the retention is shorter than the required
window, which "inbox window" computes from a manifest.

With --guard it first reads which messages still wait in those queues, and keeps their
proofs however old they are. When they are too many to compare it refuses.

The connection URL comes from the environment variable ` + databaseURLVariable + `, and certificate
authorities in PEM, when the server's is not a public one, from ` + databaseCAVariable + `.
The report is one JSON object on standard output.

Exit code 0: nothing expired is left. 3: stopped by its time limit or a signal, with work
left for the next run. 4: refused. 1: an error.`,
		Example: `  inbox prune --retention 168h --required-window 140h --dry-run
  inbox prune --retention 168h --required-window 140h --schema shop --max-duration 5m`,
		Args: noResource("prune %s --now"),
		RunE: func(command *cobra.Command, _ []string) error { return p.run(command) },
	}
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		if strings.Contains(err.Error(), "--now") { // the plugin's flag
			return fmt.Errorf("%w: %w", err, onADatabase(command, "prune NAME --now"))
		}
		return err
	})
	p.addFlags(command)
	return command
}

func (p *pruning) addFlags(command *cobra.Command) {
	p.target.addFlags(command)
	flags := command.Flags()
	flags.DurationVar(&p.options.Retention, "retention", 0, "how long a proof is kept, counted from its processed-at time (required)")
	flags.DurationVar(&p.options.Required, "required-window", 0, "the longest time after which a message can come back, with its margin; 0s when none can (required)")
	flags.StringArrayVar(&p.options.Transports, "transport", nil, "a transport whose proofs may be deleted, since its window entered --required-window; may be repeated (default: all transports)")
	flags.IntVar(&p.options.BatchSize, "batch-size", 5000, "the largest number of records that one transaction deletes")
	flags.DurationVar(&p.options.MaxDuration, "max-duration", 10*time.Minute, "time after which the run stops and leaves the rest to the next one")
	flags.DurationVar(&p.options.Pace, "pace", 10*time.Millisecond, "pause between two transactions")
	flags.DurationVar(&p.options.MaxReplicaLag, "max-replica-lag", 0, "wait while a replica is further behind than this; 0s does not look (needs the role pg_monitor)")
	flags.BoolVar(&p.options.DryRun, "dry-run", false, "count the expired records and delete nothing")
	flags.StringArrayVar(&p.guard.queues, "guard", nil, "a failure transport or outbox whose waiting messages keep their proofs, such as transport=failed&type=redis (also stream, group, table, queueName); its URL is in INBOX_GUARD_0_URL and its certificate authorities, when they are not public ones, in INBOX_GUARD_0_CA; those of the next in INBOX_GUARD_1_URL and INBOX_GUARD_1_CA")
	flags.StringVar(&p.terminationLog, "termination-log", "", "file that the report is also written to, such as /dev/termination-log in a pod")
	flags.IntVar(&p.timeLimitExitCode, "time-limit-exit-code", exitTimeLimit, "exit code when work is left for the next run; a Job that runs again anyway sets 0")
	for _, name := range []string{"retention", "required-window"} {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err) // the flag was defined just above
		}
	}
}

func (p *pruning) run(command *cobra.Command) error {
	if p.timeLimitExitCode < 0 || p.timeLimitExitCode > 125 {
		return fmt.Errorf("--time-limit-exit-code is %d; it must be from 0 to 125", p.timeLimitExitCode)
	}
	ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	p.options.Contract = p.contract
	report, err := p.prune(ctx, newProgressPrinter(command.ErrOrStderr()))
	return errors.Join(p.publish(command, report), p.verdict(report, err))
}

func (p *pruning) prune(ctx context.Context, progress *progressPrinter) (pruner.Report, error) {
	conn, err := p.connect(ctx, database.Limits{ApplicationName: "messaging-inbox prune"})
	if err != nil {
		failure := database.Classify(err)
		return pruner.Report{Result: pruner.ResultFailed, Reason: failure.Reason, Message: failure.Message, DryRun: p.options.DryRun}, err
	}
	var closePools func()
	p.options.Waiting, closePools, err = p.guard.prepare()
	if err != nil {
		report := pruner.Report{Result: pruner.ResultFailed, Reason: pruner.ReasonInvalidOptions, Message: err.Error(), DryRun: p.options.DryRun}
		return report, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	defer closePools()
	report, err := pruner.Prune(ctx, conn, p.options, progress.show)
	progress.finish()
	// What the server did is done; all that is left to lose is the connection.
	_ = conn.Close(context.WithoutCancel(ctx))
	return report, err
}

// publish writes the report to standard output and to the termination log.
func (p *pruning) publish(command *cobra.Command, report pruner.Report) error {
	encoded, err := report.JSON()
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	return publish(command.OutOrStdout(), p.terminationLog, encoded)
}

// verdict is the error with the exit code for the report.
func (p *pruning) verdict(report pruner.Report, err error) error {
	switch report.Result {
	case pruner.ResultDone:
		return nil
	case pruner.ResultTimeLimit:
		if p.timeLimitExitCode == exitDone {
			return nil
		}
		return &exitError{code: p.timeLimitExitCode, err: errors.New(report.Message)}
	case pruner.ResultRefused:
		return &exitError{code: exitRefused, err: fmt.Errorf("refused: %s", report.Message)}
	default:
		return &exitError{code: exitFailure, err: err}
	}
}
