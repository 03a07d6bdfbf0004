package tablestats

import (
	"testing"
	"time"
)

var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// at is a quiet look so long after the start, at a table whose retention is a fortnight.
func at(elapsed time.Duration, edit func(*Sample)) Sample {
	look := Sample{
		Counters:    Counters{Clock: start.Add(elapsed), Table: 1, Index: 2},
		Ages:        Ages{Known: true},
		Quiet:       true,
		PrunedKnown: true,
		Retention:   14 * day,
	}
	if edit != nil {
		edit(&look)
	}
	return look
}

// oldest sets the age that the oldest record has at the look.
func oldest(age time.Duration) func(*Sample) {
	return func(look *Sample) {
		instant := look.Clock.Add(-age)
		look.Oldest = &instant
	}
}

func follow(looks ...Sample) *History {
	var history *History
	for _, look := range looks {
		history = Advance(history, look)
	}
	return history
}

func TestRecordsThatVanishBeforeTheirTime(t *testing.T) {
	const week = 7 * day
	for name, test := range map[string]struct {
		looks []Sample
		want  time.Duration // 0: nothing was found
	}{
		"one look finds nothing":           {[]Sample{at(0, oldest(week))}, 0},
		"the oldest record is still there": {[]Sample{at(0, oldest(week)), at(time.Hour, oldest(week+time.Hour))}, 0},
		"a purge after a week under a retention of a fortnight": {
			[]Sample{at(0, oldest(week)), at(5*time.Minute, oldest(week))}, week + 5*time.Minute},
		"the table was emptied": {[]Sample{at(0, oldest(week)), at(time.Hour, nil)}, week + time.Hour},
		"the smallest age is what the retention really is": {
			[]Sample{at(0, oldest(9*day)), at(time.Hour, oldest(week)), at(2*time.Hour, oldest(week))}, week + time.Hour},
		"an expired record may go":       {[]Sample{at(0, oldest(14*day)), at(time.Hour, oldest(13*day))}, 0},
		"within the slack of two clocks": {[]Sample{at(0, oldest(14*day-5*time.Minute)), at(time.Minute, oldest(13*day))}, 0},
		"the operator's own deletion, before its period was raised": {
			[]Sample{at(0, oldest(week)), at(time.Hour, func(look *Sample) {
				oldest(6 * day)(look)
				cutoff := look.Clock.Add(-week)
				look.Cutoff = &cutoff
			})}, 0},
		"a period that was shorter at the last look": {
			[]Sample{at(0, func(look *Sample) { oldest(week)(look); look.Retention = week }), at(time.Hour, oldest(6*day))}, 0},
		"a record of some seconds, as drills leave it": {[]Sample{at(0, oldest(0)), at(5*time.Minute, nil)}, 0},
		"without a timestamp index nothing is known": {
			[]Sample{at(0, oldest(week)), at(time.Hour, func(look *Sample) { look.Known = false })}, 0},
		"another table of the same name": {
			[]Sample{at(0, oldest(week)), at(time.Hour, func(look *Sample) { look.Table = 9 })}, 0},
		"a consumer that renews its records": {
			[]Sample{at(0, oldest(week)), at(time.Hour, func(look *Sample) { oldest(day)(look); look.Updated = 10 })}, 0},
		"a reset of the statistics hides nothing": {
			[]Sample{at(0, func(look *Sample) { oldest(week)(look); look.Inserted = 100 }), at(time.Hour, oldest(day))}, week + time.Hour},
		"a look while a Job is at work is not compared": {
			[]Sample{at(0, oldest(week)), at(time.Hour, func(look *Sample) { oldest(day)(look); look.Quiet = false })}, 0},
		"records grow older than what vanished": {
			[]Sample{at(0, oldest(day)), at(time.Hour, oldest(day/2)), at(day, oldest(day*3/2))}, 0},
		"not yet a quarter older": {
			[]Sample{at(0, oldest(day)), at(time.Hour, oldest(day/2)), at(17*time.Hour, oldest(day/2+16*time.Hour))}, day + time.Hour},
		"nothing confirmed it for eight days": {
			[]Sample{at(0, oldest(week)), at(time.Hour, nil), at(8*day+2*time.Hour, nil)}, 0},
		"the spec now declares what was observed": {
			[]Sample{at(0, oldest(week)), at(time.Hour, nil), at(2*time.Hour, func(look *Sample) { look.Retention = week })}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			vanished := follow(test.looks...).Vanished
			switch {
			case vanished == nil && test.want != 0:
				t.Errorf("nothing was found, want records of at most %s", test.want)
			case vanished != nil && vanished.Age != test.want:
				t.Errorf("records of at most %s vanished, want %s", vanished.Age, test.want)
			}
		})
	}
}

