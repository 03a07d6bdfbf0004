package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/messaginginbox/operator/test/consumer"
	"github.com/messaginginbox/operator/test/faults/external"
	"github.com/messaginginbox/operator/test/faults/worker"
)

const (
	// backlog is how many orders are at least waiting, so that kills fall on busy workers.
	backlog = 12
	// killWithin is how long a worker lives at most after it is ready.
	killWithin = 80 * time.Millisecond
	// stepDelay is the longest pause at a step: the steps themselves are so quick that kills would miss them.
	stepDelay = 4 * time.Millisecond
)

// soak is a workload under random kills.
type soak struct {
	name    string
	workers int // at once
	copies  int // messages with one id
	change  func(*worker.Config)
}

// run kills workers at random moments while they work, then drains the queue, and
// expects one effect and one proof of each order.
func (s soak) run(ctx context.Context, a *application, kills int) (check, error) {
	points := killPoints{}
	workers := make([]*worker.Process, s.workers)
	idle := false
	for range kills {
		if err := s.refill(ctx, a, idle); err != nil {
			return check{}, errors.Join(err, stopAll(workers))
		}
		victim := a.random.IntN(s.workers)
		if err := s.startMissing(a, workers); err != nil {
			return check{}, errors.Join(err, stopAll(workers))
		}
		time.Sleep(time.Duration(a.random.Int64N(int64(killWithin))))
		last, err := workers[victim].Kill()
		workers[victim] = nil
		if err != nil {
			return check{}, errors.Join(err, stopAll(workers))
		}
		point := pointAfter(last)
		points[point]++
		idle = point == pointBetween
		if ctx.Err() != nil {
			return check{}, errors.Join(ctx.Err(), stopAll(workers))
		}
	}
	if err := errors.Join(stopAll(workers), a.drain(ctx, s.change)); err != nil {
		return check{}, err
	}
	b, err := a.balance(ctx)
	return verdict(fmt.Sprintf("%s, %d random kills", s.name, kills),
		"zero double effects, zero lost effects, one proof of each order", b.exact(),
		"%s; redeliveries and copies skipped: %d; kills %s", b, a.outcomes(consumer.Skipped), points), err
}

// refill also publishes when workers found nothing to do: what waits may all be delayed.
func (s soak) refill(ctx context.Context, a *application, idle bool) error {
	waiting, err := a.broker.Waiting(ctx)
	if err != nil || (waiting >= backlog && !idle) {
		return err
	}
	return a.publish(ctx, backlog, s.copies)
}

func (s soak) startMissing(a *application, workers []*worker.Process) error {
	for i := range workers {
		if workers[i] != nil {
			continue
		}
		p, err := a.start(fmt.Sprintf("worker-%d", i), func(config *worker.Config) {
			config.StepDelay = stepDelay
			if s.change != nil {
				s.change(config)
			}
		}, nil)
		if err != nil {
			return err
		}
		workers[i] = p
		if err := p.AwaitReady(); err != nil {
			return err
		}
	}
	return nil
}

func stopAll(workers []*worker.Process) error {
	var failures []error
	for _, p := range workers {
		if p != nil {
			failures = append(failures, p.Stop())
		}
	}
	return errors.Join(failures...)
}

// soakCharges is the soak of the external effect: it also counts the charges.
func soakCharges(ctx context.Context, a *application, kills int, idempotencyKey bool) (result check, err error) {
	payments, err := external.StartPayments(ctx)
	if err != nil {
		return check{}, err
	}
	defer func() { err = errors.Join(err, payments.Close()) }()
	s := soak{name: "external effect", workers: 1, copies: 1, change: func(config *worker.Config) {
		config.ChargeURL, config.IdempotencyKey, config.ChargeTimeout = payments.URL(), idempotencyKey, 50*time.Millisecond
	}}
	expected := "; each order charged twice or more: the limit of an inbox"
	if idempotencyKey {
		s.name += " with an idempotency key"
		expected = "; each order charged once"
	}
	c, err := s.run(ctx, a, kills)
	if err != nil {
		return c, err
	}
	fewest, most, total := chargesPerOrder(payments.Charges(), a.published)
	c.expected += expected
	c.happened += fmt.Sprintf("; charges: %d, from %d to %d per order", total, fewest, most)
	c.passed = c.passed && (idempotencyKey && fewest == 1 && most == 1 || !idempotencyKey && fewest >= 2)
	return c, nil
}

func chargesPerOrder(charges map[string]int, orders []string) (fewest, most, total int) {
	perOrder := make([]int, 0, len(orders))
	for _, order := range orders {
		perOrder = append(perOrder, charges[order])
		total += charges[order]
	}
	return slices.Min(perOrder), slices.Max(perOrder), total
}

// killPoints counts kills by where they fell.
type killPoints map[string]int

// The places, in the order of a delivery.
const (
	pointBetween   = "between messages"
	pointReceived  = "before the proof was written"
	pointRecorded  = "after the proof, before the work was done"
	pointWorked    = "after the work, before or in the commit"
	pointFailed    = "after an exception, before the retry was sent"
	pointCommitted = "after the commit, before or in the acknowledgement"
)

// pointAfter is where a worker was killed that told this last.
func pointAfter(last worker.Event) string {
	if last.Failure != "" {
		return pointFailed
	}
	switch last.Step {
	case consumer.StepReceived:
		return pointReceived
	case consumer.StepRecorded:
		return pointRecorded
	case consumer.StepWorked:
		return pointWorked
	case consumer.StepCommitted:
		return pointCommitted
	default:
		return pointBetween
	}
}

// String lists the places.
func (k killPoints) String() string {
	var parts []string
	for _, point := range []string{pointBetween, pointReceived, pointRecorded, pointWorked, pointFailed, pointCommitted} {
		if k[point] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k[point], point))
		}
	}
	return strings.Join(parts, ", ")
}

// soaks are the four faults under random kills.
func soaks() []soak {
	return []soak{
		{name: "lost acknowledgements", workers: 1, copies: 1},
		{name: "exceptions before commit", workers: 1, copies: 1, change: func(config *worker.Config) { config.FailFirst = true }},
		{name: "two consumers with one id", workers: 2, copies: 2},
	}
}
