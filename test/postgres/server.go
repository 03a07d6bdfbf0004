// Package postgres runs a private, real PostgreSQL server for the tests, the demo and the
// end-to-end test: its own data directory, a port that the kernel picks, and an end with
// the process that started it.
package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/test/certificates"
	"github.com/messaginginbox/operator/test/process"
)

// Superuser is the name of the bootstrap superuser.
const Superuser = "postgres"

// Options says how a server runs. The zero value is right for most tests.
type Options struct {
	// ListenAddress is the address it listens on; 127.0.0.1 when empty.
	ListenAddress string
	// Port is the TCP port; the kernel picks a free one when 0.
	Port int
	// Settings are configuration parameters. They win over the defaults, among which
	// fsync=off: data survives a crash of the server, not one of the machine.
	Settings map[string]string
	// HBA are lines of pg_hba.conf that come before the default ones, which ask every
	// user for a password.
	HBA []string
	// TLS turns TLS on, with a certificate of an authority of its own.
	TLS bool
	// DataDir keeps the data after Stop, for the next Start. A temporary directory when empty.
	DataDir string
	// Log also receives the server's log.
	Log io.Writer
}

// Server is a running PostgreSQL server.
type Server struct {
	options  Options
	bin      string
	account  account
	dir      string
	data     string
	port     int
	password string
	ca       []byte
	process  *process.Process
}

// Start makes a database cluster and returns once the server answers. The context bounds
// the start, not the life of the server.
func Start(ctx context.Context, o Options) (*Server, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if err := s.initialise(ctx); err != nil {
		return nil, errors.Join(err, s.removeFiles())
	}
	if err := s.launch(ctx); err != nil {
		return nil, errors.Join(err, s.removeFiles())
	}
	return s, nil
}

// Replica starts a streaming standby of the server.
func (s *Server) Replica(ctx context.Context, o Options) (*Server, error) {
	r, err := prepare(o)
	if err != nil {
		return nil, err
	}
	r.password = s.password
	backup := r.command(ctx, "pg_basebackup", "--pgdata", r.data, "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
		"--host", s.Host(), "--port", strconv.Itoa(s.port), "--username", Superuser)
	backup.Env = append(backup.Env, "PGPASSWORD="+s.password)
	if err := run(backup); err != nil {
		return nil, errors.Join(err, r.removeFiles())
	}
	if err := r.launch(ctx); err != nil {
		return nil, errors.Join(err, r.removeFiles())
	}
	return r, nil
}

// Stop shuts the server down, ending its sessions, and removes its temporary files.
func (s *Server) Stop() error {
	return errors.Join(s.Resume(), s.shutDown(), s.removeFiles())
}

// Restart shuts the server down, ending its sessions, and starts it again on the same port.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.shutDown(); err != nil {
		return err
	}
	return s.launch(ctx)
}

// Host is the address to connect to.
func (s *Server) Host() string {
	switch s.options.ListenAddress {
	case "", "*", "0.0.0.0":
		return "127.0.0.1"
	default:
		return s.options.ListenAddress
	}
}

// Port is the TCP port.
func (s *Server) Port() int { return s.port }

// Password is the superuser's password.
func (s *Server) Password() string { return s.password }

// SocketDir is the directory of the server's Unix socket.
func (s *Server) SocketDir() string { return s.dir }

// CAPEM is the certificate of the authority that signed the server's; nil without TLS.
func (s *Server) CAPEM() []byte { return slices.Clone(s.ca) }

// URL is the superuser's connection URL of a database: with sslmode=verify-full when the
// server has TLS, else sslmode=disable.
func (s *Server) URL(database string) string {
	return s.URLFor(Superuser, s.password, database)
}

// URLFor is like URL, for another user.
func (s *Server) URLFor(user, password, database string) string {
	query := url.Values{"sslmode": {"disable"}}
	if s.options.TLS {
		query = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {s.path(certificates.AuthorityFile)}}
	}
	u := url.URL{
		Scheme:   "postgresql",
		User:     url.UserPassword(user, password),
		Host:     net.JoinHostPort(s.Host(), strconv.Itoa(s.port)),
		Path:     "/" + database,
		RawQuery: query.Encode(),
	}
	return u.String()
}

