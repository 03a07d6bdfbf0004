// Package pgbouncer runs a private, real PgBouncer in front of a test's PostgreSQL server.
package pgbouncer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/messaginginbox/operator/test/postgres"
	"github.com/messaginginbox/operator/test/process"
)

// The pool modes.
const (
	Session     = "session"     // a client keeps its server connection until it leaves
	Transaction = "transaction" // every transaction may get another one
)

// Options say how the pooler runs.
type Options struct {
	// Mode is Session or Transaction.
	Mode string
	// PoolSize is the number of server connections for each database and user; 20 when 0.
	PoolSize int
}

// Pooler is a running PgBouncer.
type Pooler struct {
	server  *postgres.Server
	address string
}

// URL is the superuser's connection URL of a database through the pooler.
func (p *Pooler) URL(database string) string {
	u := url.URL{
		Scheme: "postgresql", User: url.UserPassword(postgres.Superuser, p.server.Password()),
		Host: p.address, Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Run starts a pooler in front of the server, and stops it at the end of the test.
func Run(t testing.TB, server *postgres.Server, o Options) *Pooler {
	t.Helper()
	binary, err := process.Find("pgbouncer", "pgbouncer", "/usr/sbin/pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	ports, err := process.FreePorts(t.Context(), "127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	p := &Pooler{server: server, address: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))}
	dir := writeConfiguration(t, p, o)
	t.Cleanup(func() {
		if removeErr := os.RemoveAll(dir); removeErr != nil {
			t.Error(removeErr)
		}
	})
	command := exec.CommandContext(context.Background(), binary, filepath.Join(dir, "pgbouncer.ini")) // #nosec G204 -- a test tool
	command.Dir = dir
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		command.SysProcAttr.Credential = giveAway(t, dir)
	}
	running, err := process.Start(command, "pgbouncer", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(running.Output())
		}
		if stopErr := running.Stop(syscall.SIGKILL); stopErr != nil {
			t.Error(stopErr)
		}
	})
	err = running.AwaitReady(t.Context(), func(ctx context.Context) error {
		connection, dialErr := new(net.Dialer).DialContext(ctx, "tcp", p.address)
		if dialErr != nil {
			return dialErr
		}
		return connection.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func writeConfiguration(t testing.TB, p *Pooler, o Options) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgbouncer-")
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(p.address)
	if err != nil {
		t.Fatal(err)
	}
	if o.PoolSize == 0 {
		o.PoolSize = 20
	}
	users := fmt.Sprintf("%q %q\n", postgres.Superuser, p.server.Password())
	configuration := strings.Join([]string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%d", p.server.Host(), p.server.Port()),
		"[pgbouncer]",
		"listen_addr = " + host,
		"listen_port = " + port,
		"unix_socket_dir =",
		"auth_type = scram-sha-256",
		"auth_file = " + filepath.Join(dir, "users.txt"),
		"pool_mode = " + o.Mode,
		"default_pool_size = " + strconv.Itoa(o.PoolSize),
		"",
	}, "\n")
	for name, content := range map[string]string{"users.txt": users, "pgbouncer.ini": configuration} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// giveAway gives the directory to the user nobody: PgBouncer refuses to run as root.
func giveAway(t testing.TB, dir string) *syscall.Credential {
	t.Helper()
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, uidErr := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(nobody.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")} {
		if err := os.Chown(path, int(uid), int(gid)); err != nil {
			t.Fatal(err)
		}
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
