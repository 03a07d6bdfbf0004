package brokers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/messaginginbox/operator/test/certificates"
	"github.com/messaginginbox/operator/test/process"
)

// RabbitMQ is a running node with the management plugin, and with a port mapper of its own: Erlang's epmd would
// otherwise listen on a fixed port and stay behind.
type RabbitMQ struct {
	process    *process.Process
	portMapper *process.Process
	dir        string
	port       int
	management string                    // host and port of its API
	secured    *certificates.Certificate // of the API over TLS; nil: there is none
}

// usualManagementPort and usualSecuredPort are where RabbitMQ's management API is without and with TLS unless a
// setting says otherwise.
const (
	usualManagementPort = "15672"
	usualSecuredPort    = "15671"
)

// StartRabbitMQ returns once the node takes connections. The context bounds the start only.
func StartRabbitMQ(ctx context.Context) (*RabbitMQ, error) {
	ports, err := process.FreePorts(ctx, host, 1)
	if err != nil {
		return nil, err
	}
	return startRabbitMQ(ctx, &RabbitMQ{management: net.JoinHostPort(host, strconv.Itoa(ports[0]))})
}

// StartRabbitMQTLS is StartRabbitMQ with the management API at its usual ports, without and with TLS, of a loopback
// address that no other node uses. The authority signs a certificate for that address.
func StartRabbitMQTLS(ctx context.Context, authority *certificates.Authority) (*RabbitMQ, error) {
	random := make([]byte, 3)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	address := net.IPv4(127, 1+random[0]%254, random[1], 1+random[2]%254).String()
	certificate, err := authority.Issue(address)
	if err != nil {
		return nil, err
	}
	return startRabbitMQ(ctx, &RabbitMQ{management: net.JoinHostPort(address, usualManagementPort), secured: &certificate})
}

func startRabbitMQ(ctx context.Context, s *RabbitMQ) (*RabbitMQ, error) {
	// The program on PATH is Debian's wrapper, which changes to another account.
	server, err := process.Find("rabbitmq-server", "rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server")
	if err != nil {
		return nil, err
	}
	portMapper, err := process.Find("epmd", "erlang-base")
	if err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "rabbitmq-"); err != nil {
		return nil, err
	}
	if err := s.start(ctx, server, portMapper); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *RabbitMQ) start(ctx context.Context, server, portMapper string) error {
	ports, err := process.FreePorts(ctx, host, 3)
	if err != nil {
		return err
	}
	s.port = ports[0]
	mapperPort := strconv.Itoa(ports[1])
	mapper := exec.Command(portMapper, "-port", mapperPort, "-address", "127.0.0.1") // #nosec G204 -- a test tool
	mapper.Dir = s.dir
	if s.portMapper, err = process.Start(mapper, "epmd", nil); err != nil {
		return err
	}
	plugins := filepath.Join(s.dir, "enabled_plugins")
	if err = os.WriteFile(plugins, []byte("[rabbitmq_management].\n"), 0o600); err != nil {
		return err
	}
	if err = s.configure(); err != nil {
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
	node.Dir = s.dir
	if s.process, err = process.Start(node, "rabbitmq", nil); err != nil {
		return err
	}
	return s.process.AwaitReady(ctx, s.answers)
}

func (s *RabbitMQ) configure() error {
	address, port, err := net.SplitHostPort(s.management)
	if err != nil {
		return err
	}
	settings := []string{
		// The statistics are five seconds old by default; the tests compare them exactly.
		"collect_statistics_interval = 200",
		"management.tcp.ip = " + address,
		"management.tcp.port = " + port,
	}
	if s.secured != nil {
		if _, err = s.secured.WriteTo(s.dir); err != nil {
			return err
		}
		settings = append(settings,
			"management.ssl.ip = "+address,
			"management.ssl.port = "+usualSecuredPort,
			"management.ssl.cacertfile = "+filepath.Join(s.dir, certificates.AuthorityFile),
			"management.ssl.certfile = "+filepath.Join(s.dir, certificates.CertificateFile),
			"management.ssl.keyfile = "+filepath.Join(s.dir, certificates.KeyFile))
	}
	return os.WriteFile(filepath.Join(s.dir, "rabbitmq.conf"), []byte(strings.Join(settings, "\n")+"\n"), 0o600)
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
func (s *RabbitMQ) ManagementURL() string { return "http://guest:guest@" + s.management }

// ManagementHost is the loopback address of the management API.
func (s *RabbitMQ) ManagementHost() string { return strings.Split(s.management, ":")[0] }

// SecuredURL is ManagementURL over TLS, of a node that was started with it.
func (s *RabbitMQ) SecuredURL() string {
	return "https://guest:guest@" + net.JoinHostPort(s.ManagementHost(), usualSecuredPort)
}

// Stop ends the node and its port mapper, and removes their files.
func (s *RabbitMQ) Stop() error {
	var failures []error
	for _, p := range []*process.Process{s.process, s.portMapper} {
		if p != nil {
			failures = append(failures, p.Stop())
		}
	}
	return errors.Join(append(failures, os.RemoveAll(s.dir))...)
}
