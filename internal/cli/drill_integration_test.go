//go:build integration

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/drill"
	"github.com/messaginginbox/operator/test/postgres"
)

const drilledTable = `CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL,
	processed_at timestamp(0) NOT NULL, PRIMARY KEY (transport, message_id))`

// drilledDatabase is the URL of a database with what the statements make.
func drilledDatabase(t *testing.T, statements ...string) string {
	t.Helper()
	url := postgres.Shared(t).NewDatabase(t)
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(t.Context()) }()
	for _, statement := range statements {
		if _, err := connection.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return url
}

func drillReport(t *testing.T, text string) drill.Report {
	t.Helper()
	var report drill.Report
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return report
}

func withHandlers(c *exec.Cmd, urls ...string) *exec.Cmd {
	for i, url := range urls {
		c.Env = append(c.Env, handlerURLPrefix+string(rune('0'+i))+"="+url)
	}
	return c
}

func TestDrillAsAProcess(t *testing.T) {
	good := drilledDatabase(t, drilledTable)
	for name, test := range map[string]struct {
		url      string
		handlers []string
		code     int
		reason   string
	}{
		"proven":                            {good, nil, 0, drill.ReasonProven},
		"proven through two handlers":       {good, []string{good, strings.Replace(good, "127.0.0.1", "localhost", 1)}, 0, drill.ReasonProven},
		"broken":                            {drilledDatabase(t, drilledTable, `CREATE RULE swallow AS ON INSERT TO messenger_inbox DO INSTEAD NOTHING`), nil, 4, drill.ReasonInsertSwallowed},
		"no table":                          {drilledDatabase(t), nil, 4, "TableMissing"},
		"a handler that commits elsewhere":  {good, []string{drilledDatabase(t, drilledTable)}, 4, "OtherDatabase"},
		"nobody at the other end":           {"postgresql://app:hunter2@127.0.0.1:1/app", nil, 3, "Unreachable"},
		"no URL":                            {"", nil, 3, "InvalidURL"},
		"a handler's URL that is not a URL": {good, []string{"postgresql://app:hunter2@[/app"}, 3, "InvalidURL"},
		"another database":                  {"mysql://app:hunter2@db/app", nil, 3, "UnsupportedDatabase"},
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "termination-log")
			ended := finish(t, withHandlers(command(test.url, "drill", "--termination-log", log), test.handlers...), nil)
			report := drillReport(t, ended.stdout)
			if ended.code != test.code || report.Reason != test.reason {
				t.Errorf("exit code %d, reason %s, want %d, %s: %s%s", ended.code, report.Reason, test.code, test.reason, ended.stdout, ended.stderr)
			}
			if wanted := 7 + 7*len(test.handlers); test.code == 0 && len(report.Checks)+report.ChecksOmitted != wanted {
				t.Errorf("%d checks, want %d", len(report.Checks)+report.ChecksOmitted, wanted)
			}
			written, err := os.ReadFile(log)
			if err != nil || strings.TrimSpace(ended.stdout) != string(written) || len(written) >= 4096 {
				t.Errorf("the termination log has %d bytes, %v: %s", len(written), err, written)
			}
			if strings.Contains(ended.stdout+ended.stderr, "hunter2") {
				t.Errorf("the password is shown: %s%s", ended.stdout, ended.stderr)
			}
		})
	}
}

func TestDrillAsATable(t *testing.T) {
	ended := finish(t, command(drilledDatabase(t, drilledTable), "drill", "-o", "table"), nil)
	for _, text := range []string{"CONNECTION", "two workers, first commits", "passed", "Proven (Proven). All 7 checks passed."} {
		if ended.code != 0 || !strings.Contains(ended.stdout, text) {
			t.Errorf("exit code %d, and %q is not in %s%s", ended.code, text, ended.stdout, ended.stderr)
		}
	}
	if ended := finish(t, command("", "drill", "-o", "yaml"), nil); ended.code != 1 || !strings.Contains(ended.stderr, "--output") {
		t.Errorf("exit code %d: %s", ended.code, ended.stderr)
	}
}

func TestDrillThatIsTerminatedStopsAndLeavesNothing(t *testing.T) {
	url := drilledDatabase(t, drilledTable)
	holder, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(t.Context()) }()
	if _, err := holder.Exec(t.Context(), `BEGIN; LOCK TABLE messenger_inbox`); err != nil {
		t.Fatal(err)
	}
	ended := finish(t, command(url, "drill"), func(process *os.Process) {
		waits := false
		for deadline := time.Now().Add(30 * time.Second); !waits && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			err := holder.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'messenger_inbox'::regclass)`).Scan(&waits)
			if err != nil {
				t.Error(err)
				break
			}
		}
		if err := process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
	})
	if report := drillReport(t, ended.stdout); ended.code != 3 || report.Reason != drill.ReasonInterrupted {
		t.Errorf("exit code %d, %s: %s", ended.code, report.Reason, ended.stdout)
	}
}

func TestCheckWithADatabaseLooksForTheBusinessKeys(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "inbox.yaml")
	content := `{apiVersion: messaginginbox.dev/v1alpha1, kind: MessagingInbox, metadata: {name: orders}, spec: {database: {urlSecretRef: {name: database}},
		transports: [{name: orders, type: amqp}], businessKeys: [{table: payments, columns: [attempt]}]}}`
	if err := os.WriteFile(manifest, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		statement string
		code      int
		says      string
	}{
		"one that no index enforces": {`CREATE TABLE payments (attempt text NOT NULL)`, 1, `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."payments" ("attempt")`},
		"one that is enforced":       {`CREATE TABLE payments (attempt text PRIMARY KEY)`, 0, "KeysEnforced"},
	} {
		t.Run(name, func(t *testing.T) {
			ended := finish(t, command(drilledDatabase(t, drilledTable, test.statement), "check", "-f", manifest), nil)
			if ended.code != test.code || !strings.Contains(ended.stdout, test.says) {
				t.Errorf("exit code %d, want %d and %q: %s%s", ended.code, test.code, test.says, ended.stdout, ended.stderr)
			}
		})
	}
}
