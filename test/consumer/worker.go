package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/dbschema"
)

// Outcome is what became of one delivery.
type Outcome string

// The outcomes.
const (
	// Idle: no message was ready.
	Idle Outcome = "idle"
	// Handled: the work is committed and the message acknowledged.
	Handled Outcome = "handled"
	// Skipped: the inbox had the proof, so the message was only acknowledged.
	Skipped Outcome = "skipped"
	// Retried: the handler failed, and the message was sent again.
	Retried Outcome = "retried"
	// Discarded: the handler failed once too often, and there is no failure transport.
	Discarded Outcome = "discarded"
	// SentToFailure: the handler failed once too often, and the failure transport has the message.
	SentToFailure Outcome = "sent to failure transport"
)

// Step is a moment in the handling of one delivery, between two of which a crash can fall.
type Step string

// The steps, in their order.
const (
	StepReceived     Step = "received"     // the broker handed the message out
	StepRecorded     Step = "recorded"     // its proof is written, or was found, in an open transaction
	StepWorked       Step = "worked"       // the handler is done, its transaction still open
	StepCommitted    Step = "committed"    // work and proof are committed
	StepAcknowledged Step = "acknowledged" // the broker was told; only after a commit
)

// Worker handles the messages of one transport, one after the other.
type Worker struct {
	// Transport is the name that the inbox records.
	Transport string
	// Broker hands out the messages.
	Broker Broker
	// Database is the connection of the handler. The inbox is written through it too.
	Database *pgx.Conn
	// Inbox is the table of the proofs.
	Inbox dbschema.Contract
	// Handle does the work of a message in the transaction, which is committed after it,
	// or rolled back when it returns an error.
	Handle func(ctx context.Context, tx pgx.Tx, message Message) error
	// MaxRetries is how often a failed message is sent again.
	MaxRetries int
	// RetryDelay is the delay of the first retry; each further one doubles it.
	RetryDelay time.Duration
	// Failure, when not nil, is the failure transport: it receives a message whose retries are used up.
	Failure Broker
	// Trace, when not nil, is called at each step. A crash between StepCommitted and
	// StepAcknowledged loses the acknowledgement.
	Trace func(step Step, delivery Delivery)
	// Failed, when not nil, is told why a handler failed.
	Failed func(message Message, err error)
}

// HandleNext takes one delivery through the inbox: record and handle in one transaction,
// then acknowledge. An error leaves the message unacknowledged.
func (w *Worker) HandleNext(ctx context.Context) (Outcome, error) {
	delivery, ready, err := w.Broker.Receive(ctx)
	if err != nil {
		return Idle, err
	}
	if !ready {
		return Idle, nil
	}
	w.trace(StepReceived, delivery)
	if delivery.Redelivered {
		// As Symfony does with what RabbitMQ redelivers: a message that crashes its worker
		// must not do so for ever, so a redelivery uses up a retry.
		return w.retry(ctx, delivery)
	}
	first, err := w.process(ctx, delivery)
	var failed *handlerError
	switch {
	case errors.As(err, &failed):
		if w.Failed != nil {
			w.Failed(delivery.Message, failed.cause)
		}
		return w.retry(ctx, delivery)
	case err != nil:
		return Idle, err
	case !first:
		return Skipped, w.Broker.Acknowledge(ctx, delivery)
	}
	w.trace(StepCommitted, delivery)
	if err := w.Broker.Acknowledge(ctx, delivery); err != nil {
		return Idle, err
	}
	w.trace(StepAcknowledged, delivery)
	return Handled, nil
}

// process says whether this was the first time that the message was handled.
func (w *Worker) process(ctx context.Context, delivery Delivery) (bool, error) {
	first := false
	err := pgx.BeginFunc(ctx, w.Database, func(tx pgx.Tx) error {
		var err error
		if first, err = record(ctx, tx, w.Inbox, w.Transport, delivery.ID); err != nil {
			return err
		}
		w.trace(StepRecorded, delivery)
		if !first {
			return nil
		}
		if err = w.Handle(ctx, tx, delivery.Message); err != nil {
			return &handlerError{messageID: delivery.ID, cause: err}
		}
		w.trace(StepWorked, delivery)
		return nil
	})
	return first, err
}

func (w *Worker) trace(step Step, delivery Delivery) {
	if w.Trace != nil {
		w.Trace(step, delivery)
	}
}

// retry sends the message again before it drops the original, as Symfony does: a crash
// between the two leaves two messages with one id, never none.
func (w *Worker) retry(ctx context.Context, delivery Delivery) (Outcome, error) {
	if delivery.Retries >= w.MaxRetries {
		return w.giveUp(ctx, delivery)
	}
	again := delivery.Message
	again.Retries++
	if err := w.Broker.Publish(ctx, again, w.RetryDelay<<delivery.Retries); err != nil {
		return Idle, err
	}
	return Retried, w.Broker.Reject(ctx, delivery)
}

// giveUp sends the message to the failure transport, with its retries counted anew.
func (w *Worker) giveUp(ctx context.Context, delivery Delivery) (Outcome, error) {
	if w.Failure == nil {
		return Discarded, w.Broker.Reject(ctx, delivery)
	}
	fresh := delivery.Message
	fresh.Retries = 0
	if err := w.Failure.Publish(ctx, fresh, 0); err != nil {
		return Idle, err
	}
	return SentToFailure, w.Broker.Reject(ctx, delivery)
}

// handlerError is a failure of the handler, which the transaction was rolled back for.
type handlerError struct {
	messageID string
	cause     error
}

// Error returns the handler's own message with the id.
func (e *handlerError) Error() string {
	return fmt.Sprintf("handle message %s: %v", e.messageID, e.cause)
}

// Unwrap returns the handler's error.
func (e *handlerError) Unwrap() error { return e.cause }
