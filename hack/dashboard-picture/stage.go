package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	services "github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/environment"
	"github.com/messaginginbox/operator/test/faults/brokers"
)

// manifests of the four inboxes.
//
//go:embed inboxes.yaml
var manifests string

// stage is the services and the applications on them.
type stage struct {
	env      *environment.Environment
	rabbitmq *services.RabbitMQ
	redis    *services.Redis
	gates    map[string]*gate // by the name of the Secret with the broker's URL
	teams    []*team
	duration time.Duration
	// namespaces that were made; a cluster that was there before stays.
	namespaces []string
}

// setStage starts the brokers and fills the databases with the history that the
// applications have when the operator first looks at them.
func setStage(ctx context.Context, env *environment.Environment, duration time.Duration) (_ *stage, err error) {
	s := &stage{env: env, gates: map[string]*gate{}, duration: duration}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	if s.rabbitmq, err = services.StartRabbitMQ(ctx); err != nil {
		return nil, err
	}
	if s.redis, err = services.StartRedis(ctx); err != nil {
		return nil, err
	}
	for name, url := range map[string]string{"rabbitmq": s.rabbitmq.ManagementURL(), "redis": s.redis.URL()} {
		opened, openErr := openGate(ctx, env.Postgres.Host(), url)
		if openErr != nil {
			return nil, openErr
		}
		s.gates[name] = opened
	}
	s.teams = s.cast()
	for _, t := range s.teams {
		if err = t.setUp(ctx, env.Postgres); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return s, nil
}

// close ends and removes everything, also after ctx has ended.
func (s *stage) close(ctx context.Context) error {
	var failures []error
	for _, namespace := range s.namespaces {
		_, err := s.env.Kubectl(context.WithoutCancel(ctx), "delete", "namespace", namespace, "--wait=false")
		failures = append(failures, err)
	}
	for _, gate := range s.gates {
		failures = append(failures, gate.shut())
	}
	if s.rabbitmq != nil {
		failures = append(failures, s.rabbitmq.Stop())
	}
	if s.redis != nil {
		failures = append(failures, s.redis.Stop())
	}
	return errors.Join(failures...)
}

// declare hands the operator the Secrets and the manifests.
func (s *stage) declare(ctx context.Context) error {
	for _, t := range s.teams {
		if !slices.Contains(s.namespaces, t.namespace) {
			if err := s.makeNamespace(ctx, t.namespace); err != nil {
				return err
			}
		}
		if err := s.env.PutSecret(ctx, t.namespace, t.name+"-database", "url", t.databaseURL); err != nil {
			return err
		}
	}
	return s.env.Apply(ctx, "", manifests) // each names its namespace
}

// makeNamespace has the Secrets with the brokers' URLs.
func (s *stage) makeNamespace(ctx context.Context, name string) error {
	if _, err := s.env.Kubectl(ctx, "create", "namespace", name); err != nil {
		return err
	}
	s.namespaces = append(s.namespaces, name)
	for secret, gate := range s.gates {
		if err := s.env.PutSecret(ctx, name, secret, "url", gate.url); err != nil {
			return err
		}
	}
	return nil
}

// play runs the applications until ctx ends.
func (s *stage) play(ctx context.Context, start time.Time) error {
	work, ctx := errgroup.WithContext(ctx)
	for _, t := range s.teams {
		t.play(ctx, work, start)
	}
	// RabbitMQ's management API is down for a while.
	work.Go(func() error {
		blind := s.during(0.65, 0.72)
		gate := s.gates["rabbitmq"]
		if !wait(ctx, time.Until(start.Add(blind.from))) {
			return nil
		}
		fmt.Fprintln(os.Stderr, "The operator cannot reach RabbitMQ")
		if err := gate.shut(); err != nil {
			return err
		}
		if !wait(ctx, time.Until(start.Add(blind.until))) {
			return nil
		}
		fmt.Fprintln(os.Stderr, "The operator reaches RabbitMQ again")
		return gate.open(ctx)
	})
	return work.Wait()
}

// span is a part of the play, counted from its start.
type span struct{ from, until time.Duration }

func (s span) covers(start, now time.Time) bool {
	since := now.Sub(start)
	return since >= s.from && since < s.until
}

// during is a part of the whole duration.
func (s *stage) during(from, until float64) span {
	return span{time.Duration(from * float64(s.duration)), time.Duration(until * float64(s.duration))}
}

// wait returns false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// cast is who plays.
func (s *stage) cast() []*team {
	common := brokers.Address{RedeliverTimeout: 2 * time.Minute, ClaimInterval: 10 * time.Second, Heartbeat: 60 * time.Second, RetryDelay: 30 * time.Second, MaxRetries: 3}
	rabbitmq, redis, doctrine := common, common, common
	rabbitmq.Kind, rabbitmq.URL = brokers.RabbitMQ, s.rabbitmq.URL()
	redis.Kind, redis.URL = brokers.RedisStreams, s.redis.URL()
	doctrine.Kind = brokers.Doctrine // its URL is the database's
	hours := func(n float64) time.Duration { return time.Duration(n * float64(time.Hour)) }
	return []*team{
		{
			namespace: "shop", name: "orders", transport: "orders", broker: rabbitmq,
			pace: 2 * time.Second, history: hours(168), work: 300 * time.Millisecond, loseEvery: 60, failEvery: 40,
			outbox: true, relayAway: s.during(0.42, 0.52),
			// Two orders whose proofs expire while their messages, sent once more, still wait.
			failed: []failure{{entered: hours(50), handled: hours(168) - s.duration/3}, {entered: hours(31), handled: hours(168) - s.duration/2}},
		},
		{
			namespace: "shop", name: "billing", transport: "payments", broker: redis,
			pace: 5 * time.Second, history: hours(168), work: 2 * time.Second, loseEvery: 25, failEvery: 12,
			failed: []failure{{entered: hours(111)}, {entered: hours(64)}},
		},
		{
			namespace: "logistics", name: "shipping", transport: "parcels", broker: doctrine,
			pace: 4 * time.Second, history: hours(120), work: 500 * time.Millisecond, loseEvery: 80, failEvery: 50,
			workersAway: s.during(0.2, 0.32),
			failed:      []failure{{entered: hours(48) - s.duration*6/10}, {entered: hours(20)}},
		},
		{
			namespace: "marketing", name: "newsletter", transport: "mails", broker: redis,
			pace: 3 * time.Second, history: hours(24), work: 200 * time.Millisecond, loseEvery: 90, failEvery: 70,
			purgeAfter: hours(24), purgeEvery: s.duration / 7,
		},
	}
}
