// Package brokers runs private instances of RabbitMQ, Redis, beanstalkd and SQS on loopback, at ports that the
// kernel picks. They end with the process that started them.
package brokers

import (
	"context"
	"testing"

	"github.com/messaginginbox/operator/test/certificates"
)

const host = "127.0.0.1"

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

// RunRedisTLS starts a redis that speaks only TLS for one test.
func RunRedisTLS(t testing.TB, certificate certificates.Certificate, settings ...string) *Redis {
	t.Helper()
	return Run(t, func(ctx context.Context) (*Redis, error) { return StartRedisTLS(ctx, certificate, settings...) })
}
