// Command reference writes the reference of the commands, one Markdown page each, from
// their own help:
//
//	go run ./hack/reference DIRECTORY
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/messaginginbox/operator/internal/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("name the directory to write to")
	}
	directory := arguments[0]
	// A page that stayed behind when its command went would pass for current.
	if err := os.RemoveAll(directory); err != nil {
		return fmt.Errorf("emptying the directory: %w", err)
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("making the directory: %w", err)
	}
	for _, program := range []string{"inbox", "kubectl-inbox"} {
		command := cli.NewCommand([]string{program})
		command.InitDefaultCompletionCmd()
		describe(command)
		if err := doc.GenMarkdownTree(command, directory); err != nil {
			return fmt.Errorf("writing the pages of %s: %w", program, err)
		}
	}
	return nil
}

// describe keeps the day out of the pages, and writes each command once: those below
// "inbox kubectl" are the plugin's.
func describe(command *cobra.Command) {
	command.DisableAutoGenTag = true
	if command.CommandPath() == "inbox kubectl" {
		command.RemoveCommand(command.Commands()...)
	}
	for _, child := range command.Commands() {
		describe(child)
	}
}
