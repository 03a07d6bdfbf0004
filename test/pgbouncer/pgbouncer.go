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
	"time"

	"github.com/messaginginbox/operator/test/postgres"
)

// The pool modes.
const (
	Session     = "session"     // a client keeps its server connection until it leaves
	Transaction = "transaction" // every transaction may get another one
)

const startTimeout = 30 * time.Second

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
	binary, err := find()
	if err != nil {
		t.Fatal(err)
	}
	p := &Pooler{server: server, address: freeAddress(t)}
	dir := writeConfiguration(t, p, o)
	command := exec.CommandContext(context.Background(), binary, filepath.Join(dir, "pgbouncer.ini"))
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		command.SysProcAttr.Credential = giveAway(t, dir)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // its status says nothing: it was killed
		if content, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s", content)
		}
		if err := errors.Join(log.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	awaitListening(t, p.address)
	return p
}

// find looks where Debian puts it too: /usr/sbin is not on everybody's PATH.
func find() (string, error) {
	for _, candidate := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if binary, err := exec.LookPath(candidate); err == nil {
			return binary, nil
		}
	}
	return "", errors.New("no PgBouncer found: install the package pgbouncer")
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

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

func awaitListening(t testing.TB, address string) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		connection, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
		if err == nil {
			if err := connection.Close(); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("PgBouncer does not listen after %s", startTimeout)
}