func TestForeignDeletesAreThoseThatTheOperatorDidNotMake(t *testing.T) {
	deleted := func(elapsed time.Duration, deleted, pruned int64) Sample {
		return at(elapsed, func(look *Sample) { look.Deleted, look.Pruned = deleted, pruned })
	}
	for name, test := range map[string]struct {
		looks []Sample
		want  int64
	}{
		"what was deleted before the first look is nobody's": {[]Sample{deleted(0, 500, 0)}, 0},
		"all of it the operator's":                           {[]Sample{deleted(0, 500, 100), deleted(time.Hour, 700, 300)}, 0},
		"some of it another's":                               {[]Sample{deleted(0, 500, 100), deleted(time.Hour, 700, 250)}, 50},
		"summed up over the looks":                           {[]Sample{deleted(0, 0, 0), deleted(time.Hour, 5, 0), deleted(2*time.Hour, 12, 3)}, 9},
		"a run whose deletions nobody counted": {
			[]Sample{deleted(0, 0, 0), at(time.Hour, func(look *Sample) { look.Deleted, look.PrunedKnown = 900, false }), deleted(2*time.Hour, 907, 0)}, 7},
		"a drill's own": {
			[]Sample{deleted(0, 0, 0), at(time.Hour, func(look *Sample) { look.Deleted, look.Drilled = 6, true }), deleted(2*time.Hour, 10, 0)}, 4},
		"a reset of the statistics": {[]Sample{deleted(0, 500, 0), at(time.Hour, func(look *Sample) {
			reset := start.Add(time.Minute)
			look.Deleted, look.StatsReset = 900, &reset
		}), deleted(2*time.Hour, 0, 0)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := follow(test.looks...).ForeignDeletes; got != test.want {
				t.Errorf("%d foreign deletions, want %d", got, test.want)
			}
		})
	}
}

func TestGrowthIsOfWholeDays(t *testing.T) {
	inserted := func(elapsed time.Duration, rows int64) Sample {
		return at(elapsed, func(look *Sample) { look.Inserted, look.Live = rows, rows })
	}
	for name, test := range map[string]struct {
		looks     []Sample
		growth    int64 // -1: not known
		bytes     int64 // a day
		projected int64
	}{
		"not known in the first hour":           {[]Sample{inserted(0, 0), inserted(59*time.Minute, 1000)}, -1, -1, -1},
		"extrapolated in the first day":         {[]Sample{inserted(0, 0), inserted(2*time.Hour, 1000)}, 12_000, 2_400_000, 34_000_000},
		"an idle look does not change it":       {[]Sample{inserted(0, 0), inserted(2*time.Hour, 1000), inserted(3*time.Hour, 1000)}, 12_000, 2_400_000, 34_000_000},
		"a whole day counts as it was":          {[]Sample{inserted(0, 0), inserted(day, 1000)}, 1000, 200_000, 2_800_000},
		"the next hours do not change it":       {[]Sample{inserted(0, 0), inserted(day, 1000), inserted(26*time.Hour, 9000)}, 1000, 200_000, 2_800_000},
		"the next day does":                     {[]Sample{inserted(0, 0), inserted(day, 1000), inserted(2*day, 9000)}, 8000, 1_600_000, 22_000_000},
		"an idle day shrinks it to nothing":     {[]Sample{inserted(0, 0), inserted(day, 1000), inserted(2*day, 1000)}, 0, 0, 0},
		"a long absence is averaged":            {[]Sample{inserted(0, 0), inserted(4*day, 1000)}, 250, 50_000, 700_000},
		"rounded to its two leading digits":     {[]Sample{inserted(0, 0), inserted(day, 123_456)}, 120_000, 24_000_000, 340_000_000},
		"rows that a reset hid are not counted": {[]Sample{inserted(0, 5000), inserted(day, 1000)}, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			history := follow(test.looks...)
			if got := valueOr(history.GrowthPerDay); got != test.growth {
				t.Errorf("growth = %d a day, want %d", got, test.growth)
			}
			if got := valueOr(history.GrowthBytesPerDay(1000, 200_000)); got != test.bytes {
				t.Errorf("growth = %d bytes a day, want %d", got, test.bytes)
			}
			if got := valueOr(history.ProjectedBytes(1000, 200_000)); got != test.projected {
				t.Errorf("projected = %d bytes, want %d", got, test.projected)
			}
		})
	}
}

