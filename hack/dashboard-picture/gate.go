package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
)

// gate lets the cluster's pods reach a broker that listens on loopback only.
type gate struct {
	url     string // as pods see it
	address string // of the gate
	broker  string // host and port

	mutex       sync.Mutex
	listener    net.Listener
	connections map[net.Conn]bool
}

// openGate listens on the host's address, on a port that the kernel picks.
func openGate(ctx context.Context, host, broker string) (*gate, error) {
	target, err := url.Parse(broker)
	if err != nil {
		return nil, errors.New("the broker's URL is not valid") // it can hold a password
	}
	g := &gate{address: net.JoinHostPort(host, "0"), broker: target.Host}
	if err := g.open(ctx); err != nil {
		return nil, err
	}
	g.address = g.listener.Addr().String()
	target.Host = g.address
	g.url = target.String()
	return g, nil
}

// open takes connections again.
func (g *gate) open(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", g.address)
	if err != nil {
		return fmt.Errorf("opening the gate to %s: %w", g.broker, err)
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.listener, g.connections = listener, map[net.Conn]bool{}
	go g.serve(listener)
	return nil
}

// shut refuses connections and ends those that are open.
func (g *gate) shut() error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	err := g.listener.Close()
	for connection := range g.connections {
		_ = connection.Close() // that is what its user should see
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (g *gate) serve(listener net.Listener) {
	for {
		outside, err := listener.Accept()
		if err != nil {
			return // it was shut
		}
		inside, err := net.Dial("tcp", g.broker)
		if err != nil {
			_ = outside.Close() // the pod sees a broker that is down
			continue
		}
		g.mutex.Lock()
		g.connections[outside] = true
		g.mutex.Unlock()
		go g.pass(inside, outside)
		go g.pass(outside, inside)
	}
}

// pass copies until either side ends, then closes both.
func (g *gate) pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // an error is the end too
	_ = to.Close()
	_ = from.Close()
	g.mutex.Lock()
	delete(g.connections, to)
	delete(g.connections, from)
	g.mutex.Unlock()
}
