package drill

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/messaginginbox/operator/internal/database"
)

// Results of a drill. They are the values of DrillRun.Result in the API.
const (
	ResultProven   = "Proven"   // every check passed
	ResultBroken   = "Broken"   // at least one check failed
	ResultNotTried = "NotTried" // a cause beside the contract kept the drill from its end
	ResultFailed   = "Failed"   // an error that nobody expected
)

// Reasons of checks and of results. A drill that was not tried can also carry one of the
// reasons of the packages database, dbschema and samedatabase.
const (
	ReasonProven                 = "Proven"
	ReasonAlreadyRunning         = "AlreadyRunning"         // another drill is at this table
	ReasonInterrupted            = "Interrupted"            // the caller asked the drill to stop, or its time was up
	ReasonNoAnswer               = "NoAnswer"               // a connection was open and silent
	ReasonRowSecurity            = "RowSecurity"            // policies may hide records from the drill's role
	ReasonColumnsWithoutDefault  = "ColumnsWithoutDefault"  // the table wants values that a drill does not have
	ReasonInsertRefused          = "InsertRefused"          // a constraint or a trigger refuses the drill's record
	ReasonKeyDeferrable          = "UniqueKeyDeferrable"    // a duplicate may be refused only at the commit
	ReasonProofsDeleted          = "ForeignKeyDeletes"      // a foreign key's ON DELETE removes or changes proofs
	ReasonInsertSwallowed        = "InsertSwallowed"        // a rule or trigger drops or changes the record
	ReasonDeleteSwallowed        = "DeleteSwallowed"        // a rule or trigger keeps the record
	ReasonDuplicateAccepted      = "DuplicateAccepted"      // the second record of one message was stored
	ReasonProofNotStored         = "ProofNotStored"         // a committed record is not there
	ReasonNotRolledBack          = "NotRolledBack"          // a record of a transaction that was rolled back is there
	ReasonSerializationFailure   = "SerializationFailure"   // SQLSTATE 40001 in the place of a duplicate
	ReasonAsynchronousCommit     = "AsynchronousCommit"     // synchronous_commit is off
	ReasonIsolation              = "NotReadCommitted"       // default_transaction_isolation is another level
	ReasonSessionReplicationRole = "SessionReplicationRole" // triggers and foreign keys are off
	ReasonNoWait                 = "NoLockWait"             // the second session did not wait for the first
)

// maxReportBytes is the kubelet's limit of a termination message.
const maxReportBytes = 4096

// Report is what a drill found out. Its JSON form is the termination message of a drill Job.
type Report struct {
	// Result is Proven, Broken, NotTried or Failed.
	Result string `json:"result"`
	// Reason is one word for the result.
	Reason string `json:"reason"`
	// Message says the same to a person.
	Message string `json:"message"`
	// Checks in the order in which they were made.
	Checks []Check `json:"checks,omitempty"`
	// ChecksOmitted is the number of checks that the JSON form has no room for. None of
	// them failed unless all that are left did.
	ChecksOmitted int `json:"checksOmitted,omitempty"`
	// LockWaitSeconds is the longest time that a second session waited for the first. The
	// drill makes the first hold on for 50 ms; the rest is the database's own.
	LockWaitSeconds float64 `json:"lockWaitSeconds,omitempty"`
	// LeftoversRemoved is the number of records that an earlier, killed drill had left.
	LeftoversRemoved int64 `json:"leftoversRemoved,omitempty"`
	// DurationSeconds of the drill.
	DurationSeconds float64 `json:"durationSeconds"`
}

// Check is one claim of the contract on one connection.
type Check struct {
	// Name of the check.
	Name string `json:"name"`
	// Connection is "inbox" or "handler N", counted from 0.
	Connection string `json:"connection"`
	// Passed says whether the claim held.
	Passed bool `json:"passed"`
	// Expected is the claim.
	Expected string `json:"expected,omitempty"`
	// Happened is what was seen.
	Happened string `json:"happened,omitempty"`
	// Seconds that the check took.
	Seconds float64 `json:"seconds"`
	// Reason of a failed check: one of the Reason constants.
	Reason string `json:"reason,omitempty"`
}

// JSON is the report as one object on one line, under 4096 bytes. What does not fit is
// left out, the least important first: the texts of passed checks, long texts of failed
// ones, passed checks, the last of the failed ones.
func (r Report) JSON() ([]byte, error) {
	checks := append([]Check(nil), r.Checks...)
	r.Checks = checks
	reductions := []func(*Report) bool{dropPassedTexts, shortenTexts, dropPassedCheck, dropLastCheck}
	for {
		encoded, err := json.Marshal(r)
		if err != nil || len(encoded) < maxReportBytes {
			return encoded, err
		}
		for len(reductions) > 0 && !reductions[0](&r) {
			reductions = reductions[1:]
		}
		if len(reductions) == 0 {
			return nil, fmt.Errorf("the report of the drill does not fit in %d bytes", maxReportBytes)
		}
	}
}