func TestAHistoryIsSavedHourlyOrWhenSomethingIsFound(t *testing.T) {
	saved := follow(at(0, oldest(day)))
	for name, test := range map[string]struct {
		next Sample
		want bool
	}{
		"nothing changed for a week":    {at(7*day, oldest(8*day)), false},
		"rows came, within the hour":    {at(59*time.Minute, func(look *Sample) { oldest(day + 59*time.Minute)(look); look.Inserted = 1 }), false},
		"rows came an hour ago":         {at(time.Hour, func(look *Sample) { oldest(day + time.Hour)(look); look.Inserted = 1 }), true},
		"records vanished a minute ago": {at(time.Minute, oldest(time.Hour)), true},
		"another table":                 {at(time.Minute, func(look *Sample) { look.Table = 9 }), true},
	} {
		t.Run(name, func(t *testing.T) {
			next := Advance(saved, test.next)
			// Idle days pass without a word: the growth is known to be nothing.
			zero := int64(0)
			before := *saved
			before.GrowthPerDay = &zero
			if got := next.WorthSaving(&before); got != test.want {
				t.Errorf("worth saving = %t, want %t", got, test.want)
			}
		})
	}
	if !saved.WorthSaving(nil) {
		t.Error("the first history is not saved")
	}
	if Advance(nil, at(0, func(look *Sample) { look.Quiet = false })) != nil {
		t.Error("a history began while a Job was at work")
	}
}

func TestSkips(t *testing.T) {
	for name, test := range map[string]struct {
		interval interval
		carried  int64
		skips    int64
		carry    int64
	}{
		"a consumer that looks first":            {interval{inserted: 100, scans: 150, reads: 50}, 0, 50, 0},
		"a consumer that inserts and is refused": {interval{inserted: 150, undone: 50}, 0, 50, 0},
		"a rolled-back handler and its retry":    {interval{inserted: 110, undone: 10, scans: 110, reads: 10}, 0, 0, 0},
		"a retry that comes later":               {interval{inserted: 110, undone: 10, scans: 110}, 0, 0, 10},
		"and its retry, then":                    {interval{inserted: 10, scans: 10, reads: 10}, 10, 0, 0},
		"a rollback whose retry never came":      {interval{}, 10, 0, 0},
		"rollbacks and real skips":               {interval{inserted: 110, undone: 10, scans: 140, reads: 40}, 0, 30, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if skips, carry := test.interval.skips(test.carried); skips != test.skips || carry != test.carry {
				t.Errorf("skips = %d, carry = %d; want %d and %d", skips, carry, test.skips, test.carry)
			}
		})
	}
}

func TestRound(t *testing.T) {
	for n, want := range map[int64]int64{0: 0, 7: 7, 99: 99, 104: 100, 105: 110, 12_345: 12_000, 995: 1000, 1<<63 - 1: 9_200_000_000_000_000_000} {
		if got := Round(n); got != want {
			t.Errorf("Round(%d) = %d, want %d", n, got, want)
		}
	}
}

func valueOr(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}
