package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/internal/version"
)

func newVersionCommand() *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:     "version",
		Short:   "Print which build this is",
		Example: "  inbox version -o json",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			switch format {
			case "":
				return say(command.OutOrStdout(), "inbox %s", version.String())
			case outputJSON, outputYAML:
				return (&output{format: format}).printValue(command.OutOrStdout(), version.Of())
			default:
				return fmt.Errorf("--output is %q; it can be %s or %s", format, outputJSON, outputYAML)
			}
		},
	}
	command.Flags().StringVarP(&format, "output", "o", "", "the format: json or yaml; text for people by default")
	complete(command, "output", oneOf(outputJSON, outputYAML))
	return command
}
