//go:build integration

package database_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/test/postgres"
)

// startPgBouncer runs PgBouncer in transaction mode with one connection to the server, and
// returns its address.
func startPgBouncer(t *testing.T, s *postgres.Server) string {
	t.Helper()
	binary := "/usr/sbin/pgbouncer"
	if _, err := os.Stat(binary); err != nil {
		if binary, err = exec.LookPath("pgbouncer"); err != nil {
			t.Fatal("install the package pgbouncer: ", err)
		}
	}
	dir, err := os.MkdirTemp("", "pgbouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	address := closedPort(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"users.txt": `"postgres" "` + s.Password() + "\"\n",
		"pgbouncer.ini": fmt.Sprintf("[databases]\n* = host=%s port=%d\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\n"+
			"auth_type = scram-sha-256\nauth_file = %s/users.txt\npool_mode = transaction\ndefault_pool_size = 1\n", s.Host(), s.Port(), port, dir),
	}
	command := exec.CommandContext(context.Background(), binary, filepath.Join(dir, "pgbouncer.ini")) // #nosec G204 -- a test
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	paths := []string{dir}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	if os.Geteuid() == 0 {
		command.SysProcAttr.Credential = giveAway(t, paths)
	}
	var log strings.Builder
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	eventually(t, "PgBouncer listens", func() bool {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		return err == nil && connection.Close() == nil
	})
	return address
}

// giveAway gives files to the user nobody: PgBouncer refuses to run as root.
func giveAway(t *testing.T, paths []string) *syscall.Credential {
	t.Helper()
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, uidErr := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(nobody.Gid, 10, 32)
	errs := []error{uidErr, gidErr}
	credential := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for _, path := range paths {
		errs = append(errs, os.Chown(path, int(credential.Uid), int(credential.Gid)))
	}
	if err = errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return credential
}

func TestThroughPgBouncerInTransactionMode(t *testing.T) {
	s := postgres.Shared(t)
	direct := parse(t, s.NewDatabase(t))
	address := startPgBouncer(t, s)
	through := func(password, name string) *database.Config {
		return parse(t, fmt.Sprintf("postgresql://postgres:%s@%s/%s?sslmode=disable", password, address, name))
	}
	c := through(s.Password(), direct.Database())

	connection := connect(t, c, database.Limits{ApplicationName: "inbox"})
	for i := range 3 {
		var sum int
		var at time.Time
		var names []string
		err := connection.QueryRow(t.Context(), "SELECT $1::int + 1, $2::timestamptz, $3::text[]", i, time.Unix(int64(i), 0), []string{"a", "b"}).
			Scan(&sum, &at, &names)
		if err != nil || sum != i+1 || at.Unix() != int64(i) || len(names) != 2 {
			t.Errorf("got %d, %s, %v, %v", sum, at, names, err)
		}
	}
	if name := show(t, connection, "application_name"); name != "inbox" {
		t.Errorf("application_name is %s", name)
	}

	tx, err := connection.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := (database.Limits{}).ApplyLocal(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if timeout := show(t, tx, "lock_timeout"); timeout != "2s" {
		t.Errorf("lock_timeout is %s in our transaction", timeout)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}

	// The pooler has one connection to the server: what we left on it hits the next client.
	other := get(t, pools(t, database.PoolOptions{}), "other", c)
	for _, setting := range []string{"lock_timeout", "statement_timeout"} {
		if timeout := show(t, other, setting); timeout != "0" {
			t.Errorf("%s is %s for another client", setting, timeout)
		}
	}
	if missing, err := database.MissingPrivileges(t.Context(), other, "pg_catalog", "pg_class", "SELECT"); err != nil || len(missing) != 0 {
		t.Errorf("missing %v, %v", missing, err)
	}

	for name, test := range map[string]struct {
		c      *database.Config
		reason string
	}{
		"a wrong password":      {through("wrong", direct.Database()), database.ReasonAuthenticationFailed},
		"an unknown database":   {through(s.Password(), "no_such"), database.ReasonDatabaseNotFound},
		"an option it refuses":  {parse(t, fmt.Sprintf("postgresql://postgres:%s@%s/postgres?options=-cgeqo%%3Doff&sslmode=disable", s.Password(), address)), database.ReasonInvalidURL},
		"a TLS that it has not": {parse(t, fmt.Sprintf("postgresql://postgres:%s@%s/postgres?sslmode=require", s.Password(), address)), database.ReasonTLSFailed},
	} {
		t.Run(name, func(t *testing.T) {
			if f := failure(t, test.c); f.Reason != test.reason {
				t.Errorf("got %+v", f)
			}
		})
	}
}
