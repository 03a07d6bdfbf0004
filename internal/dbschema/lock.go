package dbschema

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// lockPollInterval is between two tries. A session that waited inside PostgreSQL would
// hold a snapshot, for which the lock's holder waits when it builds an index
// concurrently: a deadlock.
const lockPollInterval = 100 * time.Millisecond

// lockKey is the advisory lock of a table's schema changes.
func lockKey(c Contract) int64 {
	sum := sha256.Sum256([]byte("messaginginbox.dev/schema\x00" + c.Schema + "\x00" + c.Table))
	return int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // any 64 bits will do
}

// acquireLock takes the table's advisory lock for the session, within the timeout.
func acquireLock(ctx context.Context, conn *pgx.Conn, c Contract, timeout time.Duration) (release func(), err error) {
	key := lockKey(c)
	start := time.Now()
	for {
		var granted bool
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", key).Scan(&granted); err != nil {
			return nil, fmt.Errorf("take the advisory lock of table %s: %w", c.qualifiedTable(), err)
		}
		if granted {
			return func() { releaseLock(ctx, conn, key) }, nil
		}
		if time.Since(start) >= timeout {
			holder, err := lockHolder(ctx, conn, key)
			if err != nil {
				return nil, err
			}
			return nil, &LockedError{Table: c.qualifiedTable(), Holder: holder, Waited: timeout}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the advisory lock of table %s: %w", c.qualifiedTable(), ctx.Err())
		case <-time.After(min(lockPollInterval, timeout)):
		}
	}
}

// releaseLock gives the lock back, if need be by ending the session.
func releaseLock(ctx context.Context, conn *pgx.Conn, key int64) {
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if _, err := conn.Exec(cleanup, "SELECT pg_advisory_unlock($1)", key); err != nil {
		_ = conn.Close(cleanup)
	}
}

// sessionDescription names the session of a row l of pg_locks and a of pg_stat_activity.
const sessionDescription = `format('pid %s (role %s, application %s)', l.pid, coalesce(a.usename, '?'), coalesce(nullif(a.application_name, ''), '?'))
	FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
	WHERE l.granted AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())`

// lockHolder describes the session that has the advisory lock; empty when none has.
func lockHolder(ctx context.Context, conn *pgx.Conn, key int64) (string, error) {
	return describeSession(ctx, conn, "SELECT "+sessionDescription+
		" AND l.locktype = 'advisory' AND l.objsubid = 1 AND (l.classid::bigint << 32 | l.objid::bigint) = $1 LIMIT 1", key)
}

// tableLockHolder describes a session whose lock on the table stands in the way of an
// index build; empty when none does.
func tableLockHolder(ctx context.Context, conn *pgx.Conn, c Contract) (string, error) {
	return describeSession(ctx, conn, "SELECT "+sessionDescription+
		` AND l.pid <> pg_backend_pid() AND l.relation = to_regclass($1)
		AND l.mode IN ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') LIMIT 1`, c.qualifiedTable())
}

func describeSession(ctx context.Context, conn *pgx.Conn, query string, argument any) (string, error) {
	var holder string
	err := conn.QueryRow(ctx, query, argument).Scan(&holder)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("look up who holds a lock: %w", err)
	}
	return holder, nil
}
