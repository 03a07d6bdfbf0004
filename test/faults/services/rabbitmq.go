package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// RabbitMQ is a running node, with a port mapper of its own: Erlang's epmd would
// otherwise listen on a fixed port and stay behind.
type RabbitMQ struct {
	process    *process
	portMapper *process
	dir        string
	port       int
}

// StartRabbitMQ returns once the node takes connections. The context bounds the start only.
func StartRabbitMQ(ctx context.Context) (*RabbitMQ, error) {
	// The program on PATH is Debian's wrapper, which changes to another account.
	server, err := find("rabbitmq-server", "rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server")
	if err != nil {
		return nil, err
	}
	portMapper, err := find("epmd", "erlang-base")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rabbitmq-")
	if err != nil {
		return nil, err
	}
	s := &RabbitMQ{dir: dir}
	if err := s.start(ctx, server, portMapper); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *RabbitMQ) start(ctx context.Context, server, portMapper string) error {
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return err
	}
	s.port = ports[0]
	mapperPort := strconv.Itoa(ports[1])
	mapper := exec.Command(portMapper, "-port", mapperPort, "-address", "127.0.0.1") // #nosec G204 -- a test tool
	if s.portMapper, err = start(mapper, s.dir, "epmd"); err != nil {
		return err
	}
	plugins := filepath.Join(s.dir, "enabled_plugins")
	if err = os.WriteFile(plugins, []byte("[].\n"), 0o600); err != nil {
		return err
	}
	node := exec.Command(server) // #nosec G204 -- a test tool
	node.Env = append(os.Environ(),
		"HOME="+s.dir, // of the Erlang cookie
		"ERL_EPMD_PORT="+mapperPort,
		"ERL_EPMD_ADDRESS=127.0.0.1",
		fmt.Sprintf("RABBITMQ_NODENAME=faults-%d@localhost", s.port),
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+strconv.Itoa(s.port),
		"RABBITMQ_DIST_PORT="+strconv.Itoa(ports[2]),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_MNESIA_BASE="+filepath.Join(s.dir, "mnesia"),
		"RABBITMQ_LOG_BASE="+filepath.Join(s.dir, "log"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+plugins,
		"RABBITMQ_CONFIG_FILE="+filepath.Join(s.dir, "none"),
		"RABBITMQ_CONF_ENV_FILE="+filepath.Join(s.dir, "none.sh"),
		"RABBITMQ_PID_FILE="+filepath.Join(s.dir, "pid"),
	)
	if s.process, err = start(node, s.dir, "rabbitmq"); err != nil {
		return err
	}
	return s.process.awaitReady(ctx, func(context.Context) error {
		connection, err := amqp.Dial(s.URL())
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// URL to connect to, as the user that RabbitMQ has from the start.
func (s *RabbitMQ) URL() string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", s.port) }

// Stop ends the node and its port mapper, and removes their files.
func (s *RabbitMQ) Stop() error {
	var failures []error
	for _, p := range []*process{s.process, s.portMapper} {
		if p != nil {
			failures = append(failures, p.stop())
		}
	}
	return errors.Join(append(failures, os.RemoveAll(s.dir))...)
}
