package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

const (
	// databaseURLVariable holds the connection URL, which belongs in no argument.
	databaseURLVariable = "INBOX_DATABASE_URL"

	outputTable = "table"
	outputJSON  = "json"
)

// addManifestFlags adds what the commands have in common that read manifests.
func addManifestFlags(command *cobra.Command, files *[]string, output *string) {
	command.Flags().StringArrayVarP(files, "filename", "f", nil, "a manifest, or - for standard input; may be repeated")
	command.Flags().StringVarP(output, "output", "o", outputTable, "the format: table or json")
	command.PreRunE = func(*cobra.Command, []string) error {
		if *output != outputTable && *output != outputJSON {
			return fmt.Errorf("--output is %q; it can be %s or %s", *output, outputTable, outputJSON)
		}
		return nil
	}
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
