package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

const (
	outputWide = "wide"
	outputYAML = "yaml"
	outputName = "name"
)

// output is kubectl's flag -o: its printers for programs, and text for people.
type output struct {
	format   string
	text     []string // the formats for people, beside none
	jsonYAML *genericclioptions.JSONYamlPrintFlags
	names    *genericclioptions.NamePrintFlags
}

func newOutput(text ...string) *output {
	return &output{
		text:     text,
		jsonYAML: genericclioptions.NewJSONYamlPrintFlags(),
		names:    genericclioptions.NewNamePrintFlags(""),
	}
}

func (o *output) formats() []string {
	return append([]string{outputJSON, outputYAML, outputName}, o.text...)
}

func (o *output) addFlags(command *cobra.Command) {
	o.jsonYAML.AddFlags(command)
	command.Flags().StringVarP(&o.format, "output", "o", "", "the format: "+strings.Join(o.formats(), ", ")+"; text for people by default")
	complete(command, "output", oneOf(o.formats()...))
}

// check refuses an unknown format before anything is done.
func (o *output) check() error {
	if o.format != "" && !slices.Contains(o.formats(), o.format) {
		return fmt.Errorf("--output is %q; it can be %s", o.format, strings.Join(o.formats(), ", "))
	}
	return nil
}

func (o *output) forPeople() bool {
	return o.format == "" || slices.Contains(o.text, o.format)
}

// print writes an object in one of the formats for programs.
func (o *output) print(out io.Writer, object runtime.Object) error {
	printer, err := o.names.ToPrinter(outputName)
	if o.format != outputName {
		printer, err = o.jsonYAML.ToPrinter(o.format)
	}
	if err != nil {
		return fmt.Errorf("printing as %s: %w", o.format, err)
	}
	if err := printer.PrintObj(object, out); err != nil {
		return fmt.Errorf("printing as %s: %w", o.format, err)
	}
	return nil
}

// printList writes the list as one object, or its names one by one.
func (o *output) printList(out io.Writer, list *v1alpha1.MessagingInboxList) error {
	if o.format != outputName {
		return o.print(out, list)
	}
	for i := range list.Items {
		if err := o.print(out, &list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// printValue writes what is no object of the API. The name was printed before.
func (o *output) printValue(out io.Writer, value any) error {
	switch o.format {
	case outputJSON:
		return printJSON(out, value)
	case outputYAML:
		document, err := yaml.Marshal(value)
		if err == nil {
			_, err = out.Write(document)
		}
		if err != nil {
			return fmt.Errorf("printing as %s: %w", o.format, err)
		}
	}
	return nil
}
