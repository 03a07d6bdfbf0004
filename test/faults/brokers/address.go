package brokers

import (
	"context"
	"fmt"
	"time"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/test/consumer"
)

// Kind of a broker.
type Kind string

// The kinds.
const (
	RabbitMQ     Kind = "rabbitmq"
	RedisStreams Kind = "redis"
	Doctrine     Kind = "doctrine"
)

// Address says where a queue is and how it redelivers. It is handed to workers as JSON.
type Address struct {
	Kind Kind
	// URL of the server.
	URL string
	// Consumer is the worker's name, which matters to Redis.
	Consumer string
	// RedeliverTimeout of Redis and Doctrine.
	RedeliverTimeout time.Duration
	// ClaimInterval of Redis.
	ClaimInterval time.Duration
	// Heartbeat of RabbitMQ.
	Heartbeat time.Duration
	// RetryDelay is the delay of the first retry; each further one doubles it.
	RetryDelay time.Duration
	// MaxRetries is how often a failed message is sent again.
	MaxRetries int
}

// Open connects to one queue.
func (a Address) Open(ctx context.Context, queue string) (consumer.Broker, error) {
	switch a.Kind {
	case RabbitMQ:
		var delays []time.Duration
		for retry := range a.MaxRetries {
			delays = append(delays, a.RetryDelay<<retry)
		}
		return OpenAMQP(a.URL, queue, a.Heartbeat, delays)
	case RedisStreams:
		return OpenRedis(ctx, a.URL, queue, a.Consumer, a.RedeliverTimeout, a.ClaimInterval)
	case Doctrine:
		return a.openDoctrine(ctx, queue)
	}
	return nil, fmt.Errorf("no broker is called %q", a.Kind)
}

func (a Address) openDoctrine(ctx context.Context, queue string) (consumer.Broker, error) {
	target, err := database.Parse(a.URL)
	if err != nil {
		return nil, err
	}
	connection, err := target.Connect(ctx, database.Limits{ApplicationName: "consumer"})
	if err != nil {
		return nil, err
	}
	return consumer.NewDoctrine(connection, queue, a.RedeliverTimeout), nil
}
