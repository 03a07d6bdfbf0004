package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/messaginginbox/operator/internal/database"
)

// DoctrineTable is the quoted name of a doctrine transport's table, and its queue name.
func (t Target) DoctrineTable() (table, queueName string) {
	name := cmp.Or(t.Place.Table, t.option("table_name", "messenger_messages"))
	return pgx.Identifier(strings.SplitN(name, ".", 2)).Sanitize(), cmp.Or(t.Place.QueueName, t.option("queue_name", "default"))
}

// countTimeLimit of counting the rows of a queue. What is longer is estimated.
const countTimeLimit = time.Second

// countMessages sorts the rows of one queue by state. Symfony writes the columns in UTC
// without a zone. A row of the year 9999 is a tombstone that MySQL needs. The clock is read
// once, not for each of perhaps a million rows, and only the queue's name is left to choose
// an index by.
const countMessages = `
	WITH now AS MATERIALIZED (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::timestamp(0) AS clock)
	SELECT count(*) FILTER (WHERE delivered_at IS NULL AND available_at <= (SELECT clock FROM now)),
	       count(*) FILTER (WHERE delivered_at IS NULL AND available_at > (SELECT clock FROM now)),
	       count(*) FILTER (WHERE delivered_at >= (SELECT clock - $2::interval FROM now) AND delivered_at < '9999-01-01'),
	       count(*) FILTER (WHERE delivered_at < (SELECT clock - $2::interval FROM now)),
	       min(available_at) FILTER (WHERE delivered_at < '9999-01-01' OR delivered_at IS NULL AND available_at <= (SELECT clock FROM now)) AT TIME ZONE 'UTC'
	FROM %s WHERE queue_name = $1`

// tableLook is one look at a queue in a table.
type tableLook struct {
	pool             *pgxpool.Pool
	table, queueName string
	redeliverTimeout time.Duration
}

// doctrine counts the rows of one queue in the messages table.
func doctrine(ctx context.Context, target Target) (Observation, error) {
	pool, err := target.Open(ctx)
	if err != nil {
		return Observation{}, databaseFailure(target, "", err)
	}
	table, queueName := target.DoctrineTable()
	look := tableLook{pool, table, queueName, target.RedeliverTimeout}
	var seen Observation
	err = look.read(ctx, func(tx pgx.Tx) (readErr error) {
		seen, readErr = look.count(ctx, tx, look.table)
		return readErr
	})
	if isCanceled(err) {
		if estimated, estimateErr := look.estimate(ctx); estimateErr == nil {
			return estimated, nil
		}
	}
	if err != nil {
		return Observation{}, databaseFailure(target, table, err)
	}
	return seen, nil
}

// read runs in a transaction whose statements end before we would leave them. One process of
// the server counts, and does not compile first what it runs for less time than that takes.
func (l tableLook) read(ctx context.Context, run func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		limits := database.Limits{StatementTimeout: countTimeLimit, LockTimeout: countTimeLimit / 2}
		if err := limits.ApplyLocal(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true)`); err != nil {
			return err
		}
		return run(tx)
	})
}

// count sorts the rows of the table, or of a sample of it.
func (l tableLook) count(ctx context.Context, tx pgx.Tx, from string) (Observation, error) {
	var (
		seen   Observation
		oldest *time.Time
	)
	row := tx.QueryRow(ctx, fmt.Sprintf(countMessages, from), l.queueName, pgtype.Interval{Microseconds: l.redeliverTimeout.Microseconds(), Valid: true})
	if err := row.Scan(&seen.Pending, &seen.Delayed, &seen.InFlight, &seen.Stuck, &oldest); err != nil {
		return Observation{}, err
	}
	if oldest != nil {
		seen.sawOldest(*oldest)
	}
	return seen, nil
}

// isCanceled says that the server ended a statement whose time was up.
func isCanceled(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == queryCanceled
}

const queryCanceled = "57014"

// databaseFailure names the table and the right where PostgreSQL's answer is about it.
func databaseFailure(target Target, table string, err error) error {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		switch answer.Code {
		case "42P01", "3F000": // undefined_table, invalid_schema_name
			return failed(ReasonQueueNotFound, "%s has no table %s: check observe.table, or table_name in the DSN", target.Broker(), table)
		case "42703": // undefined_column
			return failed(ReasonQueueNotFound, "the table %s is not one of Symfony's doctrine transport: %s", table, excerpt(answer.Message, nil))
		case "42501": // insufficient_privilege
			return failed(ReasonPermissionDenied, "the role may not read the messages: GRANT SELECT ON %s to it", table)
		case queryCanceled:
			return failed(ReasonNoAnswer, "reading %s took too long: an index on queue_name is needed, or the queue is too long", table)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return failed(ReasonNoAnswer, "%s did not answer within %s", target.Broker(), DefaultTimeLimit)
	}
	failure := database.Classify(err)
	if failure.Reason == ReasonTLSFailed {
		failure.Message += " (observe.caSecretRef, or else spec.database.caSecretRef, has the authorities)"
	}
	return &Failure{Reason: failure.Reason, Message: failure.Message}
}
