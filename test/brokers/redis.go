package brokers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/test/certificates"
	"github.com/messaginginbox/operator/test/process"
)

// Redis is a running server that keeps its data in memory only.
type Redis struct {
	process *process.Process
	dir     string
	port    int
	scheme  string
}

// StartRedis returns once the server answers. The settings are more of its command line, such
// as --maxmemory 1mb. The context bounds the start only.
func StartRedis(ctx context.Context, settings ...string) (*Redis, error) {
	return startRedis(ctx, nil, settings)
}

// StartRedisTLS is StartRedis for a server that speaks only TLS and asks for no certificate of its clients.
func StartRedisTLS(ctx context.Context, certificate certificates.Certificate, settings ...string) (*Redis, error) {
	return startRedis(ctx, &certificate, settings)
}

func startRedis(ctx context.Context, certificate *certificates.Certificate, settings []string) (*Redis, error) {
	dir, err := os.MkdirTemp("", "redis-")
	if err != nil {
		return nil, err
	}
	s := &Redis{dir: dir, scheme: "redis"}
	if err := s.start(ctx, certificate, settings); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *Redis) start(ctx context.Context, certificate *certificates.Certificate, settings []string) error {
	ports, err := process.FreePorts(ctx, host, 1)
	if err != nil {
		return err
	}
	s.port = ports[0]
	arguments := []string{"--bind", host, "--unixsocket", s.socket(), "--save", "", "--appendonly", "no", "--dir", s.dir}
	if certificate != nil {
		s.scheme = "rediss"
	}
	listen, err := listenAt(s.port, certificate, s.dir)
	if err != nil {
		return err
	}
	for _, setting := range listen {
		arguments = append(arguments, "--"+setting[0], setting[1])
	}
	if s.process, err = startRedisServer(s.dir, append(arguments, settings...)...); err != nil {
		return err
	}
	return s.process.AwaitReady(ctx, s.ping)
}

// listenAt are the settings of a server or sentinel that listens at the port, with a certificate for TLS only.
func listenAt(port int, certificate *certificates.Certificate, dir string) ([][2]string, error) {
	if certificate == nil {
		return [][2]string{{"port", strconv.Itoa(port)}}, nil
	}
	_, err := certificate.WriteTo(dir)
	return [][2]string{
		{"port", "0"},
		{"tls-port", strconv.Itoa(port)},
		{"tls-ca-cert-file", filepath.Join(dir, certificates.AuthorityFile)},
		{"tls-cert-file", filepath.Join(dir, certificates.CertificateFile)},
		{"tls-key-file", filepath.Join(dir, certificates.KeyFile)},
		{"tls-auth-clients", "no"},
		{"tls-replication", "yes"},
	}, err
}

func startRedisServer(dir string, arguments ...string) (*process.Process, error) {
	program, err := process.Find("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, arguments...) // #nosec G204 -- a test tool
	command.Dir = dir
	return process.Start(command, "redis", nil)
}

func (s *Redis) ping(ctx context.Context) error {
	client := s.Client()
	return errors.Join(client.Ping(ctx).Err(), client.Close())
}

func (s *Redis) socket() string { return filepath.Join(s.dir, "redis.sock") }

// Client is one through the server's socket, which needs no TLS. Close it.
func (s *Redis) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket(), DisableIdentity: true})
}

// Address to connect to: host and port.
func (s *Redis) Address() string { return net.JoinHostPort(host, strconv.Itoa(s.port)) }

// URL to connect to, with rediss when the server speaks TLS.
func (s *Redis) URL() string { return s.scheme + "://" + s.Address() }

// SocketURL is the same server's, by its Unix socket.
func (s *Redis) SocketURL() string { return "redis://" + s.socket() }

// Kill ends the server as a crash would.
func (s *Redis) Kill() error { return s.process.Stop(syscall.SIGKILL) }

// Stop ends the server and removes its files.
func (s *Redis) Stop() error { return errors.Join(s.process.Stop(), os.RemoveAll(s.dir)) }

// await asks a running server until it says yes.
func await(ctx context.Context, what string, p *process.Process, yes func(context.Context) (bool, error)) error {
	return p.AwaitReady(ctx, func(ctx context.Context) error {
		ready, err := yes(ctx)
		if err == nil && !ready {
			err = fmt.Errorf("%s: not yet", what)
		}
		return err
	})
}
