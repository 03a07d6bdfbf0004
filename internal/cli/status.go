package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/screen"
)

var errNamedAcrossNamespaces = errors.New("a resource cannot be named across all namespaces: leave out the name or -A")

// statusCommand is what the command status is told.
type statusCommand struct {
	*cluster
	output *output
}

func newStatusCommand() *cobra.Command {
	s := &statusCommand{cluster: newCluster(), output: newOutput(outputWide)}
	command := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show on one screen how a resource is, and what to do",
		Long: `Shows one resource: the verdict first, then how long a proof is kept against how long it
is needed, the table, the last and next runs, the transports, the checks, and at the end
what to do. Without a name, a namespace with several resources, or all namespaces with -A,
get one line for each. -o wide shows more of either.

Colours appear on a terminal only, and never when NO_COLOR is set.

Exit code 0: the status was shown, whatever it says (to wait for a verdict or to test one,
use "kubectl wait --for=condition=Ready"). 1: an error.`,
		Example: `  kubectl inbox status orders -n shop
  kubectl inbox status -A
  kubectl inbox status orders -o wide`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: s.completeName,
		RunE:              func(command *cobra.Command, arguments []string) error { return s.run(command, arguments) },
	}
	s.addFlags(command)
	s.addAllNamespacesFlag(command)
	s.output.addFlags(command)
	return command
}

func (s *statusCommand) run(command *cobra.Command, arguments []string) error {
	if s.allNamespaces && len(arguments) > 0 {
		return errNamedAcrossNamespaces
	}
	if err := s.output.check(); err != nil {
		return err
	}
	connected, err := s.connect()
	if err != nil {
		return err
	}
	if len(arguments) == 1 {
		return s.show(command, connected, arguments[0])
	}
	list, err := connected.inboxes(command.Context(), s.allNamespaces)
	if err != nil {
		return err
	}
	if len(list.Items) == 0 && s.output.forPeople() {
		if _, err = fmt.Fprintln(command.ErrOrStderr(), noneFound(connected, s.allNamespaces)); err != nil {
			return fmt.Errorf("saying that there is none: %w", err)
		}
		return nil
	}
	return s.list(command, list)
}

func noneFound(connected *connection, allNamespaces bool) string {
	if allNamespaces {
		return "No MessagingInbox found in any namespace."
	}
	return fmt.Sprintf("No MessagingInbox found in namespace %s.", connected.namespace)
}

func (s *statusCommand) show(command *cobra.Command, connected *connection, name string) error {
	inbox, err := connected.inbox(command.Context(), name)
	if err != nil {
		return err
	}
	return s.one(command, inbox)
}

func (s *statusCommand) one(command *cobra.Command, inbox *v1alpha1.MessagingInbox) error {
	if !s.output.forPeople() {
		return s.output.print(command.OutOrStdout(), inbox)
	}
	options := layout(command.OutOrStdout(), time.Now(), programOf(command))
	options.Wide = s.output.format == outputWide
	return screen.Show(command.OutOrStdout(), inbox, options)
}

// list shows the only resource of a namespace whole.
func (s *statusCommand) list(command *cobra.Command, list *v1alpha1.MessagingInboxList) error {
	switch {
	case !s.output.forPeople():
		return s.output.printList(command.OutOrStdout(), list)
	case len(list.Items) == 1 && !s.allNamespaces:
		return s.one(command, &list.Items[0])
	}
	options := layout(command.OutOrStdout(), time.Now(), programOf(command))
	options.Wide = s.output.format == outputWide
	return screen.List(command.OutOrStdout(), list.Items, s.allNamespaces, options)
}

// programOf is how the command's parent was called, such as "kubectl inbox".
func programOf(command *cobra.Command) string {
	if parent := command.Parent(); parent != nil {
		return parent.CommandPath()
	}
	return command.CommandPath()
}
