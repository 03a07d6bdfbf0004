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

	"github.com/messaginginbox/operator/internal/database"
)

// DoctrineTable is the quoted name of a doctrine transport's table, and its queue name.
func (t Target) DoctrineTable() (table, queueName string) {
	name := cmp.Or(t.Place.Table, t.option("table_name", "messenger_messages"))
	return pgx.Identifier(strings.SplitN(name, ".", 2)).Sanitize(), cmp.Or(t.Place.QueueName, t.option("queue_name", "default"))
}

// countMessages sorts the rows of one queue by state. Symfony writes the columns in UTC
// without a zone. A row of the year 9999 is a tombstone that MySQL needs.
const countMessages = `
	SELECT count(*) FILTER (WHERE delivered_at IS NULL AND available_at <= clock),
	       count(*) FILTER (WHERE delivered_at IS NULL AND available_at > clock),
	       count(*) FILTER (WHERE delivered_at >= clock - $2::interval),
	       count(*) FILTER (WHERE delivered_at < clock - $2::interval),
	       min(available_at) FILTER (WHERE delivered_at IS NOT NULL OR available_at <= clock) AT TIME ZONE 'UTC'
	FROM (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::timestamp(0) AS clock OFFSET 0) now, %s
	WHERE queue_name = $1 AND (delivered_at IS NULL OR delivered_at < '9999-01-01')`

// doctrine counts the rows of one queue in the messages table.
func doctrine(ctx context.Context, target Target) (Observation, error) {
	pool, err := target.Open(ctx)
	if err != nil {
		return Observation{}, databaseFailure(target, "", err)
	}
	table, queueName := target.DoctrineTable()
	var observation Observation
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// The server gives up before we do: a statement must not go on without us.
		limits := database.Limits{StatementTimeout: DefaultTimeLimit, LockTimeout: time.Second}
		if limitErr := limits.ApplyLocal(ctx, tx); limitErr != nil {
			return limitErr
		}
		row := tx.QueryRow(ctx, fmt.Sprintf(countMessages, table), queueName, target.RedeliverTimeout.String())
		return row.Scan(&observation.Pending, &observation.Delayed, &observation.InFlight, &observation.Stuck, &observation.Oldest)
	})
	if err != nil {
		return Observation{}, databaseFailure(target, table, err)
	}
	if observation.Oldest != nil {
		observation.sawOldest(*observation.Oldest)
		*observation.Oldest = observation.Oldest.UTC()
	}
	return observation, nil
}

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
		case "57014": // query_canceled
			return failed(ReasonNoAnswer, "counting %s took longer than %s: an index on queue_name is needed, or the queue is too long", table, DefaultTimeLimit)
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
