package cli

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// runAsCommand makes the test binary behave as the command inbox, so that tests see true
// exit codes and send true signals.
const runAsCommand = "INBOX_TEST_RUN_AS_COMMAND"

// testRun is the run of the tests; the integration tests put a database around it.
type testRun func() int

// Run runs the tests.
func (run testRun) Run() int { return run() }

var aroundTests = func(m *testing.M) testRun { return m.Run }

func TestMain(m *testing.M) {
	if os.Getenv(runAsCommand) != "" {
		os.Exit(inbox())
	}
	command := func() { os.Exit(inbox()) }
	testscript.Main(aroundTests(m), map[string]func(){"inbox": command, pluginProgram: command, completionProgram: command})
}

// inbox is the command, as main.go runs it.
func inbox() int {
	err := NewCommand(os.Args).Execute()
	if err != nil {
		fmt.Fprintln(os.Stderr, "inbox:", err)
	}
	return ExitCode(err)
}

// TestScripts runs the scenarios of testdata, one readable file each.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != ""})
}
