package brokers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// RabbitMQ is a running node with the management plugin, and with a port mapper of its own: Erlang's epmd would
// otherwise listen on a fixed port and stay behind.
type RabbitMQ struct {
	process    *process
	portMapper *process
	dir        string
	port       int
	management int
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
	ports, err := freePorts(ctx, 4)
	if err != nil {
		return err
	}
	s.port, s.management = ports[0], ports[3]
	mapperPort := strconv.Itoa(ports[1])
	mapper := exec.Command(portMapper, "-port", mapperPort, "-address", "127.0.0.1") // #nosec G204 -- a test tool
	if s.portMapper, err = start(mapper, s.dir, "epmd"); err != nil {
		return err
	}
	plugins := filepath.Join(s.dir, "enabled_plugins")
	if err = os.WriteFile(plugins, []byte("[rabbitmq_management].\n"), 0o600); err != nil {
		return err
	}
	// The statistics are five seconds old by default; the tests compare them exactly.
	settings := fmt.Sprintf("management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = %d\ncollect_statistics_interval = 200\n", s.management)
	if err = os.WriteFile(filepath.Join(s.dir, "rabbitmq.conf"), []byte(settings), 0o600); err != nil {
		return err
	}
	node := exec.Command(server) // #nosec G204 -- a test tool
	node.Env = append(os.Environ(),
		"HOME="+s.dir, // of the Erlang cookie
		"ERL_EPMD_PORT="+mapperPort,
		"ERL_EPMD_ADDRESS=127.0.0.1",
		fmt.Sprintf("RABBITMQ_NODENAME=test-%d@localhost", s.port),
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+strconv.Itoa(s.port),
		"RABBITMQ_DIST_PORT="+strconv.Itoa(ports[2]),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_MNESIA_BASE="+filepath.Join(s.dir, "mnesia"),
		"RABBITMQ_LOG_BASE="+filepath.Join(s.dir, "log"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+plugins,
		"RABBITMQ_CONFIG_FILE="+filepath.Join(s.dir, "rabbitmq"),
		"RABBITMQ_CONF_ENV_FILE="+filepath.Join(s.dir, "none.sh"),
		"RABBITMQ_PID_FILE="+filepath.Join(s.dir, "pid"),
	)
	if s.process, err = start(node, s.dir, "rabbitmq"); err != nil {
		return err
	}
	return s.process.awaitReady(ctx, s.answers)
}

// answers says that both the node and its management API take connections.
func (s *RabbitMQ) answers(ctx context.Context) error {
	connection, err := amqp.Dial(s.URL())
	if err != nil {
		return err
	}
	if err = connection.Close(); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.ManagementURL()+"/api/overview", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the management API answers with %s", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// URL to connect to, as the user that RabbitMQ has from the start.
func (s *RabbitMQ) URL() string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", s.port) }

// ManagementURL of its management API, as the same user.
func (s *RabbitMQ) ManagementURL() string {
	return fmt.Sprintf("http://guest:guest@127.0.0.1:%d", s.management)
}

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
