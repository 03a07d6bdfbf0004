package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/controllers"
	"github.com/messaginginbox/operator/internal/drill"
	"github.com/messaginginbox/operator/internal/screen"
)

func newDrillNowCommand() *cobra.Command {
	b := newByHand()
	command := &cobra.Command{
		Use:   "drill NAME",
		Short: "Prove a resource's contract on its real table now",
		Long: `Creates the Job of a drill, with or without a schedule, and shows its result. A drill writes
a few records under the transport name ` + drill.TransportName + `, and removes them at once. A
resource that is suspended, whose database or schema is not found good for its newest spec,
or that is being drilled already, is refused with the reason.

With -o json or yaml the result is printed as it stands in status.drill, and with
--wait=false the Job.

Exit code 0: the contract is proven. 4: it is broken. 3: the drill was refused or could not
be tried to its end, or --timeout was up and the Job goes on. 1: an error.`,
		Example:           "  kubectl inbox drill orders -n shop",
		Args:              exactlyOneName,
		ValidArgsFunction: b.completeName,
		RunE:              func(command *cobra.Command, arguments []string) error { return drillNow(command, b, arguments[0]) },
	}
	b.addFlags(command)
	return command
}

func drillNow(command *cobra.Command, b *byHand, name string) error {
	ctx := command.Context()
	connected, job, err := b.start(ctx, name, func(kube *connection, inbox *v1alpha1.MessagingInbox, image controllers.JobImage) (*batchv1.Job, error) {
		return controllers.DrillNow(ctx, kube, inbox, image)
	})
	if err != nil {
		return withCode(err, exitNotTried)
	}
	if err = b.announce(command, job); err != nil || !b.wait {
		return err
	}
	status, err := await(ctx, b, connected, job, controllers.DrillResult)
	if err != nil {
		return err
	}
	return errors.Join(showDrill(command, b.output, status), verdictOfDrill(status))
}

func showDrill(command *cobra.Command, format *output, status *v1alpha1.DrillStatus) error {
	if !format.forPeople() {
		return format.printValue(command.OutOrStdout(), status)
	}
	options := layout(command.OutOrStdout(), status.LastRun.Time, programOf(command))
	return screen.Drill(command.OutOrStdout(), status, options)
}

// verdictOfDrill is the error with the exit code for the drill.
func verdictOfDrill(status *v1alpha1.DrillStatus) error {
	switch status.Result {
	case v1alpha1.DrillProven:
		return nil
	case v1alpha1.DrillBroken:
		return &exitError{code: exitBroken, err: fmt.Errorf("the contract is broken (%s): %s", status.Reason, status.Message)}
	case v1alpha1.DrillNotTried:
		return &exitError{code: exitNotTried, err: fmt.Errorf("the contract could not be tried (%s): %s", status.Reason, status.Message)}
	default:
		return &exitError{code: exitFailure, err: fmt.Errorf("the drill (Job %s) failed: %s", status.Job, status.Message)}
	}
}