// The reductions say whether they made the report shorter.

func dropPassedTexts(r *Report) (shorter bool) {
	for i := range r.Checks {
		check := &r.Checks[i]
		if check.Passed && check.Expected+check.Happened != "" {
			check.Expected, check.Happened, shorter = "", "", true
		}
	}
	return shorter
}

// shortTextBytes is enough for the beginning of any of our sentences.
const shortTextBytes = 240

func shortenTexts(r *Report) (shorter bool) {
	texts := []*string{&r.Message}
	for i := range r.Checks {
		texts = append(texts, &r.Checks[i].Expected, &r.Checks[i].Happened)
	}
	for _, text := range texts {
		if len(*text) > shortTextBytes {
			*text, shorter = cut(*text), true
		}
	}
	return shorter
}

func cut(text string) string {
	const mark = "..."
	end := shortTextBytes - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

func dropPassedCheck(r *Report) bool {
	for i := len(r.Checks) - 1; i >= 0; i-- {
		if r.Checks[i].Passed {
			r.Checks = append(r.Checks[:i], r.Checks[i+1:]...)
			r.ChecksOmitted++
			return true
		}
	}
	return false
}

func dropLastCheck(r *Report) bool {
	if len(r.Checks) == 0 {
		return false
	}
	r.Checks = r.Checks[:len(r.Checks)-1]
	r.ChecksOmitted++
	return true
}

// round to microseconds: more digits say nothing, and take room in the termination message.
func (r *Report) round() {
	numbers := []*float64{&r.LockWaitSeconds, &r.DurationSeconds}
	for i := range r.Checks {
		numbers = append(numbers, &r.Checks[i].Seconds)
	}
	for _, number := range numbers {
		*number = math.Round(*number*1e6) / 1e6
	}
}

func (r *Report) note(format string, arguments ...any) {
	if r.Message != "" {
		r.Message += " "
	}
	r.Message += fmt.Sprintf(format, arguments...)
}

// conclude sums up. A failed check weighs more than an error after it: it was seen.
func (r *Report) conclude(err error) {
	var failed []Check
	for _, check := range r.Checks {
		if !check.Passed {
			failed = append(failed, check)
		}
	}
	var first strings.Builder
	switch {
	case len(failed) > 0:
		r.Result, r.Reason = ResultBroken, failed[0].Reason
		_, _ = fmt.Fprintf(&first, "%d of %d checks failed; %s on the %s connection: expected %s; %s.", // a Builder never fails to write
			len(failed), len(r.Checks), failed[0].Name, failed[0].Connection, failed[0].Expected, strings.TrimSuffix(failed[0].Happened, "."))
		if err != nil {
			_, _ = fmt.Fprintf(&first, " The drill did not get to its end: %s.", describe(err))
		}
	case err != nil:
		r.Result, r.Reason = ResultNotTried, reasonOf(err)
		if r.Reason == database.ReasonUnexpectedError {
			r.Result = ResultFailed
		}
		_, _ = fmt.Fprintf(&first, "The contract could not be tried: %s.", describe(err))
	default:
		r.Result, r.Reason = ResultProven, ReasonProven
		_, _ = fmt.Fprintf(&first, "All %d checks passed.", len(r.Checks))
	}
	if r.LeftoversRemoved > 0 {
		_, _ = fmt.Fprintf(&first, " %d records that an earlier drill had left were removed.", r.LeftoversRemoved)
	}
	if r.Message != "" {
		_, _ = fmt.Fprintf(&first, " %s", r.Message)
	}
	r.Message = first.String()
}

// obstacle is why the contract could not be tried.
type obstacle struct {
	reason, message string
	cause           error
	located         bool // the message names the connection
}

// Error returns the message.
func (o *obstacle) Error() string { return o.message }

// Unwrap returns what the obstacle was seen by, or nil.
func (o *obstacle) Unwrap() error { return o.cause }

func hinder(reason, format string, arguments ...any) *obstacle {
	return &obstacle{reason: reason, message: fmt.Sprintf(format, arguments...)}
}

func reasonOf(err error) string {
	var known *obstacle
	if errors.As(err, &known) {
		return known.reason
	}
	return database.Classify(err).Reason
}

func describe(err error) string {
	var known *obstacle
	if errors.As(err, &known) {
		return strings.TrimSuffix(known.message, ".")
	}
	return strings.TrimSuffix(database.Classify(err).Message, ".")
}
