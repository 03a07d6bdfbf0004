package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/messaginginbox/operator/test/consumer"
	"github.com/messaginginbox/operator/test/faults/brokers"
)

// poll is the pause of whoever found nothing to do.
const poll = 200 * time.Millisecond

// failsForGood is of how many failing messages one fails each time.
const failsForGood = 30

// errDied stands for the end of a worker between its commit and its acknowledgement.
var errDied = errors.New("the worker died")

// play runs the application's processes until ctx ends.
func (t *team) play(ctx context.Context, work *errgroup.Group, start time.Time) {
	parts := map[string]func() error{
		"publisher": func() error { return t.publish(ctx) },
		"worker":    func() error { return t.consume(ctx, start) },
	}
	if t.outbox {
		parts["relay"] = func() error { return t.relay(ctx, start) }
	}
	if t.purgeAfter > 0 {
		parts["purge"] = func() error {
			for wait(ctx, t.purgeEvery) {
				if err := t.purge(ctx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for name, part := range parts {
		work.Go(func() error {
			if err := part(); err != nil && ctx.Err() == nil {
				return fmt.Errorf("the %s of %s: %w", name, t.name, err)
			}
			return nil
		})
	}
}

// publish sends a message per pace, numbered.
func (t *team) publish(ctx context.Context) error {
	address, queue := t.broker, t.transport
	if t.outbox {
		address, queue = t.doctrine(), outboxQueue
	}
	broker, err := address.Open(ctx, queue)
	if err != nil {
		return err
	}
	for number := 1; wait(ctx, t.pace); number++ {
		message := consumer.Message{ID: consumer.NewMessageID(), Body: strconv.Itoa(number)}
		if err = broker.Publish(ctx, message, 0); err != nil {
			break
		}
	}
	return errors.Join(err, broker.Close(context.WithoutCancel(ctx)))
}

// doctrine is where the queues in the application's own database are.
func (t *team) doctrine() brokers.Address {
	address := t.broker
	address.Kind, address.URL = brokers.Doctrine, t.databaseURL
	return address
}

// relay publishes what waits in the outbox. When it goes away it leaves a message taken.
func (t *team) relay(ctx context.Context, start time.Time) error {
	outbox, err := t.doctrine().Open(ctx, outboxQueue)
	if err != nil {
		return err
	}
	broker, err := t.broker.Open(ctx, t.transport)
	if err != nil {
		return errors.Join(err, outbox.Close(ctx))
	}
	for err == nil && ctx.Err() == nil {
		err = t.relayNext(ctx, outbox, broker, start)
	}
	return errors.Join(err, outbox.Close(context.WithoutCancel(ctx)), broker.Close(context.WithoutCancel(ctx)))
}

func (t *team) relayNext(ctx context.Context, outbox, broker consumer.Broker, start time.Time) error {
	delivery, ready, err := outbox.Receive(ctx)
	if err != nil {
		return err
	}
	if !ready {
		wait(ctx, poll)
		return nil
	}
	if t.relayAway.covers(start, time.Now()) {
		wait(ctx, time.Until(start.Add(t.relayAway.until)))
		return nil
	}
	if err := broker.Publish(ctx, delivery.Message, 0); err != nil {
		return err
	}
	return outbox.Acknowledge(ctx, delivery)
}

// consume runs one worker after the other: each dies after some messages, and the next
// has another name.
func (t *team) consume(ctx context.Context, start time.Time) error {
	db, err := t.connect(ctx)
	if err != nil {
		return err
	}
	failed, err := t.doctrine().Open(ctx, failedQueue)
	if err != nil {
		return errors.Join(err, db.Close(ctx))
	}
	for number := 1; ctx.Err() == nil; number++ {
		if err = t.worker(ctx, number, db, failed, start); !errors.Is(err, errDied) {
			break
		}
	}
	return errors.Join(err, failed.Close(context.WithoutCancel(ctx)), db.Close(context.WithoutCancel(ctx)))
}

// worker handles messages until it dies or ctx ends.
func (t *team) worker(ctx context.Context, number int, db *pgx.Conn, failed consumer.Broker, start time.Time) error {
	address := t.broker
	address.Consumer = fmt.Sprintf("%s-%d", t.name, number)
	broker, err := address.Open(ctx, t.transport)
	if err != nil {
		return err
	}
	worker := &consumer.Worker{
		Transport: t.transport, Broker: &mortal{Broker: broker, left: t.loseEvery}, Database: db, Inbox: consumer.DefaultInbox,
		Handle: t.handle, MaxRetries: address.MaxRetries, RetryDelay: address.RetryDelay, Failure: failed,
	}
	for err == nil && ctx.Err() == nil {
		outcome := consumer.Idle
		if !t.workersAway.covers(start, time.Now()) {
			outcome, err = worker.HandleNext(ctx)
		}
		if outcome == consumer.Idle && err == nil {
			wait(ctx, poll)
		}
	}
	return errors.Join(err, broker.Close(context.WithoutCancel(ctx)))
}

// handle ships an order, and takes its time. What fails does so at its first attempt, or always.
func (t *team) handle(ctx context.Context, tx pgx.Tx, message consumer.Message) error {
	number, err := strconv.Atoi(message.Body)
	if err != nil {
		return err
	}
	wait(ctx, t.work)
	if number%t.failEvery == 0 && (message.Retries == 0 || number%(t.failEvery*failsForGood) == 0) {
		return errors.New("another service is away")
	}
	return consumer.Ship(ctx, tx, message)
}

// mortal is the broker of a worker that dies instead of the last acknowledgement.
type mortal struct {
	consumer.Broker
	left int
}

// Acknowledge counts down.
func (m *mortal) Acknowledge(ctx context.Context, delivery consumer.Delivery) error {
	if m.left--; m.left <= 0 {
		return errDied
	}
	return m.Broker.Acknowledge(ctx, delivery)
}
