package main

import (
	"io"
	"net"
	"net/url"
	"testing"
	"time"
)

// echo answers every connection with what it is sent.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(connection, connection); _ = connection.Close() }()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, g *gate) net.Conn {
	t.Helper()
	target, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := net.Dial("tcp", target.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return connection
}

func expectEcho(t *testing.T, connection net.Conn) {
	t.Helper()
	if _, err := connection.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4)
	if _, err := io.ReadFull(connection, answer); err != nil || string(answer) != "ping" {
		t.Fatalf("the broker answers %q, %v", answer, err)
	}
}

func TestAGateThatIsShutEndsConnectionsAndTakesNone(t *testing.T) {
	g, err := openGate(t.Context(), "127.0.0.1", "redis://user:secret@"+echo(t)+"/1")
	if err != nil {
		t.Fatal(err)
	}
	connection := dial(t, g)
	expectEcho(t, connection)
	if err := g.shut(); err != nil {
		t.Fatal(err)
	}
	if n, err := connection.Read(make([]byte, 1)); err == nil {
		t.Errorf("the connection still answers %d bytes", n)
	}
	if again, err := net.Dial("tcp", g.address); err == nil {
		_ = again.Close()
		t.Error("the gate still takes connections")
	}
	if err := g.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectEcho(t, dial(t, g))
	if err := g.shut(); err != nil {
		t.Fatal(err)
	}
}
