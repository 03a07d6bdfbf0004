package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/importer"
	"github.com/messaginginbox/operator/internal/lint"
	"github.com/messaginginbox/operator/internal/messenger"
	"github.com/messaginginbox/operator/internal/version"
)

const (
	outputText  = "text"
	outputSARIF = "sarif"
)

type lintFlags struct {
	sources        sourceFlags
	manifest       string
	output         string
	maxHandlerTime time.Duration
}

func newLintCommand() *cobra.Command {
	flags := &lintFlags{}
	command := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Find mistakes in Symfony's messenger.yaml that make an inbox useless",
		Long: `Reads framework.messenger from Symfony configuration files and reports what makes an
inbox useless or dangerous: each finding with a rule, its place, why it matters and what to
change. With -f MANIFEST it also knows what only the manifest says: handler times, batch
handlers, dispatches after the current bus, the age of failed messages.

Exit code 0: no error, perhaps warnings. Exit code 1: an error was found, or a file
cannot be read.`,
		Example: `  inbox lint config/packages/messenger.yaml
  inbox lint config/packages/*.yaml -f inbox.yaml -o sarif > inbox.sarif`,
		PreRunE: func(*cobra.Command, []string) error {
			switch flags.output {
			case outputText, outputJSON, outputSARIF:
				return nil
			}
			return fmt.Errorf("--output is %q; it can be %s, %s or %s", flags.output, outputText, outputJSON, outputSARIF)
		},
		RunE: func(command *cobra.Command, files []string) error {
			return flags.run(files, command.OutOrStdout())
		},
	}
	flags.sources.add(command)
	command.Flags().StringVarP(&flags.manifest, "filename", "f", "", "the MessagingInbox manifest of the application")
	command.Flags().StringVarP(&flags.output, "output", "o", outputText, "the format: text, json or sarif")
	command.Flags().DurationVar(&flags.maxHandlerTime, "max-handler-time", 0, "the longest time that handling one message takes (default: the manifest's, else 60s)")
	return command
}

func (f *lintFlags) run(files []string, out io.Writer) error {
	facts, err := readFacts(f.manifest)
	if err != nil {
		return err
	}
	if f.maxHandlerTime > 0 {
		facts.MaxHandlerTime = f.maxHandlerTime
	}
	report, err := f.lint(files, facts)
	if err != nil {
		return err
	}
	switch f.output {
	case outputJSON:
		err = report.WriteJSON(out)
	case outputSARIF:
		err = report.WriteSARIF(out, version.String())
	default:
		err = report.WriteText(out)
	}
	if err != nil {
		return err
	}
	if lint.HasErrors(report.Findings) {
		return &exitError{code: exitFailure, err: errors.New("lint found errors")}
	}
	return nil
}

// lint turns what Symfony would refuse into findings, so that they show in their place.
func (f *lintFlags) lint(files []string, facts lint.Facts) (*lint.Report, error) {
	sources, options, err := f.sources.read(files)
	var unreadable *messenger.Error
	if errors.As(err, &unreadable) {
		return lint.NewReport(lint.Refused(messenger.Errors{unreadable}), sources, nil), nil
	}
	if err != nil {
		return nil, err
	}
	configuration, err := messenger.Load(sources, options)
	var refused messenger.Errors
	if errors.As(err, &refused) {
		return lint.NewReport(lint.Refused(refused), sources, nil), nil
	}
	if err != nil {
		return nil, err
	}
	if !configuration.Declared {
		return nil, errors.New("none of the files holds framework.messenger: name the one that does")
	}
	return lint.NewReport(lint.Run(configuration, facts), sources, configuration), nil
}

// readFacts takes from the manifest what no configuration says.
func readFacts(path string) (lint.Facts, error) {
	if path == "" {
		return lint.Facts{}, nil
	}
	inboxes, err := readManifests([]string{path})
	if err != nil {
		return lint.Facts{}, err
	}
	facts := lint.Facts{Transports: map[string]lint.TransportFacts{}, FromManifest: true}
	for _, inbox := range inboxes {
		facts.MaxHandlerTime = max(facts.MaxHandlerTime, inbox.Spec.Redelivery.MaxHandlerTime.Duration.Duration)
		for i := range inbox.Spec.Transports {
			transport := &inbox.Spec.Transports[i]
			facts.Transports[string(transport.Name)] = transportFacts(transport)
		}
	}
	return facts, nil
}

func transportFacts(transport *v1alpha1.Transport) lint.TransportFacts {
	facts := lint.TransportFacts{BatchHandlers: transport.BatchHandlers}
	for _, target := range transport.DispatchesAfterCurrentBus {
		facts.DispatchesAfterCurrentBus = append(facts.DispatchesAfterCurrentBus, string(target))
	}
	if own := transport.Redelivery; own != nil {
		windowDeclared := own.Window != nil && own.Window.Duration.Duration < importer.UnboundedDuration
		facts.Bounded = own.MaxAge != nil || windowDeclared
		facts.RetriesBounded = windowDeclared || (own.RetryStrategy != nil && own.RetryStrategy.MaxTotal != nil)
		if own.MaxHandlerTime != nil {
			facts.MaxHandlerTime = own.MaxHandlerTime.Duration.Duration
		}
	}
	return facts
}
