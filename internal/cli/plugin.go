package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/internal/version"
)

const (
	// pluginProgram is the file name under which kubectl finds the plugin.
	pluginProgram = "kubectl-inbox"
	// completionProgram is the file name under which kubectl asks for the plugin's completions.
	completionProgram = "kubectl_complete-inbox"
)

// NewCommand is the command that the program's own path, arguments[0], asks for: the plugin
// when its file is named so, else inbox. The command is told the other arguments.
func NewCommand(arguments []string) *cobra.Command {
	program := ""
	if len(arguments) > 0 {
		program = strings.TrimSuffix(filepath.Base(arguments[0]), ".exe")
		arguments = arguments[1:]
	}
	switch program {
	case pluginProgram:
		plugin := newPluginCommand()
		plugin.SetArgs(arguments)
		return plugin
	case completionProgram:
		plugin := newPluginCommand()
		plugin.SetArgs(append([]string{cobra.ShellCompRequestCmd}, arguments...))
		return plugin
	default:
		root := NewRootCommand()
		root.SetArgs(arguments)
		return root
	}
}

// newPluginCommand is "kubectl inbox", a program of its own name.
func newPluginCommand() *cobra.Command {
	plugin := newClusterCommands(&cobra.Command{
		Use:           pluginProgram,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl inbox"},
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	})
	plugin.SetVersionTemplate("inbox {{.Version}}\n")
	// kubectl completes its plugins through completionProgram.
	plugin.CompletionOptions.DisableDefaultCmd = true
	plugin.AddCommand(newVersionCommand())
	return plugin
}

// newKubectlCommand has the plugin's commands below inbox, where prune and drill already
// are what the Jobs run.
func newKubectlCommand() *cobra.Command {
	return newClusterCommands(&cobra.Command{Use: "kubectl"})
}

func newClusterCommands(parent *cobra.Command) *cobra.Command {
	parent.Short = "Look after the MessagingInbox resources of a cluster"
	parent.Long = `Shows how the MessagingInbox resources of a cluster are, and acts on them: as a kubectl
plugin, when the program inbox is on the PATH under the name kubectl-inbox, and otherwise
as "inbox kubectl". The flags are those of kubectl. "inbox status", "inbox pause" and the
like are the same commands; "inbox prune" and "inbox drill" are not: they work on a
database, in the operator's Jobs.`
	parent.AddCommand(
		newStatusCommand(),
		newWindowCommand(),
		newPruneNowCommand(),
		newDrillNowCommand(),
		newPauseCommand(),
		newResumeCommand(),
	)
	return parent
}
