// Package external is a payment service outside of the database: what it has done, no
// rollback undoes.
package external

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// KeyHeader carries the idempotency key of a request.
const KeyHeader = "Idempotency-Key"

// Payments accepts one charge per POST, whose body is the order's number. The answer to the
// first request for an order never arrives: the charge is made, and the client times out. A
// request with an idempotency key that was seen before makes no other charge.
type Payments struct {
	server   *http.Server
	listener net.Listener

	mutex   sync.Mutex
	charges map[string]int      // by order
	keys    map[string]struct{} // seen
}

// StartPayments listens on a loopback port that the kernel picks.
func StartPayments(ctx context.Context) (*Payments, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Payments{listener: listener, charges: map[string]int{}, keys: map[string]struct{}{}}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.server.Serve(listener) }() // ends with Close
	return p, nil
}

// URL to post charges to.
func (p *Payments) URL() string { return "http://" + p.listener.Addr().String() + "/charges" }

// Close ends the service.
func (p *Payments) Close() error { return p.server.Close() }

// Charges is the number of charges by order.
func (p *Payments) Charges() map[string]int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	charges := make(map[string]int, len(p.charges))
	for order, count := range p.charges {
		charges[order] = count
	}
	return charges
}

// ServeHTTP makes a charge.
func (p *Payments) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	order, err := io.ReadAll(io.LimitReader(request.Body, 1024))
	if err != nil {
		return // the client is gone
	}
	if p.charge(string(order), request.Header.Get(KeyHeader)) {
		<-request.Context().Done()
		return
	}
	response.WriteHeader(http.StatusCreated)
}

// charge says whether the answer shall get lost.
func (p *Payments) charge(order, key string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if _, seen := p.keys[key]; seen && key != "" {
		return false
	}
	p.keys[key] = struct{}{}
	p.charges[order]++
	return p.charges[order] == 1
}

// Charge asks for a charge. After the time-out nobody knows whether it was made. key may be empty.
func Charge(ctx context.Context, url, order, key string, timeout time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(order))
	if err != nil {
		return err
	}
	if key != "" {
		request.Header.Set(KeyHeader, key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusCreated {
		return errors.New("the payment service answered " + response.Status)
	}
	return nil
}
