package tablestats

import "time"

// Limits of what is concluded from two looks.
const (
	// minVanishedAge is how old a record must be for its end to mean anything: drills
	// leave records for some seconds.
	minVanishedAge = 10 * time.Minute
	// clockSlack is by how much an application's clock may differ from the database's.
	clockSlack = 5 * time.Minute
	// forgetAfter is how long a finding lasts that nothing confirms: longer than a week,
	// since some applications prune weekly.
	forgetAfter = 8 * 24 * time.Hour
	// firstGrowth is the shortest time from which growth per day is extrapolated.
	firstGrowth = time.Hour
	day         = 24 * time.Hour
)

// Sample is one look at the table.
type Sample struct {
	Counters
	Ages
	// Quiet says that no Job of the operator is at work on the table and that the
	// statistics of the last one have arrived. Only such looks are compared.
	Quiet bool
	// Pruned is the number of rows that the operator has deleted so far.
	Pruned int64
	// PrunedKnown is false when a run since the last look deleted a number of rows that
	// nobody knows: a pod that died, a transaction that was tried again.
	PrunedKnown bool
	// Drilled says that the operator drilled the table since the last look: its own
	// inserts, redeliveries and deletions are among the numbers, so they are not counted.
	Drilled bool
	// Cutoff is the newest time before which the operator deleted; nil: it never did.
	Cutoff *time.Time
	// Retention is how long a record is meant to stay: the shorter of the operator's and
	// the application's declared one.
	Retention time.Duration
}

// History is the last look and what was learned since the first. It is all that a
// manager needs to go on after a restart.
type History struct {
	// Last are the counters of the last look. Its sizes are not used.
	Last Counters
	// Oldest record at the last look; nil: none, or not known.
	Oldest *time.Time
	// Pruned and Retention of the last look.
	Pruned    int64
	Retention time.Duration
	// RolledBack inserts of the interval before the last look, whose retries may yet come.
	RolledBack int64
	// ForeignDeletes is how many rows others than the operator have deleted.
	ForeignDeletes int64
	// Skips is the estimated number of skipped redeliveries.
	Skips int64
	// DayStart is the start of the day that is being measured, Added the rows since then.
	DayStart time.Time
	Added    int64
	// GrowthPerDay is the rows added in the last whole day, rounded; within the first day
	// an extrapolation, nil in the first hour.
	GrowthPerDay *int64
	// Extrapolated says that GrowthPerDay is of less than a day.
	Extrapolated bool
	// Vanished tells of records that somebody deleted too early; nil: of none.
	Vanished *Vanishing
}

// Vanishing tells of records that went before their time.
type Vanishing struct {
	// Age is the smallest upper bound of a vanished record's age: what the retention
	// really is, as far as it was observed.
	Age time.Duration
	// SeenAt is when it was last observed, by the database's clock.
	SeenAt time.Time
}

// Advance adds a look to the history. A nil history begins with it. A look that is not
// quiet changes nothing.
func Advance(history *History, look Sample) *History {
	if history == nil {
		if !look.Quiet {
			return nil
		}
		return &History{Last: look.Counters, Oldest: look.Oldest, Pruned: look.Pruned, Retention: look.Retention, DayStart: look.Clock}
	}
	if !look.Quiet {
		return history
	}
	since := between(history.Last, look.Counters)
	if look.Drilled {
		since = interval{}
	}
	next := *history
	next.Last, next.Oldest, next.Pruned, next.Retention = look.Counters, look.Oldest, look.Pruned, look.Retention
	skips, rolledBack := since.skips(history.RolledBack)
	next.Skips += skips
	next.RolledBack = rolledBack
	if look.PrunedKnown {
		next.ForeignDeletes += max(0, since.deleted-(look.Pruned-history.Pruned))
	}
	next.grow(since, look.Clock)
	next.Vanished = vanishing(history, since, look)
	return &next
}

// grow measures whole days, since most traffic has the shape of a day. Until the first
// is over it extrapolates whenever rows were added, so that an idle table shows no change.
func (h *History) grow(since interval, now time.Time) {
	h.Added += since.added
	elapsed := now.Sub(h.DayStart)
	wholeDay := elapsed >= day
	firstDay := h.GrowthPerDay == nil || h.Extrapolated
	if !wholeDay && (!firstDay || elapsed < firstGrowth || since.added == 0) {
		return
	}
	perDay := Round(int64(float64(h.Added) * float64(day) / float64(elapsed)))
	h.GrowthPerDay, h.Extrapolated = &perDay, !wholeDay
	if wholeDay {
		h.DayStart, h.Added = now, 0
	}
}

// ProjectedBytes is the size that the table with its indexes reaches once it holds the
// growth of a whole retention, at its present bytes per row, rounded. Nil when the
// growth is not known or no row can tell the size of one.
func (h *History) ProjectedBytes(rows, bytes int64) *int64 {
	return h.grownBytes(h.Retention, rows, bytes)
}

// GrowthBytesPerDay is GrowthPerDay in bytes of the table with its indexes, at its present
// bytes per row, rounded. Nil when the growth is not known or no row can tell the size of one.
func (h *History) GrowthBytesPerDay(rows, bytes int64) *int64 {
	return h.grownBytes(day, rows, bytes)
}

func (h *History) grownBytes(within time.Duration, rows, bytes int64) *int64 {
	if h.GrowthPerDay == nil || rows <= 0 {
		return nil
	}
	grown := float64(*h.GrowthPerDay) * (float64(within) / float64(day)) * (float64(bytes) / float64(rows))
	rounded := Round(int64(min(grown, maxProjection)))
	return &rounded
}

// maxProjection is an exbibyte: nobody's table, and far from an overflow.
const maxProjection = 1 << 60

// SaveInterval is how old a saved history gets while the table changes.
const SaveInterval = time.Hour

// WorthSaving says whether h should replace what was saved: something was found, or the
// table changed and the saved one is an hour old. What a restart loses is at most the
// precision of an hour: the counters go on.
func (h *History) WorthSaving(saved *History) bool {
	switch {
	case saved == nil || saved.Last.Table != h.Last.Table:
		return true
	case !sameVanishing(saved.Vanished, h.Vanished):
		return true
	case h.GrowthPerDay != nil && (saved.GrowthPerDay == nil || *saved.GrowthPerDay != *h.GrowthPerDay):
		return true
	}
	unchanged := saved.Last.Inserted == h.Last.Inserted && saved.Last.Updated == h.Last.Updated && saved.Last.Deleted == h.Last.Deleted &&
		saved.Last.IndexScans == h.Last.IndexScans && saved.Pruned == h.Pruned && saved.Retention == h.Retention && sameInstant(saved.Oldest, h.Oldest)
	return !unchanged && h.Last.Clock.Sub(saved.Last.Clock) >= SaveInterval
}

func sameInstant(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// sameVanishing ignores when it was last seen: the hourly save keeps that recent enough.
func sameVanishing(a, b *Vanishing) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Age == b.Age
}
