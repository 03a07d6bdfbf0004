//go:build integration

package database_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/test/postgres"
)

func pools(t *testing.T, o database.PoolOptions) *database.Pools {
	t.Helper()
	p := database.NewPools(o)
	t.Cleanup(p.Close)
	return p
}

func get(t *testing.T, p *database.Pools, owner string, c *database.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := p.Get(t.Context(), owner, c)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// eventually waits until something in the background has happened.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !happened(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("did not happen: " + what)
		}
	}
}

func isClosed(t *testing.T, pool *pgxpool.Pool) bool {
	t.Helper()
	return pool.Ping(t.Context()) != nil
}

func TestOwnersOfOneTargetShareAPool(t *testing.T) {
	url := postgres.Shared(t).NewDatabase(t)
	p := pools(t, database.PoolOptions{})
	first, second := get(t, p, "a", parse(t, url)), get(t, p, "b", parse(t, url))
	if first != second || p.Len() != 1 {
		t.Errorf("%d pools", p.Len())
	}
	p.Forget("a")
	if p.Len() != 1 || isClosed(t, second) {
		t.Error("the pool was closed while an owner is left")
	}
	p.Forget("b")
	p.Forget("b")
	if p.Len() != 0 {
		t.Error("the pool is open without an owner")
	}
	eventually(t, "the pool is closed", func() bool { return isClosed(t, first) })
}

func TestPoolIsSmallAndItsSessionsAreLimited(t *testing.T) {
	pool := get(t, pools(t, database.PoolOptions{Limits: database.Limits{LockTimeout: 3 * time.Second}}), "a", parse(t, postgres.Shared(t).NewDatabase(t)))
	if most := pool.Config().MaxConns; most != 2 {
		t.Errorf("%d connections", most)
	}
	if timeout := show(t, pool, "lock_timeout"); timeout != "3s" {
		t.Errorf("lock_timeout is %s", timeout)
	}
}

func TestRotationReplacesThePoolOnceTheNewPasswordWorks(t *testing.T) {
	s := postgres.Shared(t)
	admin := connect(t, parse(t, s.NewDatabase(t)), database.Limits{})
	execute(t, admin, "CREATE ROLE rotated LOGIN PASSWORD 'old'")
	p := pools(t, database.PoolOptions{})
	before := get(t, p, "a", parse(t, s.URLFor("rotated", "old", "postgres")))
	user, err := before.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	// The Secret has the new password, the database does not yet.
	rotated := parse(t, s.URLFor("rotated", "new", "postgres"))
	pool, err := p.Get(t.Context(), "a", rotated)
	if f := database.Classify(err); pool != nil || f.Reason != database.ReasonAuthenticationFailed {
		t.Fatalf("got %v, %+v", pool, f)
	}
	if p.Len() != 1 || isClosed(t, before) {
		t.Error("the old pool is gone before the new one works")
	}

	execute(t, admin, "ALTER ROLE rotated PASSWORD 'new'")
	after := get(t, p, "a", rotated)
	if after == before || p.Len() != 1 {
		t.Errorf("the pool was not replaced: %d pools", p.Len())
	}
	if _, err := user.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("a user of the old pool was disturbed: %v", err)
	}
	user.Release()
	eventually(t, "the old pool is closed", func() bool { return isClosed(t, before) })
}

func TestPoolRecoversFromARestartByItself(t *testing.T) {
	s := postgres.Run(t, postgres.Options{})
	p := pools(t, database.PoolOptions{})
	c := parse(t, s.URL("postgres"))
	get(t, p, "a", c)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if facts, err := database.ReadFacts(t.Context(), get(t, p, "a", c)); err != nil || facts.User != "postgres" {
		t.Errorf("the first query after a restart: %+v, %v", facts, err)
	}
}

