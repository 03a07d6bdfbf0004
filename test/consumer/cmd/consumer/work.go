package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/messaginginbox/operator/test/consumer"
)

// pollInterval is the pause of a worker that found no message: Symfony's --sleep, shorter.
const pollInterval = 200 * time.Millisecond

// failed is the event of a handler that returned an error.
const failed consumer.Outcome = "failed"

// event is what a worker tells its supervisor, one JSON object per line.
type event struct {
	// Outcome of a message. Handled is told at the commit.
	Outcome consumer.Outcome `json:"outcome"`
	// MessageID of the message.
	MessageID string `json:"messageID,omitempty"`
	// Error of a handler.
	Error string `json:"error,omitempty"`
}

// work is the worker's own process. It ends when no message is left, when the supervisor
// closes its standard input, and by SIGKILL after --lose-acks commits at most.
func work(ctx context.Context, o options) (result any, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	broker, connection, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = broker.Close(context.WithoutCancel(ctx)) }() // what was not committed is not done
	events := json.NewEncoder(os.Stdout)
	worker := &consumer.Worker{
		Transport: o.transport, Broker: broker, Database: connection, Inbox: o.inbox,
		Handle: consumer.Ship, MaxRetries: 3, RetryDelay: time.Second,
		Trace: func(step consumer.Step, delivery consumer.Delivery) {
			if step != consumer.StepCommitted {
				return
			}
			_ = events.Encode(event{Outcome: consumer.Handled, MessageID: delivery.ID}) // a broken pipe ends us anyway
			if o.loseAcks > 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {} // until the signal arrives
			}
		},
		Failed: func(message consumer.Message, err error) {
			_ = events.Encode(event{Outcome: failed, MessageID: message.ID, Error: err.Error()})
		},
	}
	return nil, consumeQueue(ctx, worker, broker, events)
}

// consumeQueue finishes the message under way when ctx ends.
func consumeQueue(ctx context.Context, worker *consumer.Worker, broker *consumer.Doctrine, events *json.Encoder) error {
	for ctx.Err() == nil {
		outcome, err := worker.HandleNext(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		switch outcome {
		case consumer.Skipped, consumer.Discarded:
			if err := events.Encode(event{Outcome: outcome}); err != nil {
				return err
			}
		case consumer.Idle:
			waiting, err := broker.Waiting(context.WithoutCancel(ctx))
			if err != nil || waiting == 0 {
				return err
			}
			select {
			case <-ctx.Done():
			case <-time.After(pollInterval):
			}
		}
	}
	return errors.New("stopped before the queue was empty")
}
