package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/internal/importer"
	"github.com/messaginginbox/operator/internal/manifest"
)

type diffFlags struct {
	sources    sourceFlags
	manifest   string
	name       string
	connection string
	output     string
}

func newDiffCommand() *cobra.Command {
	flags := &diffFlags{}
	command := &cobra.Command{
		Use:   "diff FILE... -f MANIFEST",
		Short: "Check that a manifest still agrees with Symfony's messenger.yaml",
		Long: `Compares what Symfony configuration files declare with a MessagingInbox manifest: the
transports, their types, inboxes, outboxes, failure transports, timeouts and retry
strategies. A value that is written nowhere counts as its default, and what the
configuration does not say, such as maxAge, is no disagreement.

Exit code 0: they agree. Exit code 1: they do not, or a file cannot be read.`,
		Example: "  inbox diff config/packages/messenger.yaml -f deploy/inbox.yaml",
		PreRunE: func(*cobra.Command, []string) error {
			if flags.output != outputTable && flags.output != outputJSON {
				return fmt.Errorf("--output is %q; it can be %s or %s", flags.output, outputTable, outputJSON)
			}
			return nil
		},
		RunE: func(command *cobra.Command, files []string) error {
			return flags.run(files, command.OutOrStdout())
		},
	}
	flags.sources.add(command)
	command.Flags().StringVarP(&flags.manifest, "filename", "f", "", "the manifest")
	command.Flags().StringVar(&flags.name, "name", "", "the resource that is meant, when the manifest holds several")
	command.Flags().StringVar(&flags.connection, "connection", "", "the Doctrine connection whose inbox is meant, when there are several")
	command.Flags().StringVarP(&flags.output, "output", "o", outputTable, "the format: table or json")
	return command
}

func (f *diffFlags) run(files []string, out io.Writer) error {
	if f.manifest == "" {
		return errors.New("name the manifest with -f MANIFEST")
	}
	configuration, err := f.sources.load(files)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(f.manifest)
	if err != nil {
		return fmt.Errorf("reading the manifest: %w", err)
	}
	if _, err = manifest.Parse(f.manifest, content); err != nil {
		return err
	}
	declared, err := importer.OpenManifest(f.manifest, content, f.name)
	if err != nil {
		return err
	}
	declarations, err := importer.Declare(configuration, importer.Options{Name: declared.Name(), Connection: f.connection})
	if err != nil {
		return err
	}
	differences := importer.Compare(declarations, f.manifest, declared)
	if f.output == outputJSON {
		err = printJSON(out, differencesJSON(differences))
	} else {
		err = printDifferences(out, differences)
	}
	if err != nil {
		return err
	}
	if len(differences) > 0 {
		return &exitError{code: exitFailure, err: errors.New("the manifest does not agree with the configuration: inbox import --write brings it up to date")}
	}
	return nil
}

func printDifferences(out io.Writer, differences []importer.Difference) error {
	if len(differences) == 0 {
		_, err := fmt.Fprintln(out, "The manifest agrees with the configuration.")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "TRANSPORT\tFIELD\tCONFIGURATION\tMANIFEST") // Flush reports a broken output
	for _, difference := range differences {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", difference.Transport, difference.Field, difference.Configuration, difference.Manifest)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the differences: %w", err)
	}
	return nil
}

// diffJSON is the documented shape of "inbox diff -o json".
type diffJSON struct {
	Agree       bool             `json:"agree"`
	Differences []differenceJSON `json:"differences"`
}

type differenceJSON struct {
	Transport     string   `json:"transport"`
	Field         string   `json:"field,omitempty"`
	Configuration sideJSON `json:"configuration"`
	Manifest      sideJSON `json:"manifest"`
}

type sideJSON struct {
	Value   string `json:"value"`
	Default bool   `json:"default,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
}

func differencesJSON(differences []importer.Difference) diffJSON {
	document := diffJSON{Agree: len(differences) == 0, Differences: []differenceJSON{}}
	side := func(side importer.Side) sideJSON {
		return sideJSON{Value: side.Value, Default: side.Default, File: side.At.File, Line: side.At.Line}
	}
	for _, difference := range differences {
		document.Differences = append(document.Differences, differenceJSON{
			Transport: difference.Transport, Field: difference.Field,
			Configuration: side(difference.Configuration), Manifest: side(difference.Manifest),
		})
	}
	return document
}
