package cli

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/internal/messenger"
)

// sourceFlags say how Symfony's configuration files are read.
type sourceFlags struct {
	environment      string
	variables        []string
	environmentFiles []string
}

func (f *sourceFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&f.environment, "env", "prod", "the kernel's environment, whose when@ blocks count")
	command.Flags().StringArrayVar(&f.variables, "set-env", nil, "an environment variable of the application, as NAME=VALUE; may be repeated")
	command.Flags().StringArrayVar(&f.environmentFiles, "env-file", nil, "a file of environment variables in the syntax of Symfony's Dotenv; may be repeated")
}

// load reads the files that were named and no others.
func (f *sourceFlags) load(files []string) (*messenger.Configuration, error) {
	sources, options, err := f.read(files)
	if err != nil {
		return nil, err
	}
	return messenger.Load(sources, options)
}

func (f *sourceFlags) read(files []string) ([]messenger.Source, messenger.Options, error) {
	options := messenger.Options{Environment: f.environment}
	if len(files) == 0 {
		return nil, options, errors.New("name at least one configuration file, such as config/packages/messenger.yaml")
	}
	variables, err := f.readVariables()
	if err != nil {
		return nil, options, err
	}
	options.Variables = variables
	sources, err := messenger.ReadSources(files)
	return sources, options, err
}

// readVariables prefers --set-env to the files, and a later file to an earlier one.
func (f *sourceFlags) readVariables() (map[string]string, error) {
	given := map[string]string{}
	for _, pair := range f.variables {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return nil, errors.New("--set-env needs NAME=VALUE") // the text may be a secret
		}
		given[name] = value
	}
	variables := map[string]string{}
	for _, file := range f.environmentFiles {
		source, err := messenger.ReadSource(file)
		if err != nil {
			return nil, err
		}
		read, err := messenger.ParseDotenv(source, variables)
		if err != nil {
			return nil, fmt.Errorf("--env-file: %w", err)
		}
		maps.Copy(variables, read)
	}
	maps.Copy(variables, given)
	return variables, nil
}
