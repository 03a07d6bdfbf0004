package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
)

// completionTimeout bounds how long a shell waits for names from the cluster.
const completionTimeout = "3s"

// complete registers the completion of a flag's value.
func complete(command *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag was not defined, or has a completion already
	}
}

// completeName completes the one argument with the names of the namespace's resources.
func (c *cluster) completeName(command *cobra.Command, arguments []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	connected, ok := c.connectBriefly()
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := connected.inboxes(command.Context(), false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return beginning(names, typed), cobra.ShellCompDirectiveNoFileComp
}

func (c *cluster) completeNamespaces(command *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	connected, ok := c.connectBriefly()
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list corev1.NamespaceList
	if err := connected.List(command.Context(), &list); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return beginning(names, typed), cobra.ShellCompDirectiveNoFileComp
}

func (c *cluster) completeContexts(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config, err := c.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, 0, len(config.Contexts))
	for name := range config.Contexts {
		names = append(names, name)
	}
	return beginning(names, typed), cobra.ShellCompDirectiveNoFileComp
}

// connectBriefly connects for a completion: a shell has no use for an error message, and
// does not wait.
func (c *cluster) connectBriefly() (*connection, bool) {
	if *c.flags.Timeout == "0" {
		*c.flags.Timeout = completionTimeout
	}
	connected, err := c.connect()
	return connected, err == nil
}

func beginning(names []string, typed string) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, typed) })
	slices.Sort(names)
	return names
}

// oneOf completes a flag's value from a few.
func oneOf(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}
