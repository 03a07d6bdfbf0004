// Package worker is a consumer in a process of its own, which can be killed at any moment.
package worker

import (
	"time"

	"github.com/messaginginbox/operator/test/consumer"
	"github.com/messaginginbox/operator/test/faults/brokers"
)

// configVariable is the environment variable that makes a program a worker.
const configVariable = "FAULTS_WORKER"

// Config says what a worker consumes and what goes wrong.
type Config struct {
	// Broker of the queues.
	Broker brokers.Address
	// Queue to consume.
	Queue string
	// FailureQueue receives what failed once too often; "" is none.
	FailureQueue string
	// DatabaseURL of the handler.
	DatabaseURL string
	// Transport is the name that the inbox records.
	Transport string
	// Seed of everything random.
	Seed uint64

	// Hold keeps the transaction of a first attempt open for this long after the work.
	Hold time.Duration
	// FailFirst makes the first attempt fail after its work, before the commit.
	FailFirst bool
	// ChargeURL makes the handler charge the order there first; "" does not.
	ChargeURL string
	// ChargeTimeout of that call.
	ChargeTimeout time.Duration
	// IdempotencyKey sends the message's id along with the charge.
	IdempotencyKey bool

	// LoseAcks is the probability that the worker kills itself between commit and acknowledgement.
	LoseAcks float64
	// StepDelay is the longest pause at each step, at random, so that kills fall on every step alike.
	StepDelay time.Duration
	// UntilDrained ends the worker when nothing has been waiting for a while.
	UntilDrained bool
}

// Event is what a worker tells, one JSON object per line: that it is ready, that it reached
// a step, the outcome of a delivery, or why a handler failed.
type Event struct {
	At        time.Time        `json:"at"`
	Ready     bool             `json:"ready,omitempty"`
	Step      consumer.Step    `json:"step,omitempty"`
	Outcome   consumer.Outcome `json:"outcome,omitempty"`
	Failure   string           `json:"failure,omitempty"`
	MessageID string           `json:"messageID,omitempty"`
}
