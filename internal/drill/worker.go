package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/messaginginbox/operator/internal/database"
)

// SQLSTATEs. https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	featureNotSupported  = "0A000"
	wrongState           = "55000" // of an object that is not in the prerequisite state
)

// violation is a claim of the contract that did not hold.
type violation struct {
	reason, happened string
}

// Error says what happened.
func (v *violation) Error() string { return v.happened }

func violated(reason, format string, arguments ...any) *violation {
	return &violation{reason, fmt.Sprintf(format, arguments...)}
}

// worker is one session that acts as a worker with a message.
type worker struct {
	run  *run
	conn *pgx.Conn
	tx   pgx.Tx
	pid  int32
}

// begin opens a transaction as the session would by itself: its isolation and durability
// are part of what is tried.
func (w *worker) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	tx, err := w.conn.Begin(ctx)
	if err != nil {
		return err
	}
	w.tx = tx
	if err := limits().ApplyLocal(ctx, tx); err != nil {
		return err
	}
	return tx.QueryRow(ctx, `SELECT pg_backend_pid(), pg_advisory_xact_lock_shared($1::int, $2::int)::text`, writersLock, w.run.table.lockKey()).
		Scan(&w.pid, new(string))
}

func (w *worker) commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	w.run.dirty = true
	return w.tx.Commit(ctx)
}

func (w *worker) rollback(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := w.tx.Rollback(ctx); !errors.Is(err, pgx.ErrTxClosed) {
		return err
	}
	return nil
}

// outcome of an INSERT.
type outcome struct {
	rows    int64
	seconds float64
	err     error // nil, or a duplicate, or a serialization failure
}

func (o outcome) stored() bool { return o.err == nil && o.rows == 1 }

func (o outcome) refused() bool { return hasState(o.err, uniqueViolation) }

// String is what happened, for a report.
func (o outcome) String() string {
	switch {
	case o.refused():
		return "it was refused as a duplicate (SQLSTATE 23505)"
	case o.err != nil:
		return "it failed with a serialization failure (SQLSTATE 40001) in the place of a duplicate"
	case o.rows == 0:
		return "it stored nothing, without an error"
	default:
		return "it stored the record"
	}
}

// insert runs one of the table's inserts. What a worker must be able to take, a duplicate
// and a serialization failure, is an outcome; what keeps a drill from trying is an error.
func (w *worker) insert(ctx context.Context, statement, id string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	started := time.Now()
	tag, err := w.tx.Exec(ctx, statement, w.run.table.arguments(id)...)
	result := outcome{rows: tag.RowsAffected(), seconds: time.Since(started).Seconds(), err: err}
	if err == nil || hasState(err, uniqueViolation, serializationFailure) {
		return result, nil
	}
	return result, w.run.refusal(err)
}

// refusal recognises a table that takes no record of a drill.
func (r *run) refusal(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) && len(server.Code) == 5 && slices.Contains([]string{"22", "23", "P0"}, server.Code[:2]) {
		refused := hinder(ReasonInsertRefused, "%s refuses the drill's record: %s", r.table.name, database.Classify(err).Message)
		refused.cause = err
		return refused
	}
	return err
}

// insertOrIgnore is the other way to write a consumer: ON CONFLICT DO NOTHING. tried is
// false when a table with rules does not take it, so that no consumer can use it.
func (w *worker) insertOrIgnore(ctx context.Context, id string) (result outcome, tried bool, err error) {
	result, err = w.insert(ctx, w.run.table.ignore, id)
	switch {
	case hasState(err, featureNotSupported):
		return result, false, nil
	case hasState(err, wrongState):
		return result, true, violated(ReasonKeyDeferrable, "ON CONFLICT DO NOTHING is refused, since it cannot use a deferrable unique key")
	}
	return result, true, err
}

// record begins a transaction and stores new records in it, which must succeed.
func (w *worker) record(ctx context.Context, ids ...string) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	return w.store(ctx, ids...)
}

func (w *worker) store(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		result, err := w.insert(ctx, w.run.table.insert, id)
		switch {
		case err != nil:
			return err
		case result.stored():
		case result.err == nil:
			return violated(ReasonInsertSwallowed, "the INSERT of a new record reported %d rows: %s", result.rows, w.run.suspects())
		default:
			return w.run.refusal(result.err)
		}
	}
	return nil
}

func hasState(err error, states ...string) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return false
	}
	for _, state := range states {
		if server.Code == state {
			return true
		}
	}
	return false
}
