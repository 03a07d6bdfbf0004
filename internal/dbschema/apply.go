package dbschema

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Defaults of ApplyOptions.
const (
	defaultAdvisoryLockTimeout = 10 * time.Second
	defaultLockTimeout         = 2 * time.Second
	defaultStatementTimeout    = 30 * time.Second
	defaultBuildTimeout        = 30 * time.Minute
)

// SQLSTATEs that Apply acts on.
const (
	uniqueViolation  = "23505"
	duplicateTable   = "42P07" // also of an index
	duplicateObject  = "42710" // a type of the table's name
	lockNotAvailable = "55P03" // after lock_timeout
)

// ApplyOptions bound what Apply may take. Zero values mean the defaults.
type ApplyOptions struct {
	// AdvisoryLockTimeout is how long to wait for another Apply on the same table.
	// Default: 10 s.
	AdvisoryLockTimeout time.Duration
	// LockTimeout is how long to wait for a lock on the table, in which time writers
	// may queue up behind. Default: 2 s.
	LockTimeout time.Duration
	// StatementTimeout bounds each statement but concurrent ones. Default: 30 s.
	StatementTimeout time.Duration
	// BuildTimeout bounds a concurrent build, with its wait for the transactions that
	// were open before it. Nobody queues behind that. Default: 30 min.
	BuildTimeout time.Duration
	// Progress, when set, is called about once a second during a concurrent build, from
	// another goroutine. It costs one more connection.
	Progress func(BuildProgress)
}

func (o ApplyOptions) withDefaults() ApplyOptions {
	for _, option := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&o.AdvisoryLockTimeout, defaultAdvisoryLockTimeout},
		{&o.LockTimeout, defaultLockTimeout},
		{&o.StatementTimeout, defaultStatementTimeout},
		{&o.BuildTimeout, defaultBuildTimeout},
	} {
		if *option.value <= 0 {
			*option.value = option.fallback
		}
	}
	return o
}

// Apply brings the table to the contract with the plan of the given digest, and returns
// the state afterwards, to be compared again. It is safe to be killed at any point and
// to be run by several at once: a session advisory lock admits one at a time, the plan is made
// afresh under it, and an empty one means that somebody else was first, which is no error.
//
// The connection must be a session of its own; afterwards its lock_timeout and
// statement_timeout are back at what it connected with. A statement that runs when
// the context ends is cancelled.
//
// Errors, for Classify: ErrPooler, *LockedError when another Apply holds the lock for too long, *PlanChangedError
// when the table calls for another plan, *PrivilegeError when a privilege is missing, else
// PostgreSQL's, wrapped.
func Apply(ctx context.Context, conn *pgx.Conn, c Contract, digest string, options ApplyOptions) (Observed, error) {
	if err := c.Validate(); err != nil {
		return Observed{}, err
	}
	options = options.withDefaults()
	if err := refusePooler(ctx, conn); err != nil {
		return Observed{}, err
	}
	defer resetTimeouts(ctx, conn)
	if err := setTimeouts(ctx, conn, options.LockTimeout, options.StatementTimeout); err != nil {
		return Observed{}, err
	}
	release, err := acquireLock(ctx, conn, c, options.AdvisoryLockTimeout)
	if err != nil {
		return Observed{}, err
	}
	defer release()

	before, err := Inspect(ctx, conn, c)
	if err != nil {
		return Observed{}, err
	}
	plan := Compare(c, before).Plan
	if plan.Empty() {
		return before, nil
	}
	if current := plan.Digest(); current != digest {
		return before, &PlanChangedError{Table: c.qualifiedTable(), Given: digest, Current: current}
	}
	if err := requirePrivileges(ctx, conn, c); err != nil {
		return before, err
	}
	if err := applyPlan(ctx, conn, c, plan, options); err != nil {
		if hasCode(err, duplicateTable, duplicateObject) || (hasCode(err, uniqueViolation) && !before.Exists) {
			// Somebody who does not know the advisory lock made the same thing meanwhile.
			err = &PlanChangedError{Table: c.qualifiedTable(), Given: digest, Cause: err}
		}
		return before, err
	}
	return Inspect(ctx, conn, c)
}

// applyPlan runs the plan's ordinary steps in one transaction, and each concurrent one
// by itself. A plan has either the one or the other.
func applyPlan(ctx context.Context, conn *pgx.Conn, c Contract, plan Plan, options ApplyOptions) error {
	var together []Step
	for _, step := range plan.Steps {
		if !step.Concurrent {
			together = append(together, step)
		}
	}
	if len(together) > 0 {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			for _, step := range together {
				if _, err := tx.Exec(ctx, step.SQL); err != nil {
					return stepError(c, step, err)
				}
			}
			return nil
		})
	}
	for _, step := range plan.Steps {
		if err := applyConcurrently(ctx, conn, c, step, options); err != nil {
			return stepError(c, step, err)
		}
	}
	return nil
}

