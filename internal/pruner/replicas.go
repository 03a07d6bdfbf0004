package pruner

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
)

// replicaCheckInterval is how often the replicas are looked at.
const replicaCheckInterval = 200 * time.Millisecond

// checkReplicasVisible refuses a run that could not see how far the replicas are.
func checkReplicasVisible(ctx context.Context, conn *pgx.Conn, user string) error {
	var hidden int
	if err := conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_replication WHERE state IS NULL`).Scan(&hidden); err != nil {
		return fmt.Errorf("look at the replicas: %w", err)
	}
	if hidden > 0 {
		return refuse(database.ReasonPermissionDenied, "the role %s cannot see the lag of %d replicas, and a maximum replica lag is set; grant it the role pg_monitor, or leave the maximum out",
			user, hidden)
	}
	return nil
}

// replicas watches how far the replicas are behind. PostgreSQL's replay_lag stands still
// while a replica does not move at all, so a position in the log, taken at a known time,
// is watched as well.
type replicas struct {
	conn      *pgx.Conn
	mark      string // a position in the log
	markedAt  time.Time
	checkedAt time.Time
}

// lag returns how far the furthest replica is behind, and 0 when there is none.
func (r *replicas) lag(ctx context.Context) (time.Duration, error) {
	mark := r.mark
	if mark == "" {
		mark = "FFFFFFFF/FFFFFFFF"
	}
	var seconds float64
	var passed bool
	var position string
	err := r.conn.QueryRow(ctx, `SELECT coalesce(max(extract(epoch FROM replay_lag)), 0)::float8,
			coalesce(bool_and(replay_lsn >= $1::text::pg_lsn), true), pg_current_wal_lsn()::text
		FROM pg_stat_replication WHERE state IN ('catchup', 'streaming') AND replay_lsn IS NOT NULL`, mark).Scan(&seconds, &passed, &position)
	if err != nil {
		return 0, fmt.Errorf("look at the replicas: %w", err)
	}
	r.checkedAt = time.Now()
	reported := time.Duration(seconds * float64(time.Second))
	if r.mark == "" || passed {
		r.mark, r.markedAt = position, r.checkedAt
		return reported, nil
	}
	return max(reported, r.checkedAt.Sub(r.markedAt)), nil
}

// due says whether it is time to look again.
func (r *replicas) due() bool { return time.Since(r.checkedAt) >= replicaCheckInterval }
