package brokers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/test/certificates"
	"github.com/messaginginbox/operator/test/process"
)

// RedisMasterName is the name under which the sentinel knows the master.
const RedisMasterName = "mymaster"

// RedisSentinel is a master with one replica, and a sentinel that puts the replica in the place of a master that is
// down for half a second.
type RedisSentinel struct {
	process     *process.Process
	dir         string
	port        int
	certificate *certificates.Certificate // nil: no TLS
	servers     []*Redis
}

// StartRedisSentinel returns once the sentinel knows both servers. With a certificate all three speak only TLS.
func StartRedisSentinel(ctx context.Context, certificate *certificates.Certificate) (*RedisSentinel, error) {
	dir, err := os.MkdirTemp("", "sentinel-")
	if err != nil {
		return nil, err
	}
	s := &RedisSentinel{dir: dir, certificate: certificate}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *RedisSentinel) start(ctx context.Context) error {
	master, err := startRedis(ctx, s.certificate, []string{"--repl-diskless-sync-delay", "0"})
	if err != nil {
		return err
	}
	s.servers = append(s.servers, master)
	replica, err := startRedis(ctx, s.certificate, []string{"--repl-diskless-sync-delay", "0", "--replicaof", host, strconv.Itoa(master.port)})
	if err != nil {
		return err
	}
	s.servers = append(s.servers, replica)
	// The sentinel asks the master for its replicas at once, and then only every ten seconds.
	if err = await(ctx, "replication", replica.process, replica.isInSync); err != nil {
		return err
	}
	ports, err := process.FreePorts(ctx, host, 1)
	if err != nil {
		return err
	}
	s.port = ports[0]
	settings, err := listenAt(s.port, s.certificate, s.dir)
	if err != nil {
		return err
	}
	settings = append(settings, [][2]string{
		{"bind", host},
		{"dir", s.dir},
		{"sentinel monitor", fmt.Sprintf("%s %s %d 1", RedisMasterName, host, master.port)},
		{"sentinel down-after-milliseconds", RedisMasterName + " 500"},
		{"sentinel failover-timeout", RedisMasterName + " 2000"},
	}...)
	var configuration strings.Builder // the sentinel keeps its state in it
	for _, setting := range settings {
		configuration.WriteString(setting[0] + " " + setting[1] + "\n")
	}
	file := filepath.Join(s.dir, "sentinel.conf")
	if err = os.WriteFile(file, []byte(configuration.String()), 0o600); err != nil {
		return err
	}
	if s.process, err = startRedisServer(s.dir, file, "--sentinel"); err != nil {
		return err
	}
	return await(ctx, "sentinel", s.process, s.knowsReplica)
}

func (s *Redis) isInSync(ctx context.Context) (bool, error) {
	client := s.Client()
	state, err := client.Info(ctx, "replication").Result()
	return strings.Contains(state, "master_link_status:up"), errors.Join(err, client.Close())
}

func (s *RedisSentinel) knowsReplica(ctx context.Context) (bool, error) {
	sentinel := s.ask()
	replicas, err := sentinel.Replicas(ctx, RedisMasterName).Result()
	known := len(replicas) == 1 && replicas[0]["flags"] == "slave" && replicas[0]["master-link-status"] == "ok"
	return known, errors.Join(err, sentinel.Close())
}

func (s *RedisSentinel) ask() *redis.SentinelClient {
	options := &redis.Options{Addr: s.Address(), DisableIdentity: true}
	if s.certificate != nil {
		options.TLSConfig = s.certificate.ClientTLS()
	}
	return redis.NewSentinelClient(options)
}

// Address of the sentinel: host and port.
func (s *RedisSentinel) Address() string { return net.JoinHostPort(host, strconv.Itoa(s.port)) }

// Master is the server that the sentinel names.
func (s *RedisSentinel) Master(ctx context.Context) (*Redis, error) {
	sentinel := s.ask()
	address, err := sentinel.GetMasterAddrByName(ctx, RedisMasterName).Result()
	if err = errors.Join(err, sentinel.Close()); err != nil {
		return nil, err
	}
	for _, server := range s.servers {
		if server.Address() == net.JoinHostPort(address[0], address[1]) {
			return server, nil
		}
	}
	return nil, fmt.Errorf("the sentinel names %s, which is none of its servers", address)
}

// Watch makes the sentinel watch another master, at an address that need not be one.
func (s *RedisSentinel) Watch(ctx context.Context, name, ip, port string) error {
	sentinel := s.ask()
	return errors.Join(sentinel.Monitor(ctx, name, ip, port, "1").Err(), sentinel.Close())
}

// FailOver kills the master and returns once the sentinel names the other one in its place.
func (s *RedisSentinel) FailOver(ctx context.Context) error {
	before, err := s.Master(ctx)
	if err != nil {
		return err
	}
	if err = before.Kill(); err != nil {
		return err
	}
	return await(ctx, "failover", s.process, func(ctx context.Context) (bool, error) {
		now, masterErr := s.Master(ctx)
		return now != before, masterErr
	})
}

// Stop ends the sentinel and the servers, and removes their files.
func (s *RedisSentinel) Stop() error {
	var failures []error
	if s.process != nil {
		failures = append(failures, s.process.Stop())
	}
	for _, server := range s.servers {
		failures = append(failures, server.Stop())
	}
	return errors.Join(append(failures, os.RemoveAll(s.dir))...)
}
