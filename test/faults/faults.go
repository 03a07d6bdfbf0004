package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/messaginginbox/operator/test/consumer"
	"github.com/messaginginbox/operator/test/faults/external"
	"github.com/messaginginbox/operator/test/faults/worker"
)

// patience bounds every wait for something that must happen.
const patience = 30 * time.Second

// loseAcknowledgement kills the worker between commit and acknowledgement.
func loseAcknowledgement(ctx context.Context, a *application) (check, error) {
	if err := a.publish(ctx, 1, 1); err != nil {
		return check{}, err
	}
	p, err := a.start("worker", func(config *worker.Config) { config.LoseAcks = 1 }, nil)
	if err != nil {
		return check{}, err
	}
	killed, err := p.Wait(ctx)
	if err != nil {
		return check{}, err
	}
	before, err := a.balance(ctx)
	if err != nil {
		return check{}, err
	}
	if err = a.drain(ctx, nil); err != nil {
		return check{}, err
	}
	after, err := a.balance(ctx)
	skipped := a.outcomes(consumer.Skipped)
	return verdict("commit done, acknowledgement lost",
		"the work is committed when the worker dies; the message comes back once, its proof is found, no second effect",
		killed && before.exact() && after.exact() && skipped == 1,
		"killed by SIGKILL: %t, then %d effect; redeliveries skipped: %d; at the end %s", killed, before.effects, skipped, after), err
}

// failBeforeCommit makes the handler fail after its work.
func failBeforeCommit(ctx context.Context, a *application) (check, error) {
	if err := a.publish(ctx, 1, 1); err != nil {
		return check{}, err
	}
	rejected := make(chan struct{}, 1)
	p, err := a.start("worker", func(config *worker.Config) {
		config.FailFirst = true
		config.Broker.RetryDelay = 2 * time.Second // time to look
	}, func(event worker.Event) {
		if event.Outcome == consumer.Retried {
			rejected <- struct{}{}
		}
	})
	if err != nil {
		return check{}, err
	}
	if err = await(ctx, rejected, "the first attempt to fail"); err != nil {
		return check{}, errors.Join(err, p.Stop())
	}
	between, err := a.balance(ctx)
	if err != nil {
		return check{}, errors.Join(err, p.Stop())
	}
	if err = p.Stop(); err != nil {
		return check{}, err
	}
	if err = a.drain(ctx, func(config *worker.Config) { config.Broker.RetryDelay = 2 * time.Second }); err != nil {
		return check{}, err
	}
	after, err := a.balance(ctx)
	return verdict("exception before commit",
		"effect and proof of the failed attempt are gone; the retry leaves one of each",
		a.failures() == 1 && between.effects == 0 && between.proofs == 0 && after.exact(),
		"%d attempt failed after its work, then %d effects and %d proofs; after the retry %s", a.failures(), between.effects, between.proofs, after), err
}

// meet lets two workers handle two messages with one id at once. The first holds its
// transaction open, and then commits or fails.
func meet(ctx context.Context, a *application, firstFails bool) (check, error) {
	const hold = 4 * time.Second // on a busy machine the second worker needs some of it to start
	if err := a.publish(ctx, 1, 2); err != nil {
		return check{}, err
	}
	holding := make(chan struct{}, 1)
	first, err := a.start("first", func(config *worker.Config) { config.Hold, config.FailFirst = hold, firstFails },
		func(event worker.Event) {
			if event.Step == consumer.StepRecorded {
				select {
				case holding <- struct{}{}:
				default: // its retry records again
				}
			}
		})
	if err != nil {
		return check{}, err
	}
	if err = await(ctx, holding, "the first worker to write its proof"); err != nil {
		return check{}, errors.Join(err, first.Stop())
	}
	steps := make(chan worker.Event, 100)
	second, err := a.start("second", nil, func(event worker.Event) { steps <- event })
	if err != nil {
		return check{}, errors.Join(err, first.Stop())
	}
	blocked, wait, outcome, err := a.watchSecond(ctx, steps)
	if err = errors.Join(err, first.Stop(), second.Stop(), a.drain(ctx, nil)); err != nil {
		return check{}, err
	}
	after, err := a.balance(ctx)
	name, expected, expectedOutcome := "two consumers with one id, the first commits", "the second waits for the first, is then refused; one effect", consumer.Skipped
	if firstFails {
		name, expected, expectedOutcome = "two consumers with one id, the first rolls back", "the second waits for the first, then does the work; one effect", consumer.Handled
	}
	return verdict(name, expected, blocked && wait > 0 && outcome == expectedOutcome && after.exact(),
		"PostgreSQL showed the second waiting for a lock: %t, for %d ms; its outcome: %s; at the end %s", blocked, wait.Milliseconds(), outcome, after), err
}

// watchSecond follows the second worker through its one delivery: whether PostgreSQL showed it
// waiting for a lock, how long it took from receiving the message to having the proof, the outcome.
func (a *application) watchSecond(ctx context.Context, steps <-chan worker.Event) (blocked bool, wait time.Duration, outcome consumer.Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var received time.Time
	for {
		select {
		case event := <-steps:
			switch {
			case event.Step == consumer.StepReceived:
				received = event.At
			case event.Step == consumer.StepRecorded:
				wait = event.At.Sub(received)
			case event.Outcome == consumer.Retried && wait == 0: // what RabbitMQ redelivered is only sent again
			case event.Outcome != "":
				return blocked, wait, event.Outcome, nil
			}
		case <-time.After(20 * time.Millisecond):
			var waiting bool
			if err := a.db.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database()
				AND application_name = 'worker' AND wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
				return blocked, wait, "", fmt.Errorf("look for waiting sessions: %w", err)
			}
			blocked = blocked || waiting
		case <-ctx.Done():
			return blocked, wait, "", fmt.Errorf("the second worker did not finish: %w", ctx.Err())
		}
	}
}

// charge calls a service that accepts the charge and does not answer in time.
func charge(ctx context.Context, a *application, idempotencyKey bool) (result check, err error) {
	payments, err := external.StartPayments(ctx)
	if err != nil {
		return check{}, err
	}
	defer func() { err = errors.Join(err, payments.Close()) }()
	if err = a.publish(ctx, 1, 1); err != nil {
		return check{}, err
	}
	err = a.drain(ctx, func(config *worker.Config) {
		config.ChargeURL, config.IdempotencyKey = payments.URL(), idempotencyKey
	})
	if err != nil {
		return check{}, err
	}
	after, err := a.balance(ctx)
	charges := payments.Charges()[a.published[0]]
	name, expected, expectedCharges := "external call accepted, time-out before commit",
		"two charges: what is outside of the transaction the inbox cannot undo; one effect in the database", 2
	if idempotencyKey {
		name, expected, expectedCharges = name+", with an idempotency key", "one charge, one effect in the database", 1
	}
	return verdict(name, expected, charges == expectedCharges && a.failures() == 1 && after.exact(),
		"%d attempt timed out, %d charges; %s", a.failures(), charges, after), err
}

// await waits for a signal with patience.
func await(ctx context.Context, signal <-chan struct{}, what string) error {
	select {
	case <-signal:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(patience):
		return fmt.Errorf("waited %s in vain for %s", patience, what)
	}
}
