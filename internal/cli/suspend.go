package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// fieldManager is the name under which the commands write fields.
const fieldManager = "kubectl-inbox"

// suspendCommand is what the commands pause and resume are told.
type suspendCommand struct {
	*cluster
	output  *output
	suspend bool
}

func newPauseCommand() *cobra.Command {
	return newSuspendCommand(true, &cobra.Command{
		Use:   "pause NAME",
		Short: "Let the operator only observe: no schema change, no pruning, no drill",
		Long: `Sets spec.suspend. The operator goes on to observe and to judge, changes no schema, creates
no Job, and stops a pruning Job that is at work; what it left is pruned after the resume.

` + suspendLong,
		Example: "  kubectl inbox pause orders -n shop",
	})
}

func newResumeCommand() *cobra.Command {
	return newSuspendCommand(false, &cobra.Command{
		Use:   "resume NAME",
		Short: "Let the operator act again",
		Long: `Clears spec.suspend. A tick of the schedule that passed meanwhile is made up for by one run.

` + suspendLong,
		Example: "  kubectl inbox resume orders -n shop",
	})
}

const suspendLong = `The change is a patch of this one field. When labels or field managers show that Argo CD,
Flux or another tool applies the resource from Git, a warning says that it may be reverted.

Exit code 0: spec.suspend is as asked. 1: an error.`

func newSuspendCommand(suspend bool, command *cobra.Command) *cobra.Command {
	s := &suspendCommand{cluster: newCluster(), output: newOutput(), suspend: suspend}
	command.Args = exactlyOneName
	command.ValidArgsFunction = s.completeName
	command.RunE = func(command *cobra.Command, arguments []string) error { return s.run(command, arguments[0]) }
	s.addFlags(command)
	s.output.addFlags(command)
	return command
}

func exactlyOneName(_ *cobra.Command, arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("name one MessagingInbox; see --help")
	}
	return nil
}

func (s *suspendCommand) run(command *cobra.Command, name string) error {
	if err := s.output.check(); err != nil {
		return err
	}
	connected, err := s.connect()
	if err != nil {
		return err
	}
	inbox, err := connected.inbox(command.Context(), name)
	if err != nil {
		return err
	}
	changed := inbox.Spec.Suspend != s.suspend
	if changed {
		before := inbox.DeepCopy()
		inbox.Spec.Suspend = s.suspend
		// A merge patch of the one field: an apply would take the field away from its manager.
		if err := connected.Patch(command.Context(), inbox, client.MergeFrom(before), client.FieldOwner(fieldManager)); err != nil {
			return fmt.Errorf("setting spec.suspend of %s in namespace %s: %w", name, connected.namespace, err)
		}
		identify(inbox)
		if warning := revertWarning(before, s.suspend); warning != "" {
			_, _ = fmt.Fprintln(command.ErrOrStderr(), "Warning:", warning) // the change is made, told or not
		}
	}
	return s.tell(command, inbox, changed)
}

func (s *suspendCommand) tell(command *cobra.Command, inbox *v1alpha1.MessagingInbox, changed bool) error {
	if !s.output.forPeople() {
		return s.output.print(command.OutOrStdout(), inbox)
	}
	done := "resumed"
	if s.suspend {
		done = "paused"
	}
	if !changed {
		done = "was " + done + " already"
		if !s.suspend {
			done = "was not paused"
		}
	}
	if _, err := fmt.Fprintln(command.OutOrStdout(), resourceName(inbox.Name), done); err != nil {
		return fmt.Errorf("saying what was done: %w", err)
	}
	return nil
}
