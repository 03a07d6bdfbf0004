package probe

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
)

// maxAnswer is the largest answer that is read over HTTP, in bytes.
const maxAnswer = 4 << 20

// singleConnection sends HTTP requests to each host through one connection, and reads no
// more than maxAnswer. Close it after the look: a connection would stay open otherwise.
type singleConnection struct{ transport *http.Transport }

// newSingleConnection trusts certificates that the authorities signed; nil stands for the
// system's.
func newSingleConnection(authorities *x509.CertPool) *singleConnection {
	return &singleConnection{&http.Transport{
		MaxConnsPerHost: 1, Proxy: http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
	}}
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

func (c *singleConnection) close() { c.transport.CloseIdleConnections() }
