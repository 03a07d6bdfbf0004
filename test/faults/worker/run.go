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
	worker, closeAll, err := open(ctx, config)
	if err != nil {
		return err
	}
	defer closeAll()
	tell(Event{Ready: true})
	return consume(ctx, worker, config.UntilDrained)
}

func open(ctx context.Context, config Config) (worker *consumer.Worker, closeAll func(), err error) {
	target, err := database.Parse(config.DatabaseURL)
	if err != nil {
		return nil, nil, err
	}
	connection, err := target.Connect(ctx, database.Limits{ApplicationName: "worker", LockTimeout: time.Minute, StatementTimeout: time.Minute})
	if err != nil {
		return nil, nil, err
	}
	broker, err := config.Broker.Open(ctx, config.Queue)
	if err != nil {
		return nil, nil, errors.Join(err, connection.Close(ctx))
	}
	opened := []consumer.Broker{broker}
	var failure consumer.Broker
	if config.FailureQueue != "" {
		if failure, err = config.Broker.Open(ctx, config.FailureQueue); err != nil {
			return nil, nil, errors.Join(err, broker.Close(ctx), connection.Close(ctx))
		}
		opened = append(opened, failure)
	}
	random := rand.New(rand.NewPCG(config.Seed, 0)) // #nosec G404 -- not a secret
	worker = &consumer.Worker{
		Transport: config.Transport, Broker: broker, Database: connection, Inbox: consumer.DefaultInbox,
		Handle:     config.handle,
		MaxRetries: config.Broker.MaxRetries, RetryDelay: config.Broker.RetryDelay, Failure: failure,
		Trace: func(step consumer.Step, delivery consumer.Delivery) {
			tell(Event{Step: step, MessageID: delivery.ID})
			if step == consumer.StepCommitted && random.Float64() < config.LoseAcks {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {} // until the signal arrives
			}
			if config.StepDelay > 0 {
				time.Sleep(rand.N(config.StepDelay)) // #nosec G404 -- not a secret
			}
		},
		Failed: func(message consumer.Message, err error) {
			tell(Event{Failure: err.Error(), MessageID: message.ID})
		},
	}
	return worker, func() {
		for _, b := range opened {
			_ = b.Close(ctx) // what was not confirmed is not done
		}
		_ = connection.Close(ctx)
	}, nil
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
func consume(ctx context.Context, worker *consumer.Worker, untilDrained bool) error {
	lastSeen := time.Now()
	for ctx.Err() == nil {
		outcome, err := worker.HandleNext(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if outcome != consumer.Idle {
			tell(Event{Outcome: outcome})
			lastSeen = time.Now()
			continue
		}
		if untilDrained {
			waiting, err := worker.Broker.Waiting(context.WithoutCancel(ctx))
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
