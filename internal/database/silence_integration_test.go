//go:build integration

package database_test

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/test/postgres"
)

// manualClock goes on only when it is told to.
type manualClock struct{ nanoseconds atomic.Int64 }

func (c *manualClock) now() time.Time           { return time.Unix(1_700_000_000, c.nanoseconds.Load()) }
func (c *manualClock) advance(by time.Duration) { c.nanoseconds.Add(int64(by)) }

// countingSilentHost accepts connections, counts them and never answers.
func countingSilentHost(t *testing.T) (address string, connections *atomic.Int64) {
	t.Helper()
	listener := listen(t)
	connections = new(atomic.Int64)
	accepted := make(chan net.Conn, 100)
	go func() {
		defer close(accepted)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			accepted <- connection
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		for connection := range accepted {
			_ = connection.Close()
		}
	})
	return listener.Addr().String(), connections
}

func wantNoAnswer(t *testing.T, err error, address string) {
	t.Helper()
	f := database.Classify(err)
	if f.Class != database.Transient || f.Reason != database.ReasonUnreachable || !strings.HasPrefix(f.Message, address) || !strings.Contains(f.Message, ": no answer in time: ") {
		t.Errorf("got %s, %s: %s", f.Class, f.Reason, f.Message)
	}
}

func TestSilentTargetIsLeftAloneForLongerAndLonger(t *testing.T) {
	clock := new(manualClock)
	p := pools(t, database.PoolOptions{Clock: clock.now, Limits: database.Limits{ConnectTimeout: 200 * time.Millisecond}})
	address, connections := countingSilentHost(t)
	silent := "postgresql://u:hunter22@" + address + "/d?sslmode=disable"
	get := func(url string) {
		t.Helper()
		_, err := p.Get(t.Context(), "a", parse(t, url))
		wantNoAnswer(t, err, address)
	}
	get(silent)
	attempts := int64(1)
	for _, leftAlone := range []time.Duration{15, 30, 60, 60} {
		clock.advance(leftAlone*time.Second - 1)
		get(silent)
		if got := connections.Load(); got != attempts {
			t.Errorf("%d attempts within %ds, want %d", got, leftAlone, attempts)
		}
		clock.advance(1)
		get(silent)
		attempts++
		eventually(t, "another attempt", func() bool { return connections.Load() == attempts })
	}
	get(strings.Replace(silent, "hunter22", "hunter23", 1))
	eventually(t, "an attempt with another password", func() bool { return connections.Load() == attempts+1 })
}

func TestAnotherAttemptAtASilentTargetIsNotWaitedFor(t *testing.T) {
	const timeout = 5 * time.Second
	clock := new(manualClock)
	p := pools(t, database.PoolOptions{Clock: clock.now, Limits: database.Limits{ConnectTimeout: timeout}})
	address := silentHost(t)
	silent := parse(t, "postgresql://u:p@"+address+"/d?sslmode=disable")
	_, err := p.Get(t.Context(), "a", silent)
	wantNoAnswer(t, err, address)
	clock.advance(15 * time.Second)
	started := time.Now()
	_, err = p.Get(t.Context(), "a", silent)
	wantNoAnswer(t, err, address)
	if took := time.Since(started); took > timeout-time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestFailureThatComesAtOnceIsNotRemembered(t *testing.T) {
	s := postgres.Shared(t)
	admin := connect(t, parse(t, s.NewDatabase(t)), database.Limits{})
	execute(t, admin, "CREATE ROLE mistyped LOGIN PASSWORD 'other'")
	p := pools(t, database.PoolOptions{Clock: new(manualClock).now})
	c := parse(t, s.URLFor("mistyped", "p", "postgres"))
	if _, err := p.Get(t.Context(), "a", c); database.Classify(err).Reason != database.ReasonAuthenticationFailed {
		t.Errorf("got %v", err)
	}
	execute(t, admin, "ALTER ROLE mistyped PASSWORD 'p'")
	get(t, p, "a", c)
}

// The pooler accepts connections itself, so only a query shows that the server hangs.
func TestServerThatHangsBehindAPooler(t *testing.T) {
	const timeout = 2 * time.Second
	s := postgres.Run(t, postgres.Options{})
	address := startPgBouncer(t, s)
	c := parse(t, fmt.Sprintf("postgresql://postgres:%s@%s/postgres?sslmode=disable", s.Password(), address))
	clock := new(manualClock)
	o := database.PoolOptions{Clock: clock.now, Limits: database.Limits{ConnectTimeout: timeout}}
	p := pools(t, o)
	before := get(t, p, "a", c)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Resume() })

	within := func(limit time.Duration, what string, try func() error) {
		t.Helper()
		started := time.Now()
		wantNoAnswer(t, try(), address)
		if took := time.Since(started); took > limit {
			t.Errorf("%s took %s", what, took)
		}
	}
	within(2*timeout-time.Second/2, "a query", func() error {
		_, err := before.Exec(t.Context(), "SELECT 1")
		return err
	})
	within(timeout-time.Second/2, "Get of a pool that was silent", func() error {
		_, err := p.Get(t.Context(), "a", c)
		return err
	})
	within(2*timeout-time.Second/2, "Get of a new pool", func() error {
		_, err := pools(t, o).Get(t.Context(), "a", c)
		return err
	})
	if p.Len() != 0 {
		t.Errorf("%d pools are open", p.Len())
	}

	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server answers again", func() bool {
		clock.advance(time.Minute)
		pool, err := p.Get(t.Context(), "a", c)
		return err == nil && pool != before && pool.Ping(t.Context()) == nil
	})
	// The first pool's owner is the second's now, and gone with it.
	p.Forget("a")
	if p.Len() != 0 {
		t.Errorf("%d pools are open", p.Len())
	}
}
