package brokers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"

	"github.com/messaginginbox/operator/test/process"
)

// Beanstalkd is a running server that keeps its jobs in memory only.
type Beanstalkd struct {
	process *process.Process
	dir     string
	port    int
}

// StartBeanstalkd returns once the server takes connections. The context bounds the start only.
func StartBeanstalkd(ctx context.Context) (*Beanstalkd, error) {
	program, err := process.Find("beanstalkd", "beanstalkd")
	if err != nil {
		return nil, err
	}
	ports, err := process.FreePorts(ctx, host, 1)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "beanstalkd-")
	if err != nil {
		return nil, err
	}
	s := &Beanstalkd{dir: dir, port: ports[0]}
	command := exec.Command(program, "-l", "127.0.0.1", "-p", strconv.Itoa(s.port)) // #nosec G204 -- a test tool
	command.Dir = dir
	if s.process, err = process.Start(command, "beanstalkd", nil); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.process.AwaitReady(ctx, s.answers); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *Beanstalkd) answers(ctx context.Context) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address())
	if err != nil {
		return err
	}
	return connection.Close()
}

// Address to connect to: host and port.
func (s *Beanstalkd) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Stop ends the server and removes its files.
func (s *Beanstalkd) Stop() error { return errors.Join(s.process.Stop(), os.RemoveAll(s.dir)) }
