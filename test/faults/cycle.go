package main

import (
	"context"
	"errors"
	"time"

	"github.com/messaginginbox/operator/test/consumer"
	"github.com/messaginginbox/operator/test/faults/worker"
)

// whilePruning runs so many cycles, and for so long at least, while prune is called again and again.
func (a *application) whilePruning(ctx context.Context, pause time.Duration, prune func(context.Context) error, cycles int, atLeast time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		for {
			if err := prune(context.WithoutCancel(ctx)); err != nil {
				stop()
				done <- err
				return
			}
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-time.After(pause):
			}
		}
	}()
	var failure error
	started := time.Now()
	for n := 0; failure == nil && (n < cycles || time.Since(started) < atLeast); n++ {
		failure = a.cycle(ctx)
	}
	stop()
	return errors.Join(<-done, failure)
}

func (a *application) loseAcksOfLoop(config *worker.Config) {
	config.FailFirst = true
	config.LoseAcks = 0.7
	config.Broker.RedeliverTimeout, config.Broker.ClaimInterval, config.Broker.Heartbeat = loopRedeliverTimeout, loopClaimInterval, loopHeartbeat
	config.Broker.RetryDelay, config.Broker.MaxRetries = loopRetryDelay, loopMaxRetries
}

// cycle lets every order fail once, be retried and committed, and many of them lose their
// acknowledgement. Every worker has a name of its own, so that Redis redelivers by time.
func (a *application) cycle(ctx context.Context) error {
	if err := a.publish(ctx, loopOrders, 1); err != nil {
		return err
	}
	// What is never committed the balance will show as lost.
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		committed, err := a.committed(ctx)
		if err != nil {
			return err
		}
		if committed {
			break
		}
		p, err := a.start(consumer.NewMessageID(), a.loseAcksOfLoop, nil)
		if err != nil {
			return err
		}
		if err := a.awaitDeathOrCommits(ctx, p, deadline); err != nil {
			return err
		}
	}
	// What comes back before the downtime is handled; the rest comes back at its end.
	p, err := a.start(consumer.NewMessageID(), a.withoutLosses, nil)
	if err != nil {
		return err
	}
	pause := time.Duration(a.random.Int64N(int64(loopRedeliverTimeout)))
	if err := errors.Join(sleep(ctx, pause), p.Stop()); err != nil {
		return err
	}
	if err := sleep(ctx, loopMaxDowntime-500*time.Millisecond); err != nil { // the backlog needs some time too
		return err
	}
	return a.drain(ctx, a.withoutLosses)
}

// withoutLosses is a worker of the loop that acknowledges what it handles.
func (a *application) withoutLosses(config *worker.Config) {
	a.loseAcksOfLoop(config)
	config.LoseAcks = 0
	config.Broker.Consumer = consumer.NewMessageID()
}

func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// committed says whether every order was handled at least once.
func (a *application) committed(ctx context.Context) (bool, error) {
	var missing bool
	err := a.db.QueryRow(ctx, `SELECT count(*) > 0 FROM unnest($1::text[]) published (order_number)
		WHERE NOT EXISTS (SELECT FROM shipments WHERE shipments.order_number = published.order_number)`, a.published).Scan(&missing)
	return !missing, err
}

// awaitDeathOrCommits returns when the worker has killed itself, all is handled, or time is up.
func (a *application) awaitDeathOrCommits(ctx context.Context, p *worker.Process, deadline time.Time) error {
	for {
		select {
		case <-p.Ended():
			_, err := p.Wait(ctx)
			return err
		case <-time.After(50 * time.Millisecond):
		}
		committed, err := a.committed(ctx)
		if err != nil || committed || time.Now().After(deadline) {
			return errors.Join(err, p.Stop())
		}
	}
}

// redeliveries counts those that found their proof, and how long after the commit the latest came.
func (a *application) redeliveries() (skipped int, latest time.Duration) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	commits := map[string]time.Time{}
	for _, event := range a.events {
		if event.Step == consumer.StepCommitted {
			commits[event.MessageID] = event.At
		}
	}
	for _, event := range a.events {
		if event.Outcome == consumer.Skipped {
			skipped++
			latest = max(latest, event.At.Sub(commits[event.MessageID]))
		}
	}
	return skipped, latest
}
