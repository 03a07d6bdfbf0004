package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

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

// runAll tries everything on every broker, the brokers side by side.
func runAll(ctx context.Context, e *environment, kinds []brokers.Kind, p plan, j *journal) error {
	failures := make([]error, len(kinds))
	var group sync.WaitGroup
	for i, kind := range kinds {
		group.Go(func() {
			for _, t := range p.trials() {
				c, err := try(ctx, e, kind, p.seed, t)
				if err != nil {
					failures[i] = fmt.Errorf("%s: %s: %w", kind, t.name, err)
					return
				}
				j.add(kind, c)
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

func try(ctx context.Context, e *environment, kind brokers.Kind, seed uint64, t trial) (c check, err error) {
	a, err := newApplication(ctx, e, kind, seed)
	if err != nil {
		return check{}, err
	}
	defer func() { err = errors.Join(err, a.close(context.WithoutCancel(ctx))) }()
	return t.run(ctx, a)
}
