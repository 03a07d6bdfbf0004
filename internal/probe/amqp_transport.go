package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// managementTransport gives the client library what it has not: a context and no method
// but GET. It keeps the last answer, since the library drops some of its fields.
type managementTransport struct {
	ctx    context.Context //nolint:containedctx // the library takes none
	inner  *singleConnection
	answer []byte
}

// RoundTrip sends one request.
func (t *managementTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return nil, fmt.Errorf("a probe only reads: %s was not sent", request.Method)
	}
	request = request.WithContext(t.ctx)
	request.Close = false
	response, err := t.inner.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if t.answer, err = io.ReadAll(response.Body); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(t.answer))
	return response, nil
}

// decodeLast reads the last answer again.
func (t *managementTransport) decodeLast(into any) error { return json.Unmarshal(t.answer, into) }
