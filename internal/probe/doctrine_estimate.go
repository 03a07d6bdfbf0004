package probe

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

// samplePages is how many pages of a table are read to estimate a queue.
const samplePages = 500

// oldestMessage is found by an index on the times, without the rest of the queue.
const oldestMessage = `
	SELECT min(available_at) AT TIME ZONE 'UTC' FROM %s
	WHERE queue_name = $1 AND available_at <= now() AT TIME ZONE 'UTC' AND (delivered_at IS NULL OR delivered_at < '9999-01-01')`

// estimate counts in a sample of the table's pages, for a queue that is too long to count,
// and finds the oldest message by itself.
func (l tableLook) estimate(ctx context.Context) (Observation, error) {
	var seen Observation
	err := l.read(ctx, func(tx pgx.Tx) error {
		var pages float64
		size := tx.QueryRow(ctx, `SELECT pg_relation_size($1::text::regclass) / current_setting('block_size')::float8`, l.table)
		if err := size.Scan(&pages); err != nil {
			return err
		}
		share := min(samplePages/max(pages, 1), 1)
		var err error
		// A table that did not change gives the same sample again, and so the same numbers.
		seen, err = l.count(ctx, tx, fmt.Sprintf("%s TABLESAMPLE SYSTEM (%f) REPEATABLE (1)", l.table, 100*share))
		for _, number := range []*int64{&seen.Pending, &seen.Delayed, &seen.InFlight, &seen.Stuck} {
			*number = int64(math.Round(float64(*number) / share))
		}
		return err
	})
	if err != nil {
		return Observation{}, err
	}
	gap := fmt.Sprintf("%s could not be counted within %s: the numbers are estimates from a sample of it", l.table, countTimeLimit)
	seen.Oldest = nil
	err = l.read(ctx, func(tx pgx.Tx) error {
		var oldest *time.Time
		scanErr := tx.QueryRow(ctx, fmt.Sprintf(oldestMessage, l.table), l.queueName).Scan(&oldest)
		if oldest != nil {
			seen.sawOldest(*oldest)
		}
		return scanErr
	})
	if seen.AgeUnknown = isCanceled(err); seen.AgeUnknown {
		gap, err = gap+", and the oldest message was not found: an index on queue_name and available_at is needed", nil
	}
	seen.gap(gap)
	return seen, err
}
