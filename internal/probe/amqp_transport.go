package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// maxAnswer is the largest answer of a management API that is read, in bytes.
const maxAnswer = 4 << 20

// managementTransport gives the client library what it has not: a context, one
// connection, a limit of what it reads, and no method but GET. It keeps the last answer,
// since the library drops some of its fields.
type managementTransport struct {
	ctx         context.Context //nolint:containedctx // the library takes none
	authorities *x509.CertPool  // nil: the system's
	inner       *http.Transport
	answer      []byte
}

// RoundTrip sends one request.
func (t *managementTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return nil, fmt.Errorf("a probe only reads: %s was not sent", request.Method)
	}
	if t.inner == nil {
		t.inner = &http.Transport{MaxConnsPerHost: 1, Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: t.authorities}}
	}
	request = request.WithContext(t.ctx)
	request.Close = false
	response, err := t.inner.RoundTrip(request)
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
		return nil, fmt.Errorf("the management API's answer is longer than %d bytes", maxAnswer)
	}
	t.answer = body
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// decodeLast reads the last answer again.
func (t *managementTransport) decodeLast(into any) error { return json.Unmarshal(t.answer, into) }

func (t *managementTransport) close() {
	if t.inner != nil {
		t.inner.CloseIdleConnections()
	}
}
