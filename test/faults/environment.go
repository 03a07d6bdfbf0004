package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	services "github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/faults/brokers"
	"github.com/messaginginbox/operator/test/postgres"
)

// environment is the running services.
type environment struct {
	postgres *postgres.Server
	rabbitmq *services.RabbitMQ
	redis    *services.Redis
	started  atomic.Int64 // applications
}

// startEnvironment starts PostgreSQL and the chosen brokers.
func startEnvironment(ctx context.Context, kinds []brokers.Kind) (*environment, error) {
	e := &environment{}
	var err error
	if e.postgres, err = postgres.Start(ctx, postgres.Options{}); err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		switch kind {
		case brokers.RabbitMQ:
			e.rabbitmq, err = services.StartRabbitMQ(ctx)
		case brokers.RedisStreams:
			e.redis, err = services.StartRedis(ctx)
		case brokers.Doctrine: // is a table of PostgreSQL
		default:
			err = fmt.Errorf("no broker is called %q", kind)
		}
		if err != nil {
			return nil, errors.Join(err, e.stop())
		}
	}
	return e, nil
}

func (e *environment) stop() error {
	var failures []error
	if e.rabbitmq != nil {
		failures = append(failures, e.rabbitmq.Stop())
	}
	if e.redis != nil {
		failures = append(failures, e.redis.Stop())
	}
	return errors.Join(append(failures, e.postgres.Stop())...)
}

// address of a queue whose messages come back soon, so that a run takes seconds.
func (e *environment) address(kind brokers.Kind, databaseURL string) brokers.Address {
	a := brokers.Address{
		Kind: kind, RedeliverTimeout: time.Second, ClaimInterval: 100 * time.Millisecond, Heartbeat: 10 * time.Second,
		RetryDelay: 100 * time.Millisecond, MaxRetries: 3,
	}
	switch kind {
	case brokers.RabbitMQ:
		a.URL = e.rabbitmq.URL()
	case brokers.RedisStreams:
		a.URL = e.redis.URL()
	case brokers.Doctrine:
		a.URL = databaseURL
	}
	return a
}
