// Package probe looks at what a transport holds now: how many messages in which state,
// how old the oldest is, and the broker's own settings that decide how late a message
// can come back. It only reads, and consumes or peeks nothing where that would mark a
// message as redelivered.
package probe

import (
	"context"
	"time"

	"github.com/messaginginbox/operator/internal/redelivery"
)

// DefaultTimeLimit of one look at one transport.
const DefaultTimeLimit = 3 * time.Second

// Observation is what one look saw. A pointer that is nil was not seen, or does not apply.
type Observation struct {
	// Pending messages are ready to be delivered for the first time.
	Pending int64
	// Delayed messages wait for their time.
	Delayed int64
	// InFlight messages are delivered and neither acknowledged nor stuck.
	InFlight int64
	// Stuck messages were delivered longer ago than their redelivery time-out, or wait for
	// a person (buried).
	Stuck int64
	// Oldest is when the oldest message that is due entered the transport.
	Oldest *time.Time
	// AgeUnknown says that messages may be due whose age this look could not see.
	AgeUnknown bool
	// Redelivered is a count of redeliveries: of RabbitMQ's queue since the node started,
	// of redis the pending entries that were delivered more than once.
	Redelivered *int64
	// Settings that decide windows.
	Settings Settings
	// Gaps are what could not be seen and which right is missing, one sentence each.
	Gaps []string
}

// Settings are a broker's own values. A nil one was not seen, or does not apply.
type Settings struct {
	// VisibilityTimeout of an SQS queue.
	VisibilityTimeout *time.Duration
	// ConsumerTimeout of a RabbitMQ queue, from its arguments or its policy; the node's
	// own one cannot be read through the management API.
	ConsumerTimeout *time.Duration
	// TTR is the time to run of the job at the head of a beanstalkd tube.
	TTR *time.Duration
	// PendingEntries of a redis consumer group.
	PendingEntries *int64
	// StreamLength is the number of entries of a redis stream.
	StreamLength *int64
	// MessageTTL is how long a message may stay in a RabbitMQ queue.
	MessageTTL *time.Duration
	// QueueExpiry is how long an unused RabbitMQ queue stays.
	QueueExpiry *time.Duration
	// Retention is how long SQS keeps a message.
	Retention *time.Duration
	// DeliveryLimit is how often a RabbitMQ quorum queue or SQS delivers a message.
	DeliveryLimit *int64
}

// Probe looks at the target once, within the context's time and at most DefaultTimeLimit.
// The error is a *Failure.
func Probe(ctx context.Context, target Target) (Observation, error) {
	limited, cancel := context.WithTimeout(ctx, DefaultTimeLimit)
	defer cancel()
	look, known := map[redelivery.Type]func(context.Context, Target) (Observation, error){
		redelivery.Doctrine:   doctrine,
		redelivery.Redis:      redisStream,
		redelivery.AMQP:       amqp,
		redelivery.Beanstalkd: beanstalkd,
		redelivery.SQS:        sqsQueue,
	}[target.Type]
	if !known {
		return Observation{}, failed(ReasonNotObservable, "a transport of type %s cannot be looked at: remove observe", target.Type)
	}
	observation, err := look(limited, target)
	if err != nil {
		return Observation{}, asFailure(target, err)
	}
	return observation, nil
}

// Explain makes a *Failure of an error that came from looking at the target.
func Explain(target Target, err error) error {
	switch target.Type {
	case redelivery.Doctrine:
		table, _ := target.DoctrineTable()
		return databaseFailure(target, table, err)
	case redelivery.Redis:
		look := &streamLook{target: target}
		look.stream, look.delayed, look.group = target.StreamKeys()
		return asFailure(target, look.explain(err))
	}
	return asFailure(target, err)
}

func (o *Observation) gap(sentence string) { o.Gaps = append(o.Gaps, sentence) }

// sawOldest keeps the earlier of two times.
func (o *Observation) sawOldest(entered time.Time) {
	entered = entered.UTC()
	if o.Oldest == nil || entered.Before(*o.Oldest) {
		o.Oldest = &entered
	}
}
