// Package consumer is a small message consumer that keeps the inbox contract as Symfony
// Messenger 8.2 does: in the handler's own transaction it records (transport, message id)
// in the inbox table, so that a redelivered message is acknowledged without being handled
// again. The demo and the fault runs use it in place of an application.
package consumer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Message is what a transport carries.
type Message struct {
	// ID survives every retry and redelivery, as that of Symfony's MessageIdStamp does.
	ID string
	// Retries is how often the message was sent again after its handler failed.
	Retries int
	// Body of the message.
	Body string
}

// Delivery is a message that the broker handed out and that is not yet acknowledged.
type Delivery struct {
	Message
	// Tag names the delivery to its broker.
	Tag string
	// Redelivered says that the broker knows to have handed it out before. Only RabbitMQ does.
	Redelivered bool
}

// Broker is a transport that delivers at least once. Its methods are not safe for
// concurrent use: each worker has a broker of its own, as each PHP process has.
type Broker interface {
	// Publish sends a message that is handed out after the delay at the earliest.
	Publish(ctx context.Context, message Message, delay time.Duration) error
	// Receive returns the next message, or false when none is ready.
	Receive(ctx context.Context) (Delivery, bool, error)
	// Acknowledge tells the broker that the message needs no other delivery.
	Acknowledge(ctx context.Context, delivery Delivery) error
	// Reject tells the broker to drop a message that its worker has sent again.
	Reject(ctx context.Context, delivery Delivery) error
	// Waiting is the number of messages that are not yet acknowledged: ready, delayed, and
	// as far as the broker tells, in flight.
	Waiting(ctx context.Context) (int64, error)
	// Close ends the connection to the broker.
	Close(ctx context.Context) error
}

// NewMessageID is a random id in the form of Symfony's default: 32 hexadecimal digits.
func NewMessageID() string {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails: it ends the program instead
	return hex.EncodeToString(random)
}
