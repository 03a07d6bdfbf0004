package dbschema

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// progressInterval is between two calls of ApplyOptions.Progress.
const progressInterval = time.Second

// BuildProgress is how far an index build has come.
type BuildProgress struct {
	// Phase as PostgreSQL names it, for example "building index: scanning table". Empty
	// when the session may not see another role's progress (pg_read_all_stats).
	Phase string `json:"phase"`
	// BlocksDone of BlocksTotal in this phase. Both are 0 in a phase that reads no blocks.
	BlocksDone int64 `json:"blocksDone"`
	// BlocksTotal in this phase.
	BlocksTotal int64 `json:"blocksTotal"`
}

// IndexBuildProgress tells how far the build of an index on the table is, whichever
// session runs it; nil when there is none.
func IndexBuildProgress(ctx context.Context, q Querier, c Contract) (*BuildProgress, error) {
	var progress BuildProgress
	err := q.QueryRow(ctx, `SELECT coalesce(p.phase, ''), coalesce(p.blocks_done, 0), coalesce(p.blocks_total, 0)
		FROM pg_catalog.pg_stat_progress_create_index p
		JOIN pg_catalog.pg_locks l ON l.pid = p.pid AND l.granted AND l.mode IN ('ShareUpdateExclusiveLock', 'ShareLock')
		JOIN pg_catalog.pg_class t ON t.oid = l.relation
		JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
		WHERE p.datname = current_database() AND n.nspname = $1::name AND t.relname = $2::name
		AND coalesce(p.relid, t.oid) = t.oid
		LIMIT 1`, c.Schema, c.Table).Scan(&progress.Phase, &progress.BlocksDone, &progress.BlocksTotal)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil // no build is no error
	}
	if err != nil {
		return nil, fmt.Errorf("look for index builds on table %s: %w", c.qualifiedTable(), err)
	}
	return &progress, nil
}

// reportProgress calls report about once a second until the returned function is called.
// It needs a second connection, since the first one is busy; without one nothing is
// reported, and the build goes on.
func reportProgress(ctx context.Context, conn *pgx.Conn, c Contract, step Step, report func(BuildProgress)) (stop func()) {
	if report == nil || step.Kind == DropInvalidIndex {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		observer, err := pgx.ConnectConfig(ctx, conn.Config())
		if err != nil {
			return
		}
		defer func() { _ = observer.Close(context.WithoutCancel(ctx)) }()
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			progress, err := IndexBuildProgress(ctx, observer, c)
			if err != nil {
				return
			}
			if progress != nil {
				report(*progress)
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return func() {
		cancel()
		reporting.Wait()
	}
}
