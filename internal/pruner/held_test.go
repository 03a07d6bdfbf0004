package pruner

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// slowDisk is a walk over records of which the server compares only so many in its time.
type slowDisk struct {
	walk

	left, most int
	broken     string // the code of an error that comes in between, once
}

func (w *slowDisk) finished() bool { return w.left == 0 }

func (w *slowDisk) lookup(_ context.Context, size int, _ []int64) (heldRecords, error) {
	if code := w.broken; code != "" {
		w.broken = ""
		return heldRecords{}, &pgconn.PgError{Code: code}
	}
	if size > w.most {
		return heldRecords{}, &pgconn.PgError{Code: queryCanceled}
	}
	size = min(size, w.left)
	w.left -= size
	return heldRecords{times: make([]time.Time, size), digests: make([]int64, size)}, nil
}

func TestTheLookupTakesWhatTheDatabaseCanDo(t *testing.T) {
	for name, test := range map[string]struct {
		disk slowDisk
		fail bool
	}{
		"all at once":                 {disk: slowDisk{left: 100_000, most: lookupBatch}},
		"in smaller slices":           {disk: slowDisk{left: 100_000, most: 1000}},
		"one by one":                  {disk: slowDisk{left: 10, most: 1}},
		"not when one is too many":    {disk: slowDisk{left: 10, most: 0}, fail: true},
		"after a deadlock":            {disk: slowDisk{left: 10, most: 10_000, broken: deadlockDetected}},
		"after a lost serialization":  {disk: slowDisk{left: 10, most: 10_000, broken: serializationFailure}},
		"not when the table has gone": {disk: slowDisk{left: 10, most: 10_000, broken: "42P01"}, fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			count := test.disk.left
			r := &run{options: Options{MaxDuration: time.Hour}, started: time.Now()}
			held, stop, err := r.lookupAll(t.Context(), &test.disk, nil)
			if test.fail != (err != nil) || stop != "" {
				t.Fatalf("stopped by %q, %v", stop, err)
			}
			if !test.fail && (len(held.digests) != count || !test.disk.finished()) {
				t.Errorf("%d of %d records were compared", len(held.digests), count)
			}
		})
	}
}
