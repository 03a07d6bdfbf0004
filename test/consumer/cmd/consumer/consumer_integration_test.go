//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/messaginginbox/operator/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m, postgres.Options{})) }

// application is a database and the built command.
type application struct {
	t       *testing.T
	program string
	url     string
}

func newApplication(t *testing.T) *application {
	t.Helper()
	a := &application{t: t, program: filepath.Join(t.TempDir(), "consumer"), url: postgres.Shared(t).NewDatabase(t)}
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", a.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return a
}

// run returns the printed object, the exit code and what went to stderr.
func (a *application) run(arguments ...string) (result map[string]any, code int, complaint string) {
	a.t.Helper()
	command := exec.CommandContext(a.t.Context(), a.program, arguments...)
	command.Env = append(os.Environ(), urlVariable+"="+a.url)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		a.t.Fatal(err)
	}
	if len(output) > 0 {
		if err := json.Unmarshal(output, &result); err != nil {
			a.t.Fatalf("%v: %s", err, output)
		}
	}
	return result, command.ProcessState.ExitCode(), stderr.String()
}

func (a *application) sql(statement string) {
	a.t.Helper()
	command := exec.CommandContext(a.t.Context(), "psql", "-v", "ON_ERROR_STOP=1", "-qc", statement, a.url)
	if output, err := command.CombinedOutput(); err != nil {
		a.t.Fatalf("%v\n%s", err, output)
	}
}

func (a *application) expect(arguments []string, code int, expected map[string]any) {
	a.t.Helper()
	result, got, complaint := a.run(arguments...)
	if got != code {
		a.t.Fatalf("%s: exit code %d instead of %d\n%s", strings.Join(arguments, " "), got, code, complaint)
	}
	for key, value := range expected {
		if result[key] != value {
			a.t.Errorf("%s: %s is %v instead of %v in %v\n%s", strings.Join(arguments, " "), key, result[key], value, result, complaint)
		}
	}
}

const inboxTable = `CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL,
	processed_at timestamp(0) NOT NULL, PRIMARY KEY (transport, message_id))`

func TestLostAcknowledgementsComeBackAndAreSkipped(t *testing.T) {
	a := newApplication(t)
	a.sql(inboxTable)
	a.expect([]string{"publish", "--count", "6"}, 0, map[string]any{"published": 6.0})
	a.expect([]string{"consume", "--lose-acks", "2", "--redeliver-timeout", "1s"}, 0,
		map[string]any{"handled": 6.0, "skipped": 2.0, "lostAcks": 2.0, "failed": 0.0, "discarded": 0.0, "waiting": 0.0})
	a.expect([]string{"report"}, 0, map[string]any{"shipments": 6.0, "ordersShippedTwice": 0.0, "proofs": 6.0, "waiting": 0.0})
}

func TestOrderIsShippedTwiceWhenItsProofIsGone(t *testing.T) {
	a := newApplication(t)
	a.sql(inboxTable)
	a.expect([]string{"publish", "--count", "1"}, 0, nil)
	a.expect([]string{"consume", "--lose-acks", "1", "--max-duration", "2s"}, 3,
		map[string]any{"handled": 1.0, "skipped": 0.0, "lostAcks": 1.0, "waiting": 1.0})
	a.sql("DELETE FROM messenger_inbox")
	a.expect([]string{"consume", "--redeliver-timeout", "1s"}, 0, map[string]any{"handled": 1.0, "skipped": 0.0, "waiting": 0.0})
	a.expect([]string{"report"}, 0, map[string]any{"shipments": 2.0, "ordersShippedTwice": 1.0})
}

func TestFailingHandlerIsRetriedThenDiscarded(t *testing.T) {
	a := newApplication(t)
	a.sql(inboxTable)
	a.expect([]string{"publish", "--count", "1"}, 0, nil)
	a.sql("ALTER TABLE shipments ADD CHECK (false) NOT VALID")
	a.expect([]string{"consume"}, 0, map[string]any{"handled": 0.0, "failed": 4.0, "discarded": 1.0, "waiting": 0.0})
	a.expect([]string{"report"}, 0, map[string]any{"shipments": 0.0, "proofs": 0.0})
}

func TestConsumerDoesNotMakeTheInbox(t *testing.T) {
	a := newApplication(t)
	a.expect([]string{"publish", "--count", "1"}, 0, nil)
	if _, code, complaint := a.run("consume"); code != 1 || !strings.Contains(complaint, "messenger_inbox") {
		t.Errorf("exit code %d, %s", code, complaint)
	}
}

func TestProofIsDatedInUTCWhateverTheTimeZones(t *testing.T) {
	t.Setenv("TZ", "Asia/Tokyo")
	for _, column := range []string{"timestamp(0) without time zone", "timestamp with time zone"} {
		t.Run(column, func(t *testing.T) {
			a := newApplication(t)
			a.sql(strings.Replace(inboxTable, "timestamp(0)", column, 1))
			a.sql(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''America/New_York''', current_database()); END $$`)
			a.expect([]string{"publish", "--count", "1"}, 0, nil)
			a.expect([]string{"consume"}, 0, map[string]any{"handled": 1.0})
			// Without time zone the column holds UTC, which is what this session takes it for.
			a.sql(`SET timezone = 'UTC'; DO $$ BEGIN
				ASSERT (SELECT processed_at BETWEEN now() - interval '5 minutes' AND now() + interval '1 second' FROM messenger_inbox); END $$`)
		})
	}
}
