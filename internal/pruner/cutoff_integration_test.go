//go:build integration

package pruner

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Records are placed around an exact cutoff. The server's clock cannot be set, so the
// walk gets the cutoff that the clock would give.
func TestRecordAtTheCutoffStays(t *testing.T) {
	cases := []struct {
		name, columnType, zone, cutoff string
		expired, kept                  []string
	}{
		{"timestamp with time zone", "timestamptz", "UTC", "2026-07-01T10:00:00Z",
			[]string{"2026-07-01 09:59:59+00", "2026-07-01 09:59:59.999999+00", "2026-07-01 11:59:59+02"},
			[]string{"2026-07-01 10:00:00+00", "2026-07-01 10:00:01+00", "2026-07-01 12:00:00+02"}},
		{"naive UTC", "timestamp(0)", "UTC", "2026-07-01T10:00:00Z",
			[]string{"2026-07-01 09:59:59"}, []string{"2026-07-01 10:00:00", "2026-07-01 10:00:01"}},
		{"naive in Berlin, summer", "timestamp(0)", "Europe/Berlin", "2026-07-01T10:00:00Z",
			[]string{"2026-07-01 11:59:59"}, []string{"2026-07-01 12:00:00", "2026-07-01 12:00:01"}},
		{"naive in Berlin, winter", "timestamp(0)", "Europe/Berlin", "2026-01-15T10:00:00Z",
			[]string{"2026-01-15 10:59:59"}, []string{"2026-01-15 11:00:00", "2026-01-15 11:00:01"}},
		// On 25 October the clock shows 02:00 to 03:00 twice: from 00:00 and from 01:00 UTC.
		{"just before the repeated hour", "timestamp(0)", "Europe/Berlin", "2026-10-24T23:59:59Z",
			[]string{"2026-10-25 01:59:58"}, []string{"2026-10-25 01:59:59", "2026-10-25 02:00:00", "2026-10-25 02:30:00"}},
		{"in the first pass of the repeated hour", "timestamp(0)", "Europe/Berlin", "2026-10-25T00:30:17Z",
			[]string{"2026-10-25 01:59:59"}, []string{"2026-10-25 02:00:00", "2026-10-25 02:10:00", "2026-10-25 02:30:16"}},
		{"in the second pass of the repeated hour", "timestamp(0)", "Europe/Berlin", "2026-10-25T01:30:17Z",
			[]string{"2026-10-25 01:59:59", "2026-10-25 02:00:00", "2026-10-25 02:30:16"}, []string{"2026-10-25 02:30:17", "2026-10-25 03:00:00"}},
		{"after the skipped hour", "timestamp(0)", "Europe/Berlin", "2026-03-29T01:00:00Z",
			[]string{"2026-03-29 01:59:59", "2026-03-29 02:59:59"}, []string{"2026-03-29 03:00:00"}},
	}
	for _, c := range cases {
		for _, walk := range walks {
			t.Run(c.name+" "+walk.name, func(t *testing.T) {
				i := newInbox(t, c.columnType)
				for n, at := range append(append([]string{}, c.expired...), c.kept...) {
					i.exec(`INSERT INTO messenger_inbox VALUES ('orders', $1, '`+at+`')`, fmt.Sprint(n))
				}
				i.contract.TimeZone = c.zone
				i.pruneBefore(c.cutoff, walk.indexed)
				if left, kept := i.count(), i.number(`SELECT count(*) FROM messenger_inbox WHERE message_id::int >= $1`, len(c.expired)); left != int64(len(c.kept)) || kept != left {
					t.Errorf("%d records are left, %d of those that must stay; want %d", left, kept, len(c.kept))
				}
			})
		}
	}
}

// pruneBefore visits the whole table with a given cutoff, in a session whose own time zone
// must not matter.
func (i *inbox) pruneBefore(cutoff string, ordered bool) {
	i.t.Helper()
	ctx := context.Background()
	conn := i.connect(i.url)
	if _, err := conn.Exec(ctx, "SET TimeZone = 'Pacific/Auckland'"); err != nil {
		i.t.Fatal(err)
	}
	tab, err := preflight(ctx, conn, i.options())
	if err != nil {
		i.t.Fatal(err)
	}
	tab.ordered = ordered
	instant, err := time.Parse(time.RFC3339, cutoff)
	if err != nil {
		i.t.Fatal(err)
	}
	r := &run{options: i.options(), conn: conn, progress: func(Progress) {}, started: time.Now(),
		session: &session{conn: conn, pooled: true, lockTimeout: time.Second, statementTimeout: 10 * time.Second}}
	position := instant
	if tab.zoneless {
		if position, err = earliestReading(ctx, r.session, instant, tab.timeZone); err != nil {
			i.t.Fatal(err)
		}
	}
	w, err := r.newWalk(ctx, tab, cutoffAt(instant, position))
	if err != nil {
		i.t.Fatal(err)
	}
	if err := r.walk(ctx, w); err != nil || r.report.Result != ResultDone {
		i.t.Fatal(err, r.report)
	}
}

func cutoffAt(instant, position time.Time) cutoff {
	return cutoff{instant: instant, position: position}
}

func TestDefaultTimeZonesOfServerAndRoleDoNotMatter(t *testing.T) {
	i := newInbox(t, "timestamp(0) without time zone")
	i.contract.TimeZone = "Asia/Tokyo"
	i.exec(`ALTER DATABASE ` + pgx.Identifier{i.conn.Config().Database}.Sanitize() + ` SET TimeZone = 'America/Los_Angeles'`)
	i.exec(`INSERT INTO messenger_inbox VALUES ('orders', 'expired', (now() - interval '7 days 2 s') AT TIME ZONE 'Asia/Tokyo'), ('orders', 'kept', (now() - interval '6 days 23:59:30') AT TIME ZONE 'Asia/Tokyo')`)
	r := i.prune(i.options())
	i.expect(r, ResultDone, ReasonCompleted, 1)
	if i.number(`SELECT count(*) FROM messenger_inbox WHERE message_id = 'kept'`) != 1 {
		t.Error("the record inside the window is gone")
	}
	if age := time.Since(*r.OldestRemaining); age < week-time.Minute || age > week {
		t.Errorf("oldest remaining record is %s old, want just under a week", age)
	}
}
