//go:build integration

package cli

import (
	"fmt"
	"os"
	"testing"

	"github.com/messaginginbox/operator/test/postgres"
)

// runAsCommand makes the test binary behave as the command inbox, so that tests see true
// exit codes and send true signals.
const runAsCommand = "INBOX_TEST_RUN_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(runAsCommand) != "" {
		err := NewRootCommand().Execute()
		if err != nil {
			fmt.Fprintln(os.Stderr, "inbox:", err)
		}
		os.Exit(ExitCode(err))
	}
	os.Exit(postgres.Main(m, postgres.Options{}))
}
