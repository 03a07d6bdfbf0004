package database

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

func TestClassifySQLSTATE(t *testing.T) {
	tests := []struct {
		code, message string
		class         Class
		reason        string
	}{
		{"08006", "connection failure", Transient, ReasonUnreachable},
		{"28P01", "password authentication failed", WaitingOnUser, ReasonAuthenticationFailed},
		{"28000", "role is not permitted to log in", WaitingOnUser, ReasonAuthenticationFailed},
		{"28000", `no pg_hba.conf entry for host "10.0.0.1", user "u", database "d", no encryption`, WaitingOnUser, ReasonTLSFailed},
		{"28000", `no pg_hba.conf entry for host "10.0.0.1", user "u", database "d", SSL off`, WaitingOnUser, ReasonTLSFailed},
		{"28000", `no pg_hba.conf entry for host "10.0.0.1", user "u", database "d", SSL encryption`, WaitingOnUser, ReasonAuthenticationFailed},
		{"3D000", "database does not exist", WaitingOnUser, ReasonDatabaseNotFound},
		{"57P04", "database was dropped", WaitingOnUser, ReasonDatabaseNotFound},
		{"42501", "permission denied for table inbox", WaitingOnUser, ReasonPermissionDenied},
		{"25006", "cannot execute DELETE in a read-only transaction", WaitingOnUser, ReasonReadOnly},
		{"53300", "too many clients already", Transient, ReasonTooManyConnections},
		{"53100", "disk full", Transient, ReasonUnexpectedError},
		{"55P03", "lock timeout", Transient, ReasonLockTimeout},
		{"57014", "statement timeout", Transient, ReasonStatementTimeout},
		{"57P01", "terminating connection due to administrator command", Transient, ReasonUnreachable},
		{"57P02", "crash shutdown", Transient, ReasonUnreachable},
		{"57P03", "the database system is starting up", Transient, ReasonUnreachable},
		{"25P03", "idle-in-transaction timeout", Transient, ReasonUnreachable},
		{"40001", "could not serialize access", Transient, ReasonUnexpectedError},
		{"40P01", "deadlock detected", Transient, ReasonUnexpectedError},
		{"42P01", "relation does not exist", Terminal, ReasonUnexpectedError},
		{"42703", "column does not exist", Terminal, ReasonUnexpectedError},
		{"23505", "duplicate key", Terminal, ReasonUnexpectedError},
		{"0A000", "not supported", Terminal, ReasonUnsupportedServer},
		{"XX001", "data corrupted", Transient, ReasonUnexpectedError},
		{"P0001", "raised by a trigger", Transient, ReasonUnexpectedError},
		{"", "no code", Transient, ReasonUnexpectedError},
		{"08P01", "unsupported startup parameter: options", WaitingOnUser, ReasonInvalidURL},
		{"08P01", "no such user: u", WaitingOnUser, ReasonAuthenticationFailed},
		{"08P01", "SASL authentication failed", WaitingOnUser, ReasonAuthenticationFailed},
		{"08P01", `role "u" does not exist`, WaitingOnUser, ReasonAuthenticationFailed},
		{"08P01", `database "d" does not exist`, WaitingOnUser, ReasonDatabaseNotFound},
		{"08P01", "no such database: d", WaitingOnUser, ReasonDatabaseNotFound},
		{"08P01", "SSL required", WaitingOnUser, ReasonTLSFailed},
		{"08P01", "no more connections allowed (max_client_conn)", Transient, ReasonTooManyConnections},
		{"08P01", "query_wait_timeout", Transient, ReasonTooManyConnections},
		{"08P01", "server login has been failing, try again later", Transient, ReasonUnreachable},
	}
	for _, test := range tests {
		t.Run(test.code+" "+test.message, func(t *testing.T) {
			f := Classify(fmt.Errorf("prune: %w", &pgconn.PgError{Code: test.code, Message: test.message}))
			if f.Class != test.class || f.Reason != test.reason {
				t.Errorf("got %+v", f)
			}
			if !strings.Contains(f.Message, fmt.Sprintf("%q (SQLSTATE %s)", test.message, test.code)) {
				t.Errorf("the server's words are missing: %s", f.Message)
			}
		})
	}
}

