package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/controllers"
	"github.com/messaginginbox/operator/internal/screen"
)

// pruneNow is what the plugin's command prune is told.
type pruneNow struct {
	*byHand
	now    bool
	dryRun bool
}

func newPruneNowCommand() *cobra.Command {
	p := &pruneNow{byHand: newByHand()}
	command := &cobra.Command{
		Use:   "prune NAME (--now | --dry-run)",
		Short: "Prune a resource's table now, through the same gates as the schedule",
		Long: `Creates the Job that the schedule would create, and shows its result. It passes the same
gates: a resource that is suspended, whose database, schema or retention is not found good
for its newest spec, or whose pruning is at work already, is refused with the reason. With
--dry-run the Job counts what is expired, and deletes nothing.

With -o json or yaml the result is printed as it stands in status.pruning.lastRun, and with
--wait=false the Job.

Exit code 0: nothing expired is left, or with --dry-run it was counted. 3: the run's time
was up with work left for the next one, or --timeout was and the Job goes on. 4: refused,
by a gate or by the pruner. 1: an error.`,
		Example: `  kubectl inbox prune orders -n shop --dry-run
  kubectl inbox prune orders -n shop --now`,
		Args:              exactlyOneName,
		ValidArgsFunction: p.completeName,
		RunE:              func(command *cobra.Command, arguments []string) error { return p.run(command, arguments[0]) },
	}
	p.addFlags(command)
	flags := command.Flags()
	flags.BoolVar(&p.now, "now", false, "delete what is expired")
	flags.BoolVar(&p.dryRun, "dry-run", false, "count what is expired, and delete nothing; also beside --now")
	return command
}

func (p *pruneNow) run(command *cobra.Command, name string) error {
	if !p.now && !p.dryRun {
		call := command.CommandPath() + " " + name
		return fmt.Errorf("say whether to delete: %s --now deletes what is expired, %s --dry-run counts it", call, call)
	}
	ctx := command.Context()
	connected, job, err := p.start(ctx, name, func(kube *connection, inbox *v1alpha1.MessagingInbox, image controllers.JobImage) (*batchv1.Job, error) {
		return controllers.PruneNow(ctx, kube, inbox, image, p.dryRun)
	})
	if err != nil {
		return withCode(err, exitRefused)
	}
	if err = p.announce(command, job); err != nil || !p.wait {
		return err
	}
	run, err := await(ctx, p.byHand, connected, job, controllers.PruningResult)
	if err != nil {
		return err
	}
	return errors.Join(p.show(command, run), verdictOfRun(run))
}

func (p *pruneNow) show(command *cobra.Command, run *v1alpha1.PruningRun) error {
	if !p.output.forPeople() {
		return p.output.printValue(command.OutOrStdout(), run)
	}
	if err := say(command.OutOrStdout(), "%s", screen.RunOutcome(run)); err != nil {
		return err
	}
	if run.DryRun && !p.dryRun {
		return say(command.OutOrStdout(), "It was a dry run, since spec.pruning.dryRun is true.")
	}
	return nil
}

// verdictOfRun is the error with the exit code for the run.
func verdictOfRun(run *v1alpha1.PruningRun) error {
	switch run.Result {
	case v1alpha1.RunDone:
		return nil
	case v1alpha1.RunTimeLimit:
		return &exitError{code: exitTimeLimit, err: errors.New("the run's time was up, and expired records are left for the next one")}
	case v1alpha1.RunRefused:
		return &exitError{code: exitRefused, err: fmt.Errorf("the pruner refused: %s", run.Message)}
	default:
		return &exitError{code: exitFailure, err: fmt.Errorf("the run (Job %s) failed: %s", run.Job, run.Message)}
	}
}
