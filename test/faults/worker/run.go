package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/test/consumer"
	"github.com/messaginginbox/operator/test/faults/external"
)

const (
	pollInterval = 20 * time.Millisecond
	// drainedAfter is how long nothing must be waiting: a broker may take a moment to
	// notice that a killed worker's connection is gone.
	drainedAfter = time.Second
)

// Main makes this process a worker, and does not return, when it was started as one. Call
// it first in main and in TestMain.
func Main() {
	encoded, set := os.LookupEnv(configVariable)
	if !set {
		return
	}
	var config Config
	err := json.Unmarshal([]byte(encoded), &config)
	if err == nil {
		err = run(context.Background(), config)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1) //revive:disable-line:deep-exit -- this is the main function of a worker
	}
	os.Exit(0) //revive:disable-line:deep-exit -- this is the main function of a worker
}

// run works until standard input ends, which also happens when the parent dies.
func run(ctx context.Context, config Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	s := &session{config: config, random: rand.New(rand.NewPCG(config.Seed, 0))} // #nosec G404 -- not a secret
	defer s.close(context.WithoutCancel(ctx))
	if err := s.open(ctx); err != nil {
		return err
	}
	tell(Event{Ready: true})
	return s.consume(ctx)
}

// session is the connections of a worker.
type session struct {
	config  Config
	random  *rand.Rand
	worker  *consumer.Worker
	current string // id of the message that is or was being handled
}

func (s *session) open(ctx context.Context) error {
	target, err := database.Parse(s.config.DatabaseURL)
	if err != nil {
		return err
	}
	s.worker = &consumer.Worker{
		Transport: s.config.Transport, Inbox: consumer.DefaultInbox, Handle: s.config.handle,
		MaxRetries: s.config.Broker.MaxRetries, RetryDelay: s.config.Broker.RetryDelay,
		Trace: s.trace,
		Failed: func(message consumer.Message, err error) {
			tell(Event{Failure: err.Error(), MessageID: message.ID})
		},
	}
	s.worker.Database, err = target.Connect(ctx, database.Limits{ApplicationName: "worker", LockTimeout: time.Minute, StatementTimeout: time.Minute})
	if err != nil {
		return err
	}
	if s.worker.Broker, err = s.config.Broker.Open(ctx, s.config.Queue); err != nil {
		return err
	}
	if s.config.FailureQueue != "" {
		s.worker.Failure, err = s.config.Broker.Open(ctx, s.config.FailureQueue)
	}
	return err
}

// close ends what was opened. What was not confirmed by then is not done.
func (s *session) close(ctx context.Context) {
	if s.worker == nil {
		return
	}
	for _, broker := range []consumer.Broker{s.worker.Broker, s.worker.Failure} {
		if broker != nil {
			_ = broker.Close(ctx)
		}
	}
	if s.worker.Database != nil {
		_ = s.worker.Database.Close(ctx)
	}
}

// trace tells the step, dawdles, and loses acknowledgements as it was told to.
func (s *session) trace(step consumer.Step, delivery consumer.Delivery) {
	s.current = delivery.ID
	tell(Event{Step: step, MessageID: delivery.ID})
	if step == consumer.StepCommitted && s.random.Float64() < s.config.LoseAcks {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	}
	if s.config.StepDelay > 0 {
		time.Sleep(time.Duration(s.random.Int64N(int64(s.config.StepDelay))))
	}
}

// handle ships the order, and does what the configuration wants to go wrong.
func (c Config) handle(ctx context.Context, tx pgx.Tx, message consumer.Message) error {
	if c.ChargeURL != "" {
		key := ""
		if c.IdempotencyKey {
			key = message.ID
		}
		if err := external.Charge(ctx, c.ChargeURL, message.Body, key, c.ChargeTimeout); err != nil {
			return err
		}
	}
	if err := consumer.Ship(ctx, tx, message); err != nil {
		return err
	}
	if message.Retries == 0 {
		time.Sleep(c.Hold)
		if c.FailFirst {
			return errors.New("the first attempt fails after its work")
		}
	}
	return nil
}

// consume finishes the delivery under way when ctx ends.
func (s *session) consume(ctx context.Context) error {
	lastSeen := time.Now()
	for ctx.Err() == nil {
		outcome, err := s.worker.HandleNext(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if outcome != consumer.Idle {
			tell(Event{Outcome: outcome, MessageID: s.current})
			lastSeen = time.Now()
			continue
		}
		if s.config.UntilDrained {
			waiting, err := s.worker.Broker.Waiting(context.WithoutCancel(ctx))
			if err != nil {
				return err
			}
			if waiting > 0 {
				lastSeen = time.Now()
			} else if time.Since(lastSeen) > drainedAfter {
				return nil
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
	return nil
}

// tell writes an event. When nobody listens any more, the end of standard input stops the worker.
func tell(event Event) {
	event.At = time.Now()
	_ = json.NewEncoder(os.Stdout).Encode(event)
}
