package drill

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
)

// Classes of advisory locks: the first half of a key, whose second is the table's oid.
const (
	// drillLock is held by the one drill of a table, for as long as it runs.
	drillLock = int32(0x6472696c) // "dril"
	// writersLock is shared by the transactions of a drill that write. The clean-up wants it
	// alone: so it comes after the last of a killed drill, whose commit the server may
	// still have to read from its socket.
	writersLock = int32(0x64726977) // "driw"
)

// cleanupInterval is between two tries to remove what a drill committed.
const cleanupInterval = 250 * time.Millisecond

// lockKey has the bits of the oid, which is unsigned where a key is not.
func (t table) lockKey() int32 { return int32(t.oid) } // #nosec G115 -- every oid still has a key of its own

// takeLock makes this the only drill of the table, until the transaction that it returns
// ends. A lock of a transaction also holds behind a pooler.
func takeLock(ctx context.Context, holder *pgx.Conn, t table) (pgx.Tx, error) {
	tx, err := holder.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, err
	}
	bounds := limits()
	bounds.IdleInTransactionTimeout = MaxDuration + time.Minute // it holds no snapshot and no row meanwhile
	if err := bounds.ApplyLocal(ctx, tx); err != nil {
		return nil, err
	}
	var taken bool
	if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1::int, $2::int)`, drillLock, t.lockKey()).Scan(&taken); err != nil {
		return nil, err
	}
	if !taken {
		return nil, hinder(ReasonAlreadyRunning, "another drill of %s is under way", t.name)
	}
	return tx, nil
}

// stillAlone fails when the session with the drill's lock was lost: then another drill may
// have been at the same records, and what was seen says nothing of the contract.
func (r *run) stillAlone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, err := r.guard.Exec(ctx, `SELECT 1`)
	return err
}

// cleanUp deletes the records of drills, and returns how many there were. It waits for the
// transactions that could still commit one.
func (r *run) cleanUp(ctx context.Context) (removed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, r.cleaner, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) (failed error) {
		removed, failed = r.removeRecords(ctx, tx)
		return failed
	})
	if err == nil {
		r.dirty = false
	}
	return removed, err
}

func (r *run) removeRecords(ctx context.Context, tx pgx.Tx) (removed int64, err error) {
	if err = limits().ApplyLocal(ctx, tx); err != nil {
		return 0, err
	}
	if _, err = tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1::int, $2::int)`, writersLock, r.table.lockKey()); err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, r.table.remove, TransportName, allMessageIDs)
	if err != nil {
		return 0, err
	}
	left, err := r.table.records(ctx, tx, allMessageIDs...)
	if err == nil && left > 0 {
		err = hinder(ReasonDeleteSwallowed, "%d records of a drill cannot be deleted from %s: %s", left, r.table.name, r.suspects())
	}
	return tag.RowsAffected(), err
}

// cleanUpAtLast also works when the drill's time is up or its connection was lost, as when
// the server restarts.
func (r *run) cleanUpAtLast(ctx context.Context) error {
	if !r.dirty {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupDuration)
	defer cancel()
	for {
		err := r.cleanUpAfresh(ctx)
		if err == nil || database.Classify(err).Class != database.Transient {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(cleanupInterval):
		}
	}
}

func (r *run) cleanUpAfresh(ctx context.Context) error {
	if r.cleaner.IsClosed() {
		connection, err := r.options.Inbox.Connect(ctx, limits())
		if err != nil {
			return err
		}
		r.cleaner = connection
	}
	_, err := r.cleanUp(ctx)
	return err
}

// records counts those of the given ids that a statement on q can see.
func (t table) records(ctx context.Context, q database.Querier, ids ...string) (int64, error) {
	var count int64
	err := q.QueryRow(ctx, t.count, TransportName, ids).Scan(&count)
	return count, err
}

// seen counts the records that are committed, through the inbox's own connection.
func (r *run) seen(ctx context.Context, ids ...string) (count int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, r.cleaner, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (failed error) {
		if failed = limits().ApplyLocal(ctx, tx); failed == nil {
			count, failed = r.table.records(ctx, tx, ids...)
		}
		return failed
	})
	return count, err
}

// isOver says whether the drill was asked to stop, or its time is up. A connection can
// find that out a moment before the context's own timer does.
func isOver(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return ctx.Err() != nil || limited && !time.Now().Before(deadline)
}

// explain makes an obstacle of an error: on which connection it was met, and for a lock
// who holds it. What is explained already stays as it is.
func (r *run) explain(ctx context.Context, connection string, err error) error {
	var known *obstacle
	isKnown := errors.As(err, &known)
	if err == nil || isKnown && known.located {
		return err
	}
	reason, message := reasonOf(err), describe(err)
	switch {
	case isOver(ctx):
		reason, message = ReasonInterrupted, "it was asked to stop, or its time was up"
	case isKnown:
	case errors.Is(err, context.DeadlineExceeded):
		reason = ReasonNoAnswer
		message = "the server or the pooler did not answer in time; a drill through a pooler needs three server connections"
	case reason == database.ReasonLockTimeout:
		message += r.lockHolder(ctx)
	}
	return &obstacle{reason: reason, message: "on the " + connection + " connection: " + message, cause: err, located: true}
}

// lockHolder names the sessions whose lock on the table keeps a drill from writing.
func (r *run) lockHolder(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var holder string
	if r.cleaner.IsClosed() || r.table.oid == 0 {
		return ""
	}
	err := r.cleaner.QueryRow(ctx, `SELECT coalesce(string_agg(format('pid %s (role %s, application %s, %s)', l.pid, coalesce(a.usename, '?'),
			coalesce(nullif(a.application_name, ''), '?'), l.mode), ', '), '')
		FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
		WHERE l.granted AND l.relation = $1::bigint::oid AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
			AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`, int64(r.table.oid)).Scan(&holder)
	if err != nil || holder == "" {
		return ""
	}
	return "; the lock on the table is held by " + holder
}
