// Package pruner deletes expired proofs from the inbox table: the records whose
// processed-at time lies before the retention, and never one at or inside it.
//
// It works in short transactions, one slice of the table each, so that it can stop
// after any of them and the next run goes on with what is left. The database's clock
// decides what is expired, never the client's.
package pruner

import (
	"context"
	"fmt"
	"time"

	"github.com/messaginginbox/operator/internal/dbschema"
)

// Options says what a run may delete and how much it may take from the others.
type Options struct {
	// Contract names the table and says in which time zone its timestamps are written.
	Contract dbschema.Contract
	// Retention is how long a proof is kept, counted from its processed-at time.
	Retention time.Duration
	// Required is the redelivery window with its margin. A run refuses to start when
	// Retention is shorter.
	Required time.Duration
	// BatchSize is the largest number of records that one transaction deletes, at least
	// 1. A run uses smaller ones while they take long. Without an index on the timestamp
	// it is about that many, since whole pages of the table are taken.
	BatchSize int
	// MaxDuration ends the run. What is left is taken up by the next one.
	MaxDuration time.Duration
	// Pace is the pause between two transactions.
	Pace time.Duration
	// MaxReplicaLag makes the run wait while a replica is further behind than this. 0: do not look.
	MaxReplicaLag time.Duration
	// DryRun counts the expired records and deletes nothing.
	DryRun bool
	// Waiting, when not nil, returns the ids of the messages that still wait in a failure
	// transport or an outbox. It is asked once, before the first record is deleted. The
	// proofs of these messages are kept, however old they are.
	Waiting func(ctx context.Context) (Waiting, error)
	// LockTimeout is how long one statement waits for a lock. 0: 500 ms.
	LockTimeout time.Duration
	// StatementTimeout is how long one statement may take. 0: 10 s.
	StatementTimeout time.Duration
}

// Waiting is which messages still wait in queues.
type Waiting struct {
	// IDs of the messages.
	IDs []string
	// Refusal, when not empty, says why the ids are not complete. The run then deletes nothing.
	Refusal string
	// Note is added to the report's message.
	Note string
}

const (
	defaultLockTimeout      = 500 * time.Millisecond
	defaultStatementTimeout = 10 * time.Second
)

func (o Options) withDefaults() Options {
	if o.LockTimeout == 0 {
		o.LockTimeout = defaultLockTimeout
	}
	if o.StatementTimeout == 0 {
		o.StatementTimeout = defaultStatementTimeout
	}
	return o
}

// check refuses what must not run whatever the database says.
func (o Options) check() *refusal {
	switch {
	case o.Retention <= 0:
		return refuse(ReasonRetentionZero, "the retention is %s, so every proof would be deleted; declare how long a message can come back", o.Retention)
	case o.Required < 0:
		return refuse(ReasonInvalidOptions, "the required window is %s; a window cannot be negative", o.Required)
	case o.Retention < o.Required:
		return refuse(ReasonTooShort, "the retention of %s is shorter than the required window of %s: a message could come back after its proof is gone; raise the retention to %s or more",
			o.Retention, o.Required, o.Required)
	case o.BatchSize < 1:
		return refuse(ReasonInvalidOptions, "the batch size is %d; it must be at least 1", o.BatchSize)
	case o.MaxDuration <= 0:
		return refuse(ReasonInvalidOptions, "the maximum duration is %s; it must be positive", o.MaxDuration)
	case o.Pace < 0 || o.MaxReplicaLag < 0 || o.LockTimeout < 0 || o.StatementTimeout < 0:
		return refuse(ReasonInvalidOptions, "pace, replica lag and time-outs must not be negative")
	}
	return nil
}

// refusal is why a run must not start.
type refusal struct {
	reason, message string
}

// Error returns the message.
func (r *refusal) Error() string { return r.message }

func refuse(reason, format string, args ...any) *refusal {
	return &refusal{reason: reason, message: fmt.Sprintf(format, args...)}
}