func TestClassifyOtherErrors(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		class  Class
		reason string
		says   string
	}{
		{"a URL", invalid("the URL is empty"), WaitingOnUser, ReasonInvalidURL, "the URL is empty"},
		{"a URL of another database", &URLError{Reason: ReasonUnsupportedDatabase, Message: "MySQL"}, Terminal, ReasonUnsupportedDatabase, "MySQL"},
		{"an old server", Facts{VersionNum: 120022}.Check(), Terminal, ReasonUnsupportedServer, "PostgreSQL 12, 13 or later is needed"},
		{"a replica", Facts{VersionNum: 150000, InRecovery: true, ReadOnly: true}.Check(), WaitingOnUser, ReasonReadOnly, "read-only replica"},
		{"a read-only role", Facts{VersionNum: 150000, ReadOnly: true}.Check(), WaitingOnUser, ReasonReadOnly, "default_transaction_read_only"},
		{"a refused connection", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, Transient, ReasonUnreachable, "connection refused"},
		{"a name that does not resolve", &net.DNSError{Name: "db", IsNotFound: true}, Transient, ReasonUnreachable, `"db" does not resolve`},
		{"a name server that does not answer", &net.DNSError{Name: "db", IsTimeout: true}, Transient, ReasonUnreachable, "no answer in time"},
		{"a deadline", context.DeadlineExceeded, Transient, ReasonUnreachable, "no answer in time"},
		{"a cancelled context", context.Canceled, Transient, ReasonUnexpectedError, "cancelled"},
		{"a lost connection", io.ErrUnexpectedEOF, Transient, ReasonUnreachable, "the connection was lost"},
		{"a closed connection", pgconn.ErrConnClosed, Transient, ReasonUnreachable, "the connection was lost"},
		{"a pool whose connections are all lost", errors.New("pgxpool: too many failed attempts acquiring connection; likely bug in PrepareConn, BeforeAcquire, or ShouldPing hook"),
			Transient, ReasonUnreachable, "one connection after the other was lost"},
		{"a closed pool", puddle.ErrClosedPool, Transient, ReasonUnreachable, "pool was closed"},
		{"an expired certificate", x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}, WaitingOnUser, ReasonTLSFailed, "expired"},
		{"an alert of TLS", errors.New("remote error: tls: certificate required"), WaitingOnUser, ReasonTLSFailed, "certificate required"},
		{"anything else", errors.New("what\nis this"), Transient, ReasonUnexpectedError, "what is this"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := Classify(fmt.Errorf("inspect: %w", test.err))
			if f.Class != test.class || f.Reason != test.reason || !strings.Contains(f.Message, test.says) {
				t.Errorf("got %s, %s: %s", f.Class, f.Reason, f.Message)
			}
		})
	}
	if f := Classify(nil); f != (Failure{}) {
		t.Errorf("no error is %+v", f)
	}
}

func TestServerThatRepeatsThePasswordIsNotQuoted(t *testing.T) {
	c, err := Parse("postgresql://u:hunter22@h/d")
	if err != nil {
		t.Fatal(err)
	}
	for _, cause := range []error{
		&pgconn.PgError{Code: "28000", Message: "hunter22 is wrong"},
		errors.New("got hunter22"),
	} {
		err := fmt.Errorf("assess: %w", &ConnectError{config: c, cause: cause})
		for _, text := range []string{err.Error(), Classify(err).Message} {
			if strings.Contains(text, "hunter22") || !strings.Contains(text, "h:5432/d as u: ") || !strings.Contains(text, "(redacted)") {
				t.Errorf("got %s", text)
			}
		}
	}
}

func TestLongServerTextIsCut(t *testing.T) {
	f := Classify(&pgconn.PgError{Code: "XX000", Message: strings.Repeat("x", 10_000)})
	if len(f.Message) > 500 {
		t.Errorf("%d characters", len(f.Message))
	}
}

func TestTargetOfPgxIsThatOfTheConfig(t *testing.T) {
	for _, raw := range []string{"postgresql://u:p@h/d", "postgresql://u:p@a,b:5433/d", "postgresql://u:p@[::1]/d?sslmode=disable"} {
		c, err := Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := targetOf(&c.pgx.Config); got != c.String() {
			t.Errorf("got %s, want %s", got, c)
		}
	}
}
