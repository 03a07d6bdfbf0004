package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/messaginginbox/operator/test/faults/brokers"
)

// plan says how much to do.
type plan struct {
	kills  int
	cycles int // of the loop with pruning
	seed   uint64
	inbox  *product
}

// trial tries one claim on an application of its own.
type trial struct {
	name string
	run  func(ctx context.Context, a *application) (check, error)
}

// trials are the faults, each once for certain and then at random.
func (p plan) trials() []trial {
	trials := []trial{
		{"lost acknowledgement", loseAcknowledgement},
		{"exception", failBeforeCommit},
		{"two consumers, commit", func(ctx context.Context, a *application) (check, error) { return meet(ctx, a, false) }},
		{"two consumers, rollback", func(ctx context.Context, a *application) (check, error) { return meet(ctx, a, true) }},
		{"external effect", func(ctx context.Context, a *application) (check, error) { return charge(ctx, a, false) }},
		{"external effect, key", func(ctx context.Context, a *application) (check, error) { return charge(ctx, a, true) }},
	}
	for _, s := range soaks() {
		trials = append(trials, trial{s.name, func(ctx context.Context, a *application) (check, error) { return s.run(ctx, a, p.kills) }})
	}
	l := loop{inbox: p.inbox, cycles: p.cycles}
	return append(trials,
		trial{"soak of external effects", func(ctx context.Context, a *application) (check, error) { return soakCharges(ctx, a, p.kills, false) }},
		trial{"soak of external effects, key", func(ctx context.Context, a *application) (check, error) { return soakCharges(ctx, a, p.kills, true) }},
		trial{"retention above", l.justAbove},
		trial{"retention below", l.justBelow},
		trial{"operator bypassed", l.bypassed},
	)
}

// atOnce is how many trials run side by side. They mostly wait.
const atOnce = 6

// runAll tries everything on every broker.
func runAll(ctx context.Context, e *environment, kinds []brokers.Kind, p plan, j *journal) error {
	var (
		group    sync.WaitGroup
		mutex    sync.Mutex
		failures []error
	)
	slots := make(chan struct{}, atOnce)
	for _, t := range p.trials() {
		for _, kind := range kinds {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				group.Wait()
				return errors.Join(append(failures, ctx.Err())...)
			}
			group.Go(func() {
				defer func() { <-slots }()
				c, err := p.try(ctx, e, kind, t)
				if err == nil {
					j.add(kind, c)
					return
				}
				mutex.Lock()
				defer mutex.Unlock()
				failures = append(failures, fmt.Errorf("%s: %s: %w", kind, t.name, err))
			})
		}
	}
	group.Wait()
	return errors.Join(failures...)
}

// try bounds the trial: a queue that never drains would last for ever.
func (p plan) try(ctx context.Context, e *environment, kind brokers.Kind, t trial) (c check, err error) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute+time.Duration(p.kills)*time.Second)
	defer stop()
	a, err := newApplication(ctx, e, kind, p.seed)
	if err != nil {
		return check{}, err
	}
	defer func() { err = errors.Join(err, a.close(context.WithoutCancel(ctx))) }()
	return t.run(ctx, a)
}
