package brokers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Redis is a running server that keeps its data in memory only.
type Redis struct {
	process *process
	dir     string
	port    int
}

// StartRedis returns once the server answers. The settings are more of its command line, such
// as --maxmemory 1mb. The context bounds the start only.
func StartRedis(ctx context.Context, settings ...string) (*Redis, error) {
	program, err := find("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(ctx, 1)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redis-")
	if err != nil {
		return nil, err
	}
	s := &Redis{dir: dir, port: ports[0]}
	arguments := append([]string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir}, settings...)
	command := exec.Command(program, arguments...) // #nosec G204 -- a test tool
	if s.process, err = start(command, dir, "redis"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.process.awaitReady(ctx, s.ping); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *Redis) ping(ctx context.Context) error {
	options, err := redis.ParseURL(s.URL())
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	return errors.Join(client.Ping(ctx).Err(), client.Close())
}

// URL to connect to.
func (s *Redis) URL() string { return fmt.Sprintf("redis://127.0.0.1:%d", s.port) }

// Stop ends the server and removes its files.
func (s *Redis) Stop() error { return errors.Join(s.process.stop(), os.RemoveAll(s.dir)) }
