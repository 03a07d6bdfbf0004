//go:build integration

package database_test

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestConnectSetsTheLimitsOfTheSession(t *testing.T) {
	connection := connect(t, parse(t, postgres.Shared(t).NewDatabase(t)), database.Limits{StatementTimeout: 7 * time.Second, ApplicationName: "drill"})
	for setting, want := range map[string]string{
		"statement_timeout": "7s", "lock_timeout": "2s", "idle_in_transaction_session_timeout": "30s",
		"TimeZone": "UTC", "client_encoding": "UTF8", "application_name": "drill",
	} {
		if got := show(t, connection, setting); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
}

func TestFailuresToConnect(t *testing.T) {
	s := postgres.Shared(t)
	execute(t, connect(t, parse(t, s.URL("postgres")), database.Limits{}),
		"CREATE ROLE limited LOGIN PASSWORD 'p' CONNECTION LIMIT 0",
		"CREATE ROLE barred LOGIN PASSWORD 'p'", "CREATE DATABASE private", "REVOKE CONNECT ON DATABASE private FROM PUBLIC")
	address := strings.TrimPrefix(closedPort(t), "127.0.0.1:")
	tests := []struct {
		name, url string
		class     database.Class
		reason    string
		says      []string
	}{
		{"a wrong password", s.URLFor("postgres", "hunter22", "postgres"), database.WaitingOnUser, database.ReasonAuthenticationFailed,
			[]string{s.Host(), "postgres as postgres: wrong password", "28P01"}},
		{"an unknown user", s.URLFor("nobody", "hunter22", "postgres"), database.WaitingOnUser, database.ReasonAuthenticationFailed, []string{"as nobody"}},
		{"an unknown database", s.URL("no_such"), database.WaitingOnUser, database.ReasonDatabaseNotFound, []string{"create it", `no_such`}},
		{"a database without CONNECT", s.URLFor("barred", "p", "private"), database.WaitingOnUser, database.ReasonPermissionDenied, []string{"GRANT"}},
		{"too many connections", s.URLFor("limited", "p", "postgres"), database.Transient, database.ReasonTooManyConnections, []string{"CONNECTION LIMIT"}},
		{"a server without TLS", withOption(t, s.URL("postgres"), "sslmode", "require"), database.WaitingOnUser, database.ReasonTLSFailed,
			[]string{"does not offer TLS"}},
		{"a closed port", "postgresql://u:hunter22@127.0.0.1:" + address + "/d", database.Transient, database.ReasonUnreachable,
			[]string{"127.0.0.1:" + address + "/d as u: cannot reach the server (connection refused)"}},
		{"a silent host", "postgresql://u:hunter22@" + silentHost(t) + "/d?connect_timeout=1", database.Transient, database.ReasonUnreachable,
			[]string{"no answer in time"}},
		{"a host name that does not resolve", "postgresql://u:hunter22@no-such-host.invalid/d", database.Transient, database.ReasonUnreachable,
			[]string{"no-such-host.invalid:5432/d as u: "}},
		{"no host that takes writes", withOption(t, s.URL("postgres"), "target_session_attrs", "standby"), database.WaitingOnUser, database.ReasonReadOnly,
			[]string{"target_session_attrs"}},
		{"an option that the server does not know", withOption(t, s.URL("postgres"), "options", "-c no_such=1"), database.Terminal,
			database.ReasonUnexpectedError, []string{"no_such"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := failure(t, parse(t, test.url))
			if f.Class != test.class || f.Reason != test.reason {
				t.Errorf("got %s, %s: %s", f.Class, f.Reason, f.Message)
			}
			for _, words := range test.says {
				if !strings.Contains(f.Message, words) {
					t.Errorf("%q is not in: %s", words, f.Message)
				}
			}
			if strings.Contains(f.Message, "hunter22") {
				t.Errorf("the message has the password: %s", f.Message)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	s := postgres.Run(t, postgres.Options{ListenAddress: "0.0.0.0", TLS: true, HBA: []string{"hostnossl all all all reject"}})
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	wrongCA := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	plain := strings.Split(s.URL("postgres"), "?")[0] + "?sslmode="
	otherName := strings.Replace(plain, "127.0.0.1", "127.0.0.2", 1)

	accepted := []struct {
		name, url string
		ca        []byte
	}{
		{"verify-full with the CA as a file", s.URL("postgres"), nil},
		{"verify-full with the CA", plain + "verify-full", s.CAPEM()},
		{"verify-ca by another name", otherName + "verify-ca", s.CAPEM()},
		{"require with the CA by another name", otherName + "require", s.CAPEM()},
		{"prefer with the CA", plain + "prefer", s.CAPEM()},
		{"require without a CA", plain + "require", nil},
		{"prefer without a CA", plain + "prefer", nil},
	}
	for _, test := range accepted {
		t.Run(test.name, func(t *testing.T) {
			var encrypted bool
			err := connect(t, withCA(t, parse(t, test.url), test.ca), database.Limits{}).
				QueryRow(t.Context(), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&encrypted)
			if err != nil || !encrypted {
				t.Errorf("encrypted %t, %v", encrypted, err)
			}
		})
	}

	refused := []struct {
		name, url string
		ca        []byte
		says      string
	}{
		{"no encryption", plain + "disable", nil, "accepts only encrypted connections"},
		{"verify-full by another name", otherName + "verify-full", s.CAPEM(), "another host name"},
		{"verify-full with the wrong CA", plain + "verify-full", wrongCA, "authority that is not trusted"},
		{"verify-ca with the wrong CA", plain + "verify-ca", wrongCA, "authority that is not trusted"},
		{"require with the wrong CA", plain + "require", wrongCA, "authority that is not trusted"},
		{"prefer with the wrong CA", plain + "prefer", wrongCA, "authority that is not trusted"},
		{"verify-full with the system's authorities", plain + "verify-full&sslrootcert=system", nil, "authority that is not trusted"},
	}
	for _, test := range refused {
		t.Run(test.name, func(t *testing.T) {
			f := failure(t, withCA(t, parse(t, test.url), test.ca))
			if f.Class != database.WaitingOnUser || f.Reason != database.ReasonTLSFailed || !strings.Contains(f.Message, test.says) {
				t.Errorf("got %s, %s: %s", f.Class, f.Reason, f.Message)
			}
		})
	}
}

func withCA(t *testing.T, c *database.Config, ca []byte) *database.Config {
	t.Helper()
	if ca == nil {
		return c
	}
	trusting, err := c.WithCA(ca)
	if err != nil {
		t.Fatal(err)
	}
	if trusting.Fingerprint() == c.Fingerprint() {
		t.Error("the CA does not change the fingerprint")
	}
	return trusting
}

func TestFailuresOfQueries(t *testing.T) {
	s := postgres.Shared(t)
	url := s.NewDatabase(t)
	owner := connect(t, parse(t, url), database.Limits{})
	execute(t, owner, "CREATE TABLE inbox (id int)", "CREATE TABLE private (id int)", "CREATE ROLE reader LOGIN PASSWORD 'p'")
	reader := connect(t, parse(t, s.URLFor("reader", "p", parse(t, url).Database())), database.Limits{})
	hasty := connect(t, parse(t, url), database.Limits{StatementTimeout: 500 * time.Millisecond, LockTimeout: 50 * time.Millisecond})
	readOnly := connect(t, parse(t, withOption(t, url, "options", "-c default_transaction_read_only=on")), database.Limits{})
	lock, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	execute(t, lock, "LOCK TABLE inbox")

	tests := []struct {
		name, sql string
		on        database.Querier
		class     database.Class
		reason    string
	}{
		{"a statement that takes too long", "SELECT pg_sleep(30)", hasty, database.Transient, database.ReasonStatementTimeout},
		{"a lock held by another session", "DELETE FROM inbox", hasty, database.Transient, database.ReasonLockTimeout},
		{"a missing privilege", "SELECT * FROM private", reader, database.WaitingOnUser, database.ReasonPermissionDenied},
		{"a read-only session", "CREATE TABLE other (id int)", readOnly, database.WaitingOnUser, database.ReasonReadOnly},
		{"a table that is missing", "SELECT * FROM no_such", hasty, database.Terminal, database.ReasonUnexpectedError},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.on.Exec(t.Context(), test.sql)
			if f := database.Classify(err); f.Class != test.class || f.Reason != test.reason {
				t.Errorf("got %s, %s: %s", f.Class, f.Reason, f.Message)
			}
		})
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestApplyLocalEndsWithTheTransaction(t *testing.T) {
	connection := connect(t, parse(t, postgres.Shared(t).NewDatabase(t)), database.Limits{})
	tx, err := connection.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := (database.Limits{LockTimeout: 123 * time.Millisecond}).ApplyLocal(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if got := show(t, tx, "lock_timeout"); got != "123ms" {
		t.Errorf("lock_timeout is %s in the transaction", got)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := show(t, connection, "lock_timeout"); got != "2s" {
		t.Errorf("lock_timeout is %s after the transaction", got)
	}
}
