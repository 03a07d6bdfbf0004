package pruner

import (
	"context"
	"fmt"
	"time"
)

const (
	// recordsPerPage is about what a page of an inbox table holds.
	recordsPerPage = 80
	// maxStretch bounds how many more pages than usual a slice takes where little is expired.
	maxStretch = 4
)

// expiredInPages is the condition for what is expired, in front of that for the pages.
const expiredInPages = `{time} < $3 AND {time} > '-infinity' AND `

// heapWalk goes through all pages of a table that has no index in the order of the
// timestamp. Its positions are page numbers.
type heapWalk struct {
	spans[int64]
	session *session
	table   table
	cutoff  time.Time
	dryRun  bool
	pages   int64
	stretch int64
}

// newHeapWalk starts at a page that differs from run to run and wraps around, so that
// runs which all end at their time limit visit the whole table between them.
func newHeapWalk(ctx context.Context, db *session, t table, cutoff time.Time, dryRun bool) (*heapWalk, error) {
	w := &heapWalk{session: db, table: t, cutoff: cutoff, dryRun: dryRun, stretch: 1}
	// Partitions are visited side by side, so the largest decides.
	err := db.read(ctx, &w.pages, `SELECT (coalesce((SELECT max(pg_relation_size(relid)) FROM pg_partition_tree($1::oid::regclass) WHERE isleaf),
		pg_relation_size($1::oid::regclass), 0) + size - 1) / size FROM (SELECT current_setting('block_size')::bigint AS size) block`, t.oid)
	if err != nil {
		return nil, fmt.Errorf("read the size of %s: %w", t.name, err)
	}
	if w.pages == 0 {
		return w, nil
	}
	start := firstPage(cutoff, w.pages)
	w.open = []span[int64]{{from: start, to: w.pages}}
	if start > 0 {
		w.open = append(w.open, span[int64]{from: 0, to: start})
	}
	return w, nil
}

// firstPage spreads the starts of successive runs evenly: the fractional parts of the
// multiples of the golden ratio do.
func firstPage(cutoff time.Time, pages int64) int64 {
	const goldenRatio = 0.6180339887498949
	turns := float64(cutoff.Unix()%(1<<20)) * goldenRatio
	return int64((turns - float64(int64(turns))) * float64(pages))
}

func (w *heapWalk) end(size int) (int64, bool) {
	pages := max(int64(size)/recordsPerPage, 1) * w.stretch
	end := min(w.open[0].from+pages, w.open[0].to)
	return end, end == w.open[0].to
}

func (w *heapWalk) step(ctx context.Context, size int) (int64, error) {
	end, last := w.end(size)
	rows, err := w.visit(ctx, w.open[0].from, end)
	if err != nil {
		w.stretch = 1
		return 0, err
	}
	w.advance(end, last)
	if rows > int64(size)/2 {
		w.stretch = 1
	} else {
		w.stretch = min(w.stretch*2, maxStretch)
	}
	return rows, nil
}

func (w *heapWalk) visit(ctx context.Context, from, end int64) (int64, error) {
	var rows int64
	visit := w.table.visit(w.dryRun, expiredInPages+w.table.pageRange, &rows, w.table.held.digests, from, end, w.table.value(w.cutoff))
	return rows, w.session.transaction(ctx, visit)
}

func (w *heapWalk) lookup(ctx context.Context, size int, digests []int64) (heldRecords, error) {
	end, last := w.end(size)
	var found heldRecords
	err := w.session.transaction(ctx, w.table.lookup(expiredInPages+w.table.pageRange, digests, &found, w.open[0].from, end, w.table.value(w.cutoff)))
	if err == nil {
		w.advance(end, last)
	}
	return found, err
}

func (w *heapWalk) skip(_ context.Context, size int) error {
	w.pass(w.end(size))
	return nil
}

func (w *heapWalk) fraction() float64 {
	if w.pages == 0 {
		return 1
	}
	left := int64(0)
	for _, s := range w.left() {
		left += s.to - s.from
	}
	return 1 - float64(left)/float64(w.pages)
}

// remaining is unknown without an index.
func (w *heapWalk) remaining(context.Context, time.Time) (*time.Time, error) { return nil, nil }