func stepError(c Contract, step Step, err error) error {
	return fmt.Errorf("apply step %s to table %s: %w", step.Kind, c.qualifiedTable(), err)
}

// applyConcurrently runs one step that PostgreSQL refuses in a transaction.
func applyConcurrently(ctx context.Context, conn *pgx.Conn, c Contract, step Step, options ApplyOptions) error {
	skip, err := probe(ctx, conn, c, step)
	if hasCode(err, lockNotAvailable) {
		return lockTimeoutError(ctx, conn, c, options, err)
	}
	if err != nil || skip {
		return err
	}
	// lock_timeout would also bound the wait for older transactions, and end every build
	// on a database with long ones. The lock itself was free a moment ago.
	if err = setTimeouts(ctx, conn, options.BuildTimeout, options.BuildTimeout); err != nil {
		return err
	}
	stop := reportProgress(ctx, conn, c, step, options.Progress)
	_, err = conn.Exec(ctx, step.SQL)
	stop()
	if step.Kind == CreateUniqueIndex && hasCode(err, uniqueViolation) {
		return duplicateMeanwhile(ctx, conn, c, step, err)
	}
	if err != nil {
		return err
	}
	return setTimeouts(ctx, conn, options.LockTimeout, options.StatementTimeout)
}

// probe finds out within lock_timeout whether the step would get its lock on the table,
// before it leaves anything half made. Under the lock it looks once more whether the
// index to be dropped is still invalid: its build may have ended this very moment.
func probe(ctx context.Context, conn *pgx.Conn, c Contract, step Step) (skip bool, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, lockErr := tx.Exec(ctx, fmt.Sprintf("LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE", c.qualifiedTable()))
		if lockErr != nil {
			return lockErr
		}
		if step.Kind != DropInvalidIndex {
			return nil
		}
		return tx.QueryRow(ctx, "SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)",
			quote(c.Schema)+"."+quote(step.index)).Scan(&skip)
	})
	return skip, err
}

// lockTimeoutError adds who was in the way, when that can still be seen.
func lockTimeoutError(ctx context.Context, conn *pgx.Conn, c Contract, options ApplyOptions, cause error) error {
	holder, err := tableLockHolder(ctx, conn, c)
	if err != nil || holder == "" {
		holder = "another session"
	}
	return fmt.Errorf("%s kept a lock on the table for more than %s, and nothing was changed: end that session's transaction or wait: %w", holder, options.LockTimeout, cause)
}

// duplicateMeanwhile removes the unique index whose build met a duplicate.
func duplicateMeanwhile(ctx context.Context, conn *pgx.Conn, c Contract, step Step, cause error) error {
	_, err := conn.Exec(ctx, fmt.Sprintf("DROP INDEX CONCURRENTLY IF EXISTS %s.%s", quote(c.Schema), quote(step.index)))
	if err != nil {
		return fmt.Errorf("a message was recorded twice while the unique index was built (%w), and its invalid remains could not be dropped: %w", cause, err)
	}
	return fmt.Errorf("a message was recorded twice while the unique index was built; the index is dropped again: %w", cause)
}

// refusePooler notices a pooler by the process id that it made up at connection. In transaction
// mode the advisory lock and the timeouts would stay behind on a server connection
// that the application uses next.
func refusePooler(ctx context.Context, conn *pgx.Conn) error {
	var pid uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return fmt.Errorf("look for a pooler before the server: %w", err)
	}
	if pid != conn.PgConn().PID() {
		return ErrPooler
	}
	return nil
}

func setTimeouts(ctx context.Context, conn *pgx.Conn, lock, statement time.Duration) error {
	_, err := conn.Exec(ctx, "SELECT set_config('lock_timeout', $1, false), set_config('statement_timeout', $2, false)",
		milliseconds(lock), milliseconds(statement))
	if err != nil {
		return fmt.Errorf("set lock_timeout and statement_timeout: %w", err)
	}
	return nil
}

// cleanupTimeout bounds what is done on a session after its work, also a cancelled one.
const cleanupTimeout = 5 * time.Second

// resetTimeouts gives the session back as it was. A session that cannot be given back is
// closed.
func resetTimeouts(ctx context.Context, conn *pgx.Conn) {
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if _, err := conn.Exec(cleanup, "RESET lock_timeout; RESET statement_timeout"); err != nil {
		_ = conn.Close(cleanup)
	}
}
