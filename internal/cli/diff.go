package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
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

A difference that a person decided is shown as kept and is no drift: a number that was
set by hand and makes no window shorter, a transport that was added since the last import,
and what the manifest's annotation ` + importer.KeepAnnotation + ` lists, separated by
commas, as TRANSPORT/FIELD or TRANSPORT.

Exit code 0: they agree, but for what was kept. Exit code 1: they do not, or a file cannot
be read.`,
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
	content, err := manifest.Content(f.manifest)
	if err != nil {
		return err
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
	differences, err := importer.Compare(declarations, f.manifest, declared)
	if err != nil {
		return err
	}
	drift, kept := importer.Drift(differences), importer.Kept(differences)
	if f.output == outputJSON {
		err = printJSON(out, differencesJSON(drift, kept))
	} else {
		err = printDifferences(out, drift, kept)
	}
	if err != nil {
		return err
	}
	if len(drift) > 0 {
		return &exitError{code: exitFailure, err: errors.New("the manifest does not agree with the configuration: " + nextStep(drift))}
	}
	return nil
}

// nextStep tells what an import mends from what it leaves, since a person set it.
func nextStep(drift []importer.Difference) string {
	var edited []string
	for _, difference := range drift {
		if difference.ByHand {
			edited = append(edited, difference.Path())
		}
	}
	var steps []string
	if len(edited) < len(drift) {
		steps = append(steps, "inbox import --write brings up to date what nobody edited")
	}
	if len(edited) > 0 {
		steps = append(steps, fmt.Sprintf("change what was set by hand, or accept it with the annotation %s: %q", importer.KeepAnnotation, strings.Join(edited, ", ")))
	}
	return strings.Join(steps, "; ")
}

func printDifferences(out io.Writer, drift, kept []importer.Difference) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(drift) == 0 {
		_, _ = fmt.Fprintln(table, "The manifest agrees with the configuration.") // Flush reports a broken output
	} else {
		_, _ = fmt.Fprintln(table, "TRANSPORT\tFIELD\tCONFIGURATION\tMANIFEST")
	}
	for _, difference := range drift {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", difference.Transport, difference.Field, difference.Configuration, difference.Manifest)
	}
	if len(kept) > 0 {
		_, _ = fmt.Fprintln(table, "\nKept as a person decided it:\n\nTRANSPORT\tFIELD\tCONFIGURATION\tMANIFEST\tWHY")
	}
	for _, difference := range kept {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", difference.Transport, difference.Field, difference.Configuration, difference.Manifest, difference.Kept)
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
	Kept        []differenceJSON `json:"kept"`
}

type differenceJSON struct {
	Transport     string   `json:"transport"`
	Field         string   `json:"field,omitempty"`
	Configuration sideJSON `json:"configuration"`
	Manifest      sideJSON `json:"manifest"`
	// Why the difference was kept; "" for drift.
	Why string `json:"why,omitempty"`
}

type sideJSON struct {
	Value   string `json:"value"`
	Default bool   `json:"default,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
}

func differencesJSON(drift, kept []importer.Difference) diffJSON {
	return diffJSON{Agree: len(drift) == 0, Differences: listJSON(drift), Kept: listJSON(kept)}
}

func listJSON(differences []importer.Difference) []differenceJSON {
	side := func(side importer.Side) sideJSON {
		return sideJSON{Value: side.Value, Default: side.Default, File: side.At.File, Line: side.At.Line}
	}
	list := []differenceJSON{}
	for _, difference := range differences {
		list = append(list, differenceJSON{
			Transport: difference.Transport, Field: difference.Field,
			Configuration: side(difference.Configuration), Manifest: side(difference.Manifest), Why: difference.Kept,
		})
	}
	return list
}
