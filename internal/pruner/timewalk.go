package pruner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// resolution of PostgreSQL's timestamps.
const resolution = time.Microsecond

// timeWalk goes through the expired records in the order of the timestamp index. Its
// positions are values of the column; a value without time zone counts as if in UTC.
type timeWalk struct {
	spans[time.Time]
	session *session
	table   table
	dryRun  bool
	next    *boundary // the end of the present slice, once it is known
	oldest  time.Time
	whole   time.Duration // from the oldest record to the cutoff
}

// newTimeWalk starts at the oldest record. Records at -infinity were not handled at
// any time, and stay.
func newTimeWalk(ctx context.Context, db *session, t table, cutoff time.Time, dryRun bool) (*timeWalk, error) {
	w := &timeWalk{session: db, table: t, dryRun: dryRun, oldest: cutoff}
	err := db.read(ctx, &w.oldest, t.sql(`SELECT {time} FROM {table} WHERE {time} > '-infinity' AND {time} < $1 ORDER BY {time} LIMIT 1`), t.value(cutoff))
	if errors.Is(err, pgx.ErrNoRows) {
		return w, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the oldest record of %s: %w", t.name, err)
	}
	w.whole = cutoff.Sub(w.oldest)
	w.open = []span[time.Time]{{from: w.oldest, to: cutoff}}
	return w, nil
}

// boundary is where a slice ends.
type boundary struct {
	at   *time.Time // nil: at the end of the present range
	size int        // the slice's number of records
}

// find is the query for the boundary of the slice of size records that starts at a
// position. That is the position itself when more records share its timestamp.
func (w *timeWalk) find(from time.Time, size int, found *boundary) statement {
	found.size = size
	return statement{
		sql:       w.table.sql(`SELECT (SELECT {time} FROM {table} WHERE {time} >= $1 AND {time} < $2 ORDER BY {time} OFFSET $3 LIMIT 1)`),
		arguments: []any{w.table.value(from), w.table.value(w.open[0].to), int64(size)},
		row:       []any{&found.at},
	}
}

// locate returns the end of a slice of size records from the present position, whether
// the range ends there, and whether all of them share one timestamp.
func (w *timeWalk) locate(ctx context.Context, size int) (end time.Time, last, crowded bool, err error) {
	if w.next == nil || w.next.size > size {
		found := &boundary{}
		if err := w.session.transaction(ctx, w.find(w.open[0].from, size, found)); err != nil {
			return time.Time{}, false, false, err
		}
		w.next = found
	}
	if w.next.at == nil {
		return w.open[0].to, true, false, nil
	}
	if end = *w.next.at; end.Equal(w.open[0].from) {
		return end.Add(resolution), false, true, nil
	}
	return end, false, false, nil
}

func (w *timeWalk) step(ctx context.Context, size int) (int64, error) {
	rows, err := w.tryStep(ctx, size)
	if err != nil {
		w.next = nil
	}
	return rows, err
}

func (w *timeWalk) tryStep(ctx context.Context, size int) (int64, error) {
	end, last, crowded, err := w.locate(ctx, size)
	if err != nil {
		return 0, err
	}
	if crowded && !w.dryRun {
		return w.stepWithin(ctx, end, size)
	}
	var rows int64
	var following boundary
	visit := w.table.visit(w.dryRun, `{time} >= $1 AND {time} < $2`, &rows, w.table.held.within(w.open[0].from, end), w.table.value(w.open[0].from), w.table.value(end))
	if last {
		err = w.session.transaction(ctx, visit)
	} else {
		// Looking ahead in the same round trip, and before any record is locked.
		err = w.session.transaction(ctx, w.find(end, size, &following), visit)
	}
	if err != nil {
		return 0, err
	}
	w.move(end, last)
	if !last {
		w.next = &following
	}
	return rows, nil
}

func (w *timeWalk) lookup(ctx context.Context, size int, digests []int64) (heldRecords, error) {
	end, last, _, err := w.locate(ctx, size)
	if err != nil {
		return heldRecords{}, err
	}
	var found heldRecords
	err = w.session.transaction(ctx, w.table.lookup(`{time} >= $1 AND {time} < $2`, digests, &found, w.table.value(w.open[0].from), w.table.value(end)))
	if err == nil {
		w.move(end, last)
	}
	return found, err
}

func (w *timeWalk) move(to time.Time, last bool) {
	w.next = nil
	w.advance(to, last)
}

// stepWithin deletes size of the records that share the present timestamp. The position
// stays, for the others, unless nothing could be deleted.
func (w *timeWalk) stepWithin(ctx context.Context, end time.Time, size int) (int64, error) {
	var rows int64
	// The inner condition leaves out what stays: the limit counts records to delete.
	inner, arguments := w.table.mayGo(w.table.held.within(w.open[0].from, end), []any{w.table.value(w.open[0].from), int64(size)})
	err := w.session.transaction(ctx, w.table.statement(false, `{time} = $1 AND ctid = ANY (ARRAY(SELECT ctid FROM {table} WHERE {time} = $1`+inner+` LIMIT $2))`, &rows, arguments))
	w.next = nil
	switch {
	case err != nil || rows > 0:
	case w.table.keepsSome():
		w.move(end, false)
	default:
		w.pass(end, false)
	}
	return rows, err
}

func (w *timeWalk) skip(ctx context.Context, size int) error {
	w.next = nil
	end, last, _, err := w.locate(ctx, size)
	w.next = nil
	if err == nil {
		w.pass(end, last)
	}
	return err
}

func (w *timeWalk) fraction() float64 {
	if w.whole == 0 {
		return 1
	}
	left := time.Duration(0)
	for _, s := range w.left() {
		left += s.to.Sub(s.from)
	}
	return 1 - float64(left)/float64(w.whole)
}

// remaining returns the oldest record that the run left, as a value of the column. It
// looks where the first one can be: before that an index has to step over every deleted one.
func (w *timeWalk) remaining(ctx context.Context, cutoff time.Time) (*time.Time, error) {
	start := cutoff
	if w.dryRun {
		start = w.oldest
	}
	for _, s := range w.left() {
		if s.from.Before(start) {
			start = s.from
		}
	}
	var oldest time.Time
	err := w.session.read(ctx, &oldest, w.table.sql(`SELECT {time} FROM {table} WHERE {time} >= $1 AND {time} < 'infinity' ORDER BY {time} LIMIT 1`), w.table.value(start))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &oldest, err
}
