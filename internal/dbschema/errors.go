package dbschema

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/messaginginbox/operator/internal/database"
)

// ErrPooler says that Apply was given a connection through a pooler.
var ErrPooler = errors.New("the connection goes through a pooler (such as PgBouncer), and schema changes need a session of their own: " +
	"point spec.database.migrationURLSecretRef at PostgreSQL itself")

// PlanChangedError says that the table is no longer as it was when the plan was made.
type PlanChangedError struct {
	// Table, quoted and with its schema.
	Table string
	// Given is the digest that Apply was asked for.
	Given string
	// Current is the digest of the plan that the table calls for now.
	Current string
	// Cause is PostgreSQL's error when the change was seen only while applying, or nil.
	Cause error
}

// Error says what to do about it.
func (e *PlanChangedError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("table %s changed while plan %s was applied; inspect it again: %v", e.Table, e.Given, e.Cause)
	}
	return fmt.Sprintf("table %s changed since plan %s was made, and now calls for plan %s; inspect it again and approve that one", e.Table, e.Given, e.Current)
}

// Unwrap returns PostgreSQL's error.
func (e *PlanChangedError) Unwrap() error { return e.Cause }

// LockedError says that another session applies a plan to the same table.
type LockedError struct {
	// Table, quoted and with its schema.
	Table string
	// Holder is the session that has the lock, for example "pid 17 (role app, application
	// inbox)". Empty when it ended meanwhile.
	Holder string
	// Waited is how long Apply tried.
	Waited time.Duration
}

// Error names the holder.
func (e *LockedError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another session, which ended just now,"
	}
	return fmt.Sprintf("%s is changing the schema of table %s; gave up after %s, and it is tried again later", holder, e.Table, e.Waited)
}

// PrivilegeError says which privileges the role lacks to apply a plan.
type PrivilegeError struct {
	// Table, quoted and with its schema.
	Table string
	// Role of the connection.
	Role string
	// Missing privileges in words, for example `CREATE on schema "public"`.
	Missing []string
	// SQL that an administrator runs to give them.
	SQL string
}

// Error names the privileges and the statements that give them.
func (e *PrivilegeError) Error() string {
	return fmt.Sprintf("role %s cannot change the schema of table %s: it lacks %s. Run: %s",
		quote(e.Role), e.Table, strings.Join(e.Missing, " and "), e.SQL)
}

// reasonPlanPending is the reason of a plan that must be made again before it is applied.
const reasonPlanPending = "PlanPending"

// Classify says what an error of this package means. It knows the package's own types
// and leaves the others to database.Classify.
func Classify(err error) database.Failure {
	var (
		privilege *PrivilegeError
		locked    *LockedError
		changed   *PlanChangedError
	)
	failure := func(class database.Class, reason string) database.Failure {
		return database.Failure{Class: class, Reason: reason, Message: err.Error()}
	}
	switch {
	case errors.As(err, &privilege):
		return failure(database.WaitingOnUser, database.ReasonPermissionDenied)
	case errors.As(err, &locked), hasCode(err, lockNotAvailable):
		return failure(database.Transient, database.ReasonLockTimeout)
	case errors.As(err, &changed):
		return failure(database.Transient, reasonPlanPending)
	case errors.Is(err, ErrPooler):
		return failure(database.WaitingOnUser, database.ReasonInvalidURL)
	case errors.Is(err, ErrInvalidContract):
		return failure(database.Terminal, database.ReasonUnexpectedError)
	case hasCode(err, uniqueViolation):
		return failure(database.WaitingOnUser, ReasonDuplicateRecords)
	default:
		return database.Classify(err)
	}
}
