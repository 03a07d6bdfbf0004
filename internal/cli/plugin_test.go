package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestTheNameOfTheProgramDecidesWhatItIs(t *testing.T) {
	for path, want := range map[string]string{
		"inbox":                            "inbox",
		"/usr/local/bin/inbox":             "inbox",
		"/ko-app/operator":                 "inbox",
		"/usr/local/bin/kubectl-inbox":     "kubectl inbox",
		"kubectl-inbox.exe":                "kubectl inbox",
		"/opt/kubectl_complete-inbox":      "kubectl inbox",
		"/opt/kubectl-inbox/bin/something": "inbox",
	} {
		if got := NewCommand([]string{path}).CommandPath(); got != want {
			t.Errorf("%s is %q; want %q", path, got, want)
		}
	}
	if got := NewCommand(nil).CommandPath(); got != "inbox" {
		t.Errorf("without a path it is %q", got)
	}
}

// Two flags of one letter, or an argument that two commands read differently, show only
// when somebody uses them.
func TestEveryCommandExplainsItself(t *testing.T) {
	var visit func(command *cobra.Command)
	visit = func(command *cobra.Command) {
		if command.Short == "" || strings.HasSuffix(command.Short, ".") {
			t.Errorf("%s: its one line is %q; want words without a full stop", command.CommandPath(), command.Short)
		}
		_ = command.UsageString() // panics when two flags share a letter
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(NewCommand([]string{"inbox"}))
	visit(NewCommand([]string{pluginProgram}))
}
