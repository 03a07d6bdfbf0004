package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialTimeout of a connection is shorter than that of the look, which then ends with the
// failure of the connection: that knows the node.
const dialTimeout = DefaultTimeLimit - time.Second

// errNotConnected says that the dialTimeout passed.
var errNotConnected = errors.New("no connection in time")

// redisDialer opens connections, through TLS when there is an encryption.
type redisDialer struct {
	encryption *encryption
}

func (d redisDialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	var connection net.Conn
	var err error
	switch isSocket := strings.HasPrefix(address, "/"); {
	case isSocket:
		connection, err = new(net.Dialer).DialContext(ctx, "unix", address)
	case d.encryption != nil:
		connection, err = d.encryption.dial(ctx, address)
	default:
		connection, err = new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	if err != nil && timedOut(err) {
		return nil, errNotConnected
	}
	return connection, err
}

// nodeError is the failure of a node that the DSN does not name by itself. It does not
// unwrap: the client library would dial again for as long as the look may take.
type nodeError struct {
	node  string
	names func() bool // whether to name it
	cause error
}

// Error names the node.
func (e *nodeError) Error() string { return e.node + ": " + e.cause.Error() }

// cluster names the node that fails, unless none answers: any may tell which nodes there
// are, and the client library asks them in an order that changes from look to look.
type cluster struct {
	redisDialer
	answers atomic.Bool
}

func (c *cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := c.redisDialer.dial(ctx, network, address)
	if err != nil {
		return nil, &nodeError{node: "the node " + address, names: c.answers.Load, cause: err}
	}
	c.answers.Store(true)
	return connection, nil
}

// sentinels know the address of the master.
type sentinels struct {
	redisDialer
	addresses  []string
	masterName string
	broker     string
}

// dial connects to the master that they name at the time.
func (s *sentinels) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	address, err := s.master(ctx)
	if err != nil {
		return nil, err
	}
	connection, err := s.redisDialer.dial(ctx, network, address)
	if err != nil {
		always := func() bool { return true }
		return nil, &nodeError{node: fmt.Sprintf("the master %s at %s", s.masterName, address), names: always, cause: err}
	}
	return connection, nil
}

// master asks all sentinels at once, since some may be down: the first that knows it counts.
// The errors of all of them come in the order of the DSN.
func (s *sentinels) master(ctx context.Context) (string, error) {
	type answer struct {
		position int
		address  string
		err      error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, len(s.addresses))
	for position, sentinel := range s.addresses {
		go func() {
			address, err := s.ask(ctx, sentinel)
			answers <- answer{position, address, err}
		}()
	}
	failures := make([]error, len(s.addresses))
	for range s.addresses {
		given := <-answers
		if given.err == nil {
			return given.address, nil
		}
		failures[given.position] = given.err
	}
	return "", errors.Join(failures...)
}

func (s *sentinels) ask(ctx context.Context, address string) (string, error) {
	client := redis.NewSentinelClient(&redis.Options{
		Addr: address, Dialer: s.redisDialer.dial, DialTimeout: dialTimeout, ReadTimeout: dialTimeout, MaxRetries: -1,
		PoolSize: 1, DialerRetries: 1, DisableIdentity: true, Protocol: 2, ContextTimeoutEnabled: true,
	})
	defer func() { _ = client.Close() }() // nothing depends on a clean goodbye
	found, err := client.GetMasterAddrByName(ctx, s.masterName).Result()
	if err != nil {
		return "", s.explain(err)
	}
	if len(found) != 2 {
		return "", failed(ReasonUnexpectedError, "%s: a sentinel gave no address of the master %s", s.broker, s.masterName)
	}
	return net.JoinHostPort(found[0], found[1]), nil
}

// explain says what an answer of a sentinel means.
func (s *sentinels) explain(err error) error {
	var answer redis.Error
	switch {
	case errors.Is(err, redis.Nil):
		return failed(ReasonQueueNotFound, "%s: the sentinels know no master of the name %s: correct sentinel in the DSN", s.broker, s.masterName)
	case !errors.As(err, &answer):
		return err
	case strings.HasPrefix(answer.Error(), "NOAUTH"):
		return failed(ReasonAuthenticationFailed, "%s: the sentinels ask for a password, which Symfony's DSN cannot have", s.broker)
	case strings.Contains(answer.Error(), "unknown command"):
		return failed(ReasonInvalidURL, "%s is no sentinel: name the port of the sentinels, most often 26379, or remove sentinel from the DSN", s.broker)
	}
	return err
}