func TestSessionEndedByTheServerIsTransient(t *testing.T) {
	url := postgres.Shared(t).NewDatabase(t)
	connection := connect(t, parse(t, url), database.Limits{})
	admin := connect(t, parse(t, url), database.Limits{})
	if _, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend($1)", int32(connection.PgConn().PID())); err != nil { //nolint:gosec // a process id
		t.Fatal(err)
	}
	for range 2 { // the server's farewell first, then the closed connection
		_, err := connection.Exec(t.Context(), "SELECT 1")
		if f := database.Classify(err); f.Class != database.Transient || f.Reason != database.ReasonUnreachable {
			t.Errorf("got %+v", f)
		}
	}
}

func TestIdlePoolIsClosed(t *testing.T) {
	var now atomic.Int64
	p := pools(t, database.PoolOptions{IdleTimeout: time.Minute, Clock: func() time.Time { return time.Unix(now.Load(), 0) }})
	c := parse(t, postgres.Shared(t).NewDatabase(t))
	pool := get(t, p, "a", c)
	now.Store(60)
	p.CloseIdle()
	if p.Len() != 1 {
		t.Error("closed before its time")
	}
	user, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now.Store(61)
	p.CloseIdle()
	if p.Len() != 1 {
		t.Error("closed while in use")
	}
	user.Release()
	eventually(t, "the pool is idle", func() bool { p.CloseIdle(); return p.Len() == 0 })
	if again := get(t, p, "a", c); again == pool || isClosed(t, again) {
		t.Error("a closed pool was returned")
	}
}

func TestSilentHostDelaysNobodyElse(t *testing.T) {
	const timeout = 60 * time.Second
	p := pools(t, database.PoolOptions{Limits: database.Limits{ConnectTimeout: timeout}})
	listener := listen(t)
	t.Cleanup(func() { _ = listener.Close() })
	silent := parse(t, "postgresql://u:p@"+listener.Addr().String()+"/d")
	impatient, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.Get(impatient, "slow", silent)
		ended <- err
	}()
	connection, err := listener.Accept() // now it connects, and gets no answer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })

	start := time.Now()
	get(t, p, "fast", parse(t, postgres.Shared(t).NewDatabase(t)))
	cancel()
	if f := database.Classify(<-ended); f.Class != database.Transient {
		t.Errorf("got %+v", f)
	}
	if took := time.Since(start); took > timeout/2 {
		t.Errorf("another owner and a cancelled one waited for %s", took)
	}
}

func TestSilentHostIsGivenUp(t *testing.T) {
	p := pools(t, database.PoolOptions{Limits: database.Limits{ConnectTimeout: 300 * time.Millisecond}})
	_, err := p.Get(t.Context(), "a", parse(t, "postgresql://u:hunter22@"+silentHost(t)+"/d"))
	if f := database.Classify(err); f.Reason != database.ReasonUnreachable || p.Len() != 0 {
		t.Errorf("got %+v, %d pools", f, p.Len())
	}
}

func TestManyOwnersAtOnce(t *testing.T) {
	s := postgres.Shared(t)
	targets := []*database.Config{parse(t, s.NewDatabase(t)), parse(t, s.NewDatabase(t)), parse(t, s.NewDatabase(t))}
	p := pools(t, database.PoolOptions{})
	var owners sync.WaitGroup
	for i := range 30 {
		owners.Go(func() {
			owner := fmt.Sprint(i % 10)
			c := targets[i%len(targets)]
			for range 5 {
				pool, err := p.Get(t.Context(), owner, c)
				if err != nil {
					t.Error(err)
					return
				}
				// Another goroutine may rotate this owner meanwhile: then its pool is closed, and only that may happen.
				if _, err := database.ReadFacts(t.Context(), pool); err != nil && database.Classify(err).Class != database.Transient {
					t.Error(err)
				}
				p.CloseIdle()
			}
		})
	}
	owners.Wait()
	if p.Len() > len(targets) {
		t.Errorf("%d pools for %d targets", p.Len(), len(targets))
	}
	p.Close()
	if _, err := p.Get(t.Context(), "a", targets[0]); err == nil || p.Len() != 0 {
		t.Errorf("after Close: %v, %d pools", err, p.Len())
	}
}
