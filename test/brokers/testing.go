package brokers

import (
	"context"
	"testing"
)

// Run starts a broker for one test and stops it at its end: brokers.Run(t, brokers.StartRabbitMQ).
func Run[B interface{ Stop() error }](t testing.TB, start func(context.Context) (B, error)) B {
	t.Helper()
	broker, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Stop(); err != nil {
			t.Error(err)
		}
	})
	return broker
}

// RunRedis starts a redis with more of its command line for one test.
func RunRedis(t testing.TB, settings ...string) *Redis {
	t.Helper()
	return Run(t, func(ctx context.Context) (*Redis, error) { return StartRedis(ctx, settings...) })
}