// CreateDatabase creates an empty database.
func (s *Server) CreateDatabase(ctx context.Context, name string) error {
	return s.Exec(ctx, "postgres", "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
}

// DropDatabase drops a database, ending the sessions that use it. A missing one is no error.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	return s.Exec(ctx, "postgres", "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
}

// Exec runs one statement as the superuser, on a connection of its own.
func (s *Server) Exec(ctx context.Context, database, statement string, arguments ...any) error {
	connection, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		return err
	}
	_, err = connection.Exec(ctx, statement, arguments...)
	return errors.Join(err, connection.Close(ctx))
}

// prepare finds the binaries and makes the directories of a server that is not yet running.
func prepare(o Options) (*Server, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	account, err := findAccount()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "postgres-")
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, bin: bin, account: account, dir: dir, data: o.DataDir, port: o.Port}
	if s.data == "" {
		s.data = s.path("data")
	}
	if err := os.MkdirAll(s.data, 0o700); err != nil {
		return nil, errors.Join(err, s.removeFiles())
	}
	for _, path := range []string{s.dir, s.data} {
		if err := account.own(path); err != nil {
			return nil, errors.Join(err, s.removeFiles())
		}
	}
	return s, nil
}

// initialise makes the database cluster, or reads the password of one that DataDir kept.
func (s *Server) initialise(ctx context.Context) error {
	passwordFile := filepath.Join(s.data, "superuser_password")
	kept, err := os.ReadFile(passwordFile) // #nosec G304 -- in our own data directory
	if err == nil {
		s.password = string(kept)
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	s.password = hex.EncodeToString(random)
	if err := s.writeFile(s.path("password"), []byte(s.password)); err != nil {
		return err
	}
	if err := run(s.command(ctx, "initdb", "--pgdata", s.data, "--username", Superuser, "--pwfile", s.path("password"),
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync")); err != nil {
		return err
	}
	return s.writeFile(passwordFile, []byte(s.password))
}

// settings are the parameters for the command line of the server.
func (s *Server) settings() (map[string]string, error) {
	settings := map[string]string{
		"listen_addresses":        s.options.ListenAddress,
		"unix_socket_directories": s.dir,
		"hba_file":                s.path("pg_hba.conf"),
		"logging_collector":       "off",
		"fsync":                   "off",
		"full_page_writes":        "off",
	}
	if s.options.ListenAddress == "" {
		settings["listen_addresses"] = "127.0.0.1"
	}
	rules := append(slices.Clone(s.options.HBA),
		"local all         all     scram-sha-256",
		"host  all         all all scram-sha-256",
		"host  replication all all scram-sha-256", "")
	if err := s.writeFile(s.path("pg_hba.conf"), []byte(strings.Join(rules, "\n"))); err != nil {
		return nil, err
	}
	if s.options.TLS {
		if err := s.writeCertificates(); err != nil {
			return nil, err
		}
		settings["ssl"] = "on"
		settings["ssl_cert_file"] = s.path(certificates.CertificateFile)
		settings["ssl_key_file"] = s.path(certificates.KeyFile)
	}
	maps.Copy(settings, s.options.Settings)
	return settings, nil
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// writeFile writes a file that only the server's account can read.
func (s *Server) writeFile(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return s.account.own(path)
}

func (s *Server) removeFiles() error { return os.RemoveAll(s.dir) }

func (s *Server) command(ctx context.Context, name string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(s.bin, name), arguments...) // #nosec G204 -- a test tool
	command.Dir = s.dir
	command.Env = []string{"PATH=" + s.bin + ":/usr/bin:/bin", "LC_ALL=C", "HOME=" + s.dir}
	command.SysProcAttr = s.account.attributes()
	return command
}

func run(command *exec.Cmd) error {
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(command.Path), err, output)
	}
	return nil
}
