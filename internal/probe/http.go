package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// maxAnswer is the largest answer that is read over HTTP, in bytes.
const maxAnswer = 4 << 20

// singleConnection sends HTTP requests to each host through one connection, and reads no
// more than maxAnswer. Close it after the look: a connection would stay open otherwise.
type singleConnection struct {
	transport *http.Transport

	mutex  sync.Mutex
	closed bool
	opened []net.Conn
}

// newSingleConnection trusts certificates that the authorities signed; nil stands for the
// system's.
func newSingleConnection(authorities *x509.CertPool) *singleConnection {
	c := &singleConnection{}
	c.transport = &http.Transport{
		MaxConnsPerHost: 1, Proxy: http.ProxyFromEnvironment, DialContext: c.dial,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
	}
	return c
}

func (c *singleConnection) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		return nil, errors.Join(net.ErrClosed, connection.Close())
	}
	c.opened = append(c.opened, connection)
	return connection, nil
}

// RoundTrip sends one request and reads the whole answer.
func (c *singleConnection) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	closeErr := response.Body.Close()
	if err != nil {
		return nil, err
	}
	if closeErr != nil {
		return nil, closeErr
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// client follows no redirection: it would ask a host that nobody named.
func (c *singleConnection) client() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// close returns when the connections are closed, unlike the transport's own way: the next
// look at the broker must not add one.
func (c *singleConnection) close() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.closed = true
	for _, connection := range c.opened {
		_ = connection.Close() // nothing depends on a clean goodbye
	}
	c.transport.CloseIdleConnections()
}
