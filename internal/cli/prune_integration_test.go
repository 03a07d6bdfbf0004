//go:build integration

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/pruner"
	"github.com/messaginginbox/operator/test/postgres"
)

// outcome is what a run of the command left.
type outcome struct {
	code           int
	stdout, stderr string
}

// command is inbox with the arguments, and with the URL in its environment.
func command(url string, arguments ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], arguments...) // #nosec G204 -- this test binary
	c.Env = append(os.Environ(), runAsCommand+"=1", databaseURLVariable+"="+url)
	return c
}

func finish(t *testing.T, c *exec.Cmd, meanwhile func(*os.Process)) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile(c.Process)
	}
	err := c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{code: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// report is the one JSON object on standard output.
func (o outcome) report(t *testing.T) pruner.Report {
	t.Helper()
	var r pruner.Report
	decoder := json.NewDecoder(strings.NewReader(o.stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil || strings.Count(o.stdout, "\n") != 1 {
		t.Fatalf("standard output is not one JSON object on one line (%v): %s%s", err, o.stdout, o.stderr)
	}
	return r
}

// newExpiredInbox is a database with an inbox of expired records, one a second, and ten fresh ones.
func newExpiredInbox(t *testing.T, records int) string {
	t.Helper()
	url := postgres.Shared(t).NewDatabase(t)
	expireInbox(t, url, records)
	return url
}

// expireInbox makes an inbox with so many expired records and ten new ones.
func expireInbox(t *testing.T, url string, records int) {
	t.Helper()
	execute(t, url, `CREATE TABLE messenger_inbox (transport varchar(190), message_id varchar(255), processed_at timestamp(0) NOT NULL, PRIMARY KEY (transport, message_id))`)
	execute(t, url, `CREATE INDEX messenger_inbox_processed_at_idx ON messenger_inbox (processed_at)`)
	execute(t, url, `INSERT INTO messenger_inbox SELECT 'orders', n::text, now() - interval '8 days' - n * interval '1 second' FROM generate_series(1, $1::int) n`, records)
	execute(t, url, `INSERT INTO messenger_inbox SELECT 'mails', n::text, now() FROM generate_series(1, 10) n`)
}

func execute(t *testing.T, url, statement string, arguments ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), statement, arguments...)
	if err = errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func recordsLeft(t *testing.T, url string) int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	err = conn.QueryRow(t.Context(), "SELECT count(*) FROM messenger_inbox").Scan(&n)
	if err = errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPruneExitCodesAndReports(t *testing.T) {
	cases := []struct {
		name      string
		arguments []string
		code      int
		result    string
		reason    string
		deleted   int64
		left      int64
	}{
		{"all that is expired", []string{"--retention=168h", "--required-window=140h"}, 0, "Done", "Completed", 3000, 10},
		{"a dry run", []string{"--retention=168h", "--required-window=168h", "--dry-run"}, 0, "Done", "Completed", 3000, 3010},
		{"a window of 0 when nothing comes back", []string{"--retention=1h", "--required-window=0s"}, 0, "Done", "Completed", 3000, 10},
		{"a retention below the window", []string{"--retention=168h", "--required-window=169h"}, 4, "Refused", "TooShort", 0, 3010},
		{"another table", []string{"--retention=168h", "--required-window=140h", "--table=outbox"}, 4, "Refused", "TableMissing", 0, 3010},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			url := newExpiredInbox(t, 3000)
			o := finish(t, command(url, append([]string{"prune"}, c.arguments...)...), nil)
			r := o.report(t)
			if o.code != c.code || r.Result != c.result || r.Reason != c.reason || r.RowsDeleted != c.deleted {
				t.Errorf("exit code %d, %s/%s, %d rows; want %d, %s/%s, %d\n%s%s", o.code, r.Result, r.Reason, r.RowsDeleted, c.code, c.result, c.reason, c.deleted, o.stdout, o.stderr)
			}
			if left := recordsLeft(t, url); left != c.left {
				t.Errorf("%d records are left, want %d", left, c.left)
			}
			if c.code != 0 && !strings.Contains(o.stderr, r.Message) {
				t.Errorf("standard error does not say why: %s", o.stderr)
			}
		})
	}
}

func TestPruneStopsAtItsTimeLimit(t *testing.T) {
	url := newExpiredInbox(t, 3000)
	arguments := []string{"prune", "--retention=168h", "--required-window=140h", "--batch-size=50", "--pace=100ms", "--max-duration=500ms"}
	o := finish(t, command(url, arguments...), nil)
	if r := o.report(t); o.code != 3 || r.Result != "TimeLimit" || r.RowsDeleted == 0 || r.RowsDeleted == 3000 {
		t.Errorf("exit code %d, %s%s", o.code, o.stdout, o.stderr)
	}
	o = finish(t, command(url, append(arguments, "--time-limit-exit-code=0")...), nil)
	if r := o.report(t); o.code != 0 || r.Result != "TimeLimit" {
		t.Errorf("with --time-limit-exit-code=0: exit code %d, %s%s", o.code, o.stdout, o.stderr)
	}
}

func TestPruneStopsCleanlyOnASignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			url := newExpiredInbox(t, 3000)
			c := command(url, "prune", "--retention=168h", "--required-window=140h", "--batch-size=20", "--pace=100ms")
			o := finish(t, c, func(process *os.Process) {
				for deadline := time.Now().Add(20 * time.Second); recordsLeft(t, url) == 3010; {
					if time.Now().After(deadline) {
						t.Fatal("the run deleted nothing")
					}
					time.Sleep(10 * time.Millisecond)
				}
				if err := process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			})
			r := o.report(t)
			if o.code != 3 || r.Reason != pruner.ReasonInterrupted || recordsLeft(t, url) != 3010-r.RowsDeleted {
				t.Errorf("exit code %d with %d records left: %s%s", o.code, recordsLeft(t, url), o.stdout, o.stderr)
			}
		})
	}
}

func TestPruneWritesTheTerminationLog(t *testing.T) {
	url := newExpiredInbox(t, 5)
	log := filepath.Join(t.TempDir(), "termination-log")
	o := finish(t, command(url, "prune", "--retention=168h", "--required-window=140h", "--termination-log="+log), nil)
	written, err := os.ReadFile(log) // #nosec G304 -- our own file
	if err != nil || string(written)+"\n" != o.stdout {
		t.Errorf("%v: %s, standard output %s", err, written, o.stdout)
	}
}

func TestPruneNeverShowsThePassword(t *testing.T) {
	const password = "S3cret/P4ss"
	server := postgres.Shared(t)
	for name, url := range map[string]string{
		"wrong password":   server.URLFor(postgres.Superuser, password, "postgres"),
		"nobody listens":   "postgresql://user:" + strings.ReplaceAll(password, "/", "%2F") + "@127.0.0.1:1/app",
		"not a URL":        "postgresql://user:" + password + "@host:port:port/app",
		"another database": "mysql://user:" + password + "@host/app",
		"database is gone": server.URLFor(postgres.Superuser, server.Password(), "gone"),
	} {
		t.Run(name, func(t *testing.T) {
			o := finish(t, command(url, "prune", "--retention=168h", "--required-window=140h"), nil)
			r := o.report(t)
			if o.code != 1 || r.Result != "Failed" || r.Reason == "" || r.Message == "" || o.stderr == "" {
				t.Errorf("exit code %d: %s%s", o.code, o.stdout, o.stderr)
			}
			for _, secret := range []string{password, strings.ReplaceAll(password, "/", "%2F"), server.Password()} {
				if strings.Contains(o.stdout+o.stderr, secret) {
					t.Errorf("the password shows: %s%s", o.stdout, o.stderr)
				}
			}
		})
	}
}

func TestPruneUsage(t *testing.T) {
	for name, c := range map[string]struct {
		arguments []string
		says      string
	}{
		"no retention":      {[]string{"--required-window=1h"}, "retention"},
		"no window":         {[]string{"--retention=1h"}, "required-window"},
		"not a duration":    {[]string{"--retention=7d", "--required-window=1h"}, "7d"},
		"an argument":       {[]string{"--retention=1h", "--required-window=1h", "orders"}, "orders"},
		"no such exit code": {[]string{"--retention=1h", "--required-window=1h", "--time-limit-exit-code=300"}, "300"},
	} {
		t.Run(name, func(t *testing.T) {
			o := finish(t, command("", append([]string{"prune"}, c.arguments...)...), nil)
			if o.code != 1 || !strings.Contains(o.stderr, c.says) {
				t.Errorf("exit code %d: %s", o.code, o.stderr)
			}
		})
	}
	t.Run("no URL", func(t *testing.T) {
		o := finish(t, command("", "prune", "--retention=1h", "--required-window=1h", "--database-url-env=OTHER_URL"), nil)
		if o.code != 1 || !strings.Contains(o.stderr, "OTHER_URL") {
			t.Errorf("exit code %d: %s", o.code, o.stderr)
		}
	})
}

func TestPruneVerifiesTheServerWithTheGivenAuthority(t *testing.T) {
	server := postgres.Run(t, postgres.Options{TLS: true})
	execute(t, server.URL("postgres"), `CREATE TABLE messenger_inbox (transport varchar(190), message_id varchar(255), processed_at timestamptz NOT NULL, PRIMARY KEY (transport, message_id))`)
	// Without sslrootcert the authority comes from the environment alone.
	url := strings.Split(server.URL("postgres"), "?")[0] + "?sslmode=verify-full"
	arguments := []string{"prune", "--retention=1h", "--required-window=1h"}
	if o := finish(t, command(url, arguments...), nil); o.code != 1 || o.report(t).Reason != "TLSFailed" {
		t.Errorf("without the authority: exit code %d, %s%s", o.code, o.stdout, o.stderr)
	}
	trusting := command(url, arguments...)
	trusting.Env = append(trusting.Env, databaseCAVariable+"="+string(server.CAPEM()))
	if o := finish(t, trusting, nil); o.code != 0 {
		t.Errorf("with the authority: exit code %d, %s%s", o.code, o.stdout, o.stderr)
	}
}
