// Package cli has the commands of the one binary, inbox: the manager that runs in the
// cluster, the commands that its Jobs run, and those for people and pipelines.
package cli

import (
	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/internal/version"
)

// NewRootCommand is the command inbox with all its subcommands.
func NewRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "inbox",
		Short: "Owns the contract of a consumer inbox",
		Long: `A message broker delivers at least once. A consumer inbox records each handled
message in the handlers' own transaction, so that a redelivery skips the work. The
proof helps only while it exists: inbox works out how long a message can come back,
checks the retention against it, keeps the table in shape and prunes what expired.`,
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("inbox {{.Version}}\n")
	root.AddCommand(
		newManagerCommand(),
		newPruneCommand(),
		newMigrateCommand(),
		newDrillCommand(),
		newCheckCommand(),
		newWindowCommand(),
		newStatusCommand(),
		newPauseCommand(),
		newResumeCommand(),
		newKubectlCommand(),
		newVersionCommand(),
		newImportCommand(),
		newLintCommand(),
		newDiffCommand(),
	)
	return root
}
