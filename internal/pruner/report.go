package pruner

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/messaginginbox/operator/internal/database"
)

// Results of a run. They are the values of PruningRun.Result in the API.
const (
	ResultDone      = "Done"      // nothing expired is left
	ResultTimeLimit = "TimeLimit" // expired records are left for the next run
	ResultRefused   = "Refused"   // the run must not start, or must not go on
	ResultFailed    = "Failed"    // an error ended the run
)

// Reasons of a result. A refused or failed run can also carry one of the reasons of
// the packages database and dbschema.
const (
	ReasonCompleted      = "Completed"
	ReasonTimeLimit      = "TimeLimit"                // MaxDuration has passed
	ReasonInterrupted    = "Interrupted"              // the caller asked the run to stop
	ReasonRecordsLocked  = "RecordsLocked"            // other sessions held locks on expired records
	ReasonLockTimeout    = database.ReasonLockTimeout // another session held a lock on the table
	ReasonReplicaLag     = "ReplicaLag"               // a replica was behind until the time limit
	ReasonAlreadyRunning = "AlreadyRunning"           // another run is at this table
	ReasonClockMovedBack = "ClockMovedBack"           // the database's clock shows an earlier time than before
	ReasonClockSkew      = "ClockSkew"                // the database's clock is far ahead of the pod's
	ReasonTooShort       = "TooShort"                 // the retention does not cover the required window
	ReasonRetentionZero  = "RetentionZero"            // the retention is zero or negative
	ReasonMessagesWait   = "TooManyMessagesWait"      // more messages wait in queues than can be compared with the proofs
	ReasonQueuesUnread   = "QueuesUnread"             // which messages wait in queues could not be read
	ReasonInvalidOptions = "InvalidOptions"           // another option is out of its range
)

// maxReportBytes is the kubelet's limit of a termination message.
const maxReportBytes = 4096

// Report is what a run did. Its JSON form is the termination message of a pruning Job.
type Report struct {
	// Result is Done, TimeLimit, Refused or Failed.
	Result string `json:"result"`
	// Reason is one word for the result.
	Reason string `json:"reason"`
	// Message says the same to a person.
	Message string `json:"message"`
	// DryRun runs delete nothing.
	DryRun bool `json:"dryRun"`
	// RowsDeleted by the run; under DryRun, the records that it would have deleted. After
	// a lost connection one more slice may have been deleted.
	RowsDeleted int64 `json:"rowsDeleted"`
	// Cutoff in UTC: records older than this were expired. Unset when the run did not start.
	Cutoff *time.Time `json:"cutoff,omitempty"`
	// OldestRemaining is the oldest record after the run. Unset when the table is empty,
	// and without an index that could tell.
	OldestRemaining *time.Time `json:"oldestRemaining,omitempty"`
	// Held is the number of expired records that were kept because their messages still
	// wait in a queue. Unset when the run has no queue to look into, and when it ended
	// before all of them were compared.
	Held *int64 `json:"held,omitempty"`
	// HeldSince is the processed-at time of the oldest of them.
	HeldSince *time.Time `json:"heldSince,omitempty"`
	// DurationSeconds of the run.
	DurationSeconds float64 `json:"durationSeconds"`
	// LongestTransactionSeconds is the longest time that a transaction of the run held locks.
	LongestTransactionSeconds float64 `json:"longestTransactionSeconds"`
	// YieldedSeconds is the time spent waiting: pace, replica lag and locks of others.
	YieldedSeconds float64 `json:"yieldedSeconds"`
	// Slices is the number of transactions that succeeded.
	Slices int `json:"slices"`
	// Retries is the number of slices that had to be tried again.
	Retries int `json:"retries"`
}

// Progress of a run under way.
type Progress struct {
	// RowsDeleted so far.
	RowsDeleted int64
	// Fraction of the work that is done, from 0 to 1: by time with an index on the
	// timestamp, by pages of the table without.
	Fraction float64
	// Waiting says what the run waits for; empty while it works.
	Waiting string
}

// JSON is the report as one object on one line, under 4096 bytes: a longer message is cut.
func (r Report) JSON() ([]byte, error) {
	for {
		encoded, err := json.Marshal(r)
		if err != nil || len(encoded) < maxReportBytes {
			return encoded, err
		}
		// A character can take six bytes as JSON, so cutting as many as are too many is never too much at once.
		excess := max((len(encoded)-maxReportBytes)/6, 1)
		r.Message = cutText(r.Message, len(r.Message)-excess-len(ellipsis))
	}
}

const ellipsis = "..."

// cutText cuts text to at most length bytes, between two characters, and marks the cut.
func cutText(text string, length int) string {
	text = strings.TrimSuffix(text, ellipsis)
	length = min(max(length, 0), len(text))
	for length > 0 && length < len(text) && !utf8.RuneStart(text[length]) {
		length--
	}
	return text[:length] + ellipsis
}

// note adds a sentence to the message.
func (r *Report) note(format string, args ...any) {
	if r.Message != "" {
		r.Message += ". "
	}
	r.Message += fmt.Sprintf(format, args...)
}
