package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/internal/importer"
	"github.com/messaginginbox/operator/internal/manifest"
	"github.com/messaginginbox/operator/internal/messenger"
)

// defaultName of an imported resource.
const defaultName = "messenger-inbox"

type importFlags struct {
	sources sourceFlags
	options importer.Options
	write   string
}

func newImportCommand() *cobra.Command {
	flags := &importFlags{}
	command := &cobra.Command{
		Use:   "import FILE...",
		Short: "Write a manifest from Symfony's messenger.yaml",
		Long: `Reads framework.messenger from Symfony configuration files, in the order in which
Symfony loads them, and prints a complete MessagingInbox manifest. Comments say where
each value came from. What the files do not say becomes a TODO comment and a line on
standard error, never a guess; a window that depends on it stands at its largest, so
that nothing is pruned before you declare it.

Only the named files are read, nothing is executed, and no environment variable is
looked up but those given with --set-env and --env-file. Credentials are never
written: the manifest refers to Secrets, and the commands that create them are printed.

With --write FILE the manifest is written to FILE. A manifest that is already there is
brought up to date: what came from the configuration follows it, what you have set,
added or deleted stays.`,
		Example: `  inbox import config/packages/messenger.yaml --name orders > inbox.yaml
  inbox import config/packages/messenger.yaml config/packages/prod/messenger.yaml --env-file .env --write inbox.yaml`,
		RunE: func(command *cobra.Command, files []string) error {
			return flags.run(files, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags.sources.add(command)
	command.Flags().StringVar(&flags.options.Name, "name", "", "the name of the resource (default: that of the manifest under --write, else "+defaultName+")")
	command.Flags().StringVar(&flags.options.Namespace, "namespace", "", "the namespace of the resource")
	command.Flags().StringVar(&flags.options.Secret, "secret", "", "the Secret with the database's URL under the key url (default: NAME-database)")
	command.Flags().StringVar(&flags.options.Connection, "connection", "", "the Doctrine connection whose inbox is meant, when there are several")
	command.Flags().StringVarP(&flags.write, "write", "w", "", "write to this file; update the manifest that is there and keep its edits")
	return command
}

func (f *importFlags) run(files []string, out, messages io.Writer) error {
	configuration, err := f.sources.load(files)
	if err != nil {
		return err
	}
	existing, err := openExisting(f.write, f.options.Name)
	if err != nil {
		return err
	}
	options := f.options
	if existing != nil {
		options.Name = existing.Name()
		options.Namespace = cmp.Or(options.Namespace, existing.Namespace())
		options.Secret = cmp.Or(options.Secret, existing.Secret())
	}
	options.Name = cmp.Or(options.Name, defaultName)
	options.Secret = cmp.Or(options.Secret, importer.DatabaseSecret(options.Name))

	declarations, err := importer.Declare(configuration, options)
	if err != nil {
		return err
	}
	content, kept, err := produce(configuration, declarations, options, existing)
	if err != nil {
		return err
	}
	if _, err = manifest.Parse(cmp.Or(f.write, "the imported manifest"), content); err != nil {
		return fmt.Errorf("the manifest would be refused: %w", err)
	}
	if f.write == "" {
		_, err = out.Write(content)
	} else {
		err = replaceFile(f.write, content)
	}
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return report(messages, configuration, declarations, options, string(content), kept)
}

// openExisting returns nil when there is nothing to update.
func openExisting(path, name string) (*importer.Manifest, error) {
	if path == "" {
		return nil, nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder: name the file to write, such as %s", path, filepath.Join(path, "inbox.yaml"))
	}
	content, err := os.ReadFile(path) // #nosec G304 -- the user names the file to update
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s cannot be written: the folder %s does not exist; create it first", path, filepath.Dir(path))
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifest to update: %w", err)
	}
	if _, err := manifest.Parse(path, content); err != nil {
		return nil, fmt.Errorf("mend the manifest before it is updated: %w", err)
	}
	return importer.OpenManifest(path, content, name)
}

func produce(configuration *messenger.Configuration, declarations []importer.Declaration, options importer.Options, existing *importer.Manifest) ([]byte, []string, error) {
	document, err := importer.Document(configuration, declarations, options)
	if err != nil {
		return nil, nil, err
	}
	if existing == nil {
		fresh, encodeErr := importer.EncodeDocument(document)
		return fresh, nil, encodeErr
	}
	kept, err := existing.Update(document)
	if err != nil {
		return nil, nil, err
	}
	content, err := existing.Encode()
	return content, kept, err
}

// replaceFile leaves either the old or the new content, also when it is interrupted.
func replaceFile(path string, content []byte) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name()) // the error that matters is already there
		}
	}()
	mode := fs.FileMode(0o644)
	if info, statErr := os.Stat(path); statErr == nil {
		mode = info.Mode().Perm()
	}
	if _, err = temporary.Write(content); err != nil {
		return errors.Join(err, temporary.Close())
	}
	if err = errors.Join(temporary.Chmod(mode), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// report tells on standard error what is left to do.
func report(messages io.Writer, configuration *messenger.Configuration, declarations []importer.Declaration, options importer.Options, content string, kept []string) error {
	var lines []string
	covered := false
	for _, declaration := range declarations {
		inbox, _ := declaration.Field("inbox")
		covered = covered || inbox.Value == "true"
		for _, note := range declaration.Notes {
			if strings.Contains(content, note.Comment()) {
				lines = append(lines, "TODO "+note.String())
			}
		}
	}
	if !covered {
		lines = append(lines, "warning: no transport has inbox: true, so the manifest protects nothing yet")
	}
	unrecognized := configuration.Unrecognized
	for _, transport := range configuration.Transports {
		unrecognized = append(unrecognized, transport.Unrecognized()...)
	}
	for _, name := range unrecognized {
		lines = append(lines, fmt.Sprintf("warning: %s: %s", name.At, messenger.Printable(name.String())))
	}
	for _, imported := range configuration.Imports {
		lines = append(lines, fmt.Sprintf("warning: %s: %s is imported there and was not read: name it too if it concerns Messenger", imported.At, messenger.MaskText(imported.Value.String())))
	}
	for _, name := range configuration.VariableNames() {
		lines = append(lines, fmt.Sprintf("note: %s was not given, so its default at %s counts: use --set-env if it is set where the application runs", messenger.Shown(name), configuration.DefaultedVariables[name]))
	}
	for _, edit := range kept {
		lines = append(lines, "kept: "+edit)
	}
	lines = append(lines, "Create the Secrets, with your own values:")
	for _, command := range importer.Secrets(declarations, options) {
		lines = append(lines, "  "+command)
	}
	if _, err := fmt.Fprintln(messages, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("reporting what is left to do: %w", err)
	}
	return nil
}
