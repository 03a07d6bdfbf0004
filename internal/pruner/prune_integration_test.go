//go:build integration

package pruner

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// walks are the two ways through a table.
var walks = []struct {
	name    string
	indexed bool
}{{"with an index on the timestamp", true}, {"without one", false}}

func TestExactlyTheExpiredRecordsGo(t *testing.T) {
	for _, walk := range walks {
		for _, columnType := range []string{"timestamptz", "timestamp(0) without time zone", "timestamp(6) without time zone"} {
			t.Run(walk.name+", "+columnType, func(t *testing.T) {
				i := newInbox(t, columnType)
				if !walk.indexed {
					i.exec("DROP INDEX messenger_inbox_processed_at_idx")
				}
				i.exec(`INSERT INTO messenger_inbox SELECT 'orders', 'expired ' || n, now() - interval '7 days 2 seconds' - n * interval '1 minute' FROM generate_series(0, 12344) n`)
				i.exec(`INSERT INTO messenger_inbox SELECT 'orders', 'kept ' || n, now() - interval '6 days 23:59' + n * interval '1 minute' FROM generate_series(0, 3000) n`)
				i.exec(`INSERT INTO messenger_inbox VALUES ('orders', 'kept for ever', 'infinity'), ('orders', 'kept too', '-infinity'), ('orders', 'kept as well', now() + interval '1 year')`)
				i.expect(i.prune(i.options()), ResultDone, ReasonCompleted, 12345)
				if expired, kept := i.number(`SELECT count(*) FROM messenger_inbox WHERE message_id LIKE 'expired%'`), i.count(); expired != 0 || kept != 3004 {
					t.Errorf("%d expired records of %d are left, want 0 of 3004", expired, kept)
				}
				i.expect(i.prune(i.options()), ResultDone, ReasonCompleted, 0)
			})
		}
	}
}

func TestDryRunCountsAndDeletesNothing(t *testing.T) {
	for _, walk := range walks {
		t.Run(walk.name, func(t *testing.T) {
			i := newInbox(t, "timestamp(0) without time zone")
			i.fill(20000, 0)
			i.exec(`INSERT INTO messenger_inbox SELECT 'orders', 'same ' || n, '2020-01-01' FROM generate_series(1, 777) n`)
			if !walk.indexed {
				i.exec("DROP INDEX messenger_inbox_processed_at_idx")
			}
			o := i.options()
			o.DryRun, o.BatchSize = true, 100
			dry := i.prune(o)
			if left := i.count(); left != 20777 || !dry.DryRun || dry.Result != ResultDone {
				t.Errorf("%d records are left after the dry run %+v", left, dry)
			}
			o.DryRun = false
			// A second or two may pass between the runs: a record per minute expires.
			if wet := i.prune(o); wet.RowsDeleted < dry.RowsDeleted || wet.RowsDeleted > dry.RowsDeleted+2 || dry.RowsDeleted < 10000 {
				t.Errorf("dry run counted %d, the run deleted %d", dry.RowsDeleted, wet.RowsDeleted)
			}
		})
	}
}

func TestTimeLimitLeavesWorkForTheNextRun(t *testing.T) {
	for _, walk := range walks {
		t.Run(walk.name, func(t *testing.T) {
			i := newInbox(t, "timestamptz")
			i.fill(5000, week+time.Hour)
			if !walk.indexed {
				i.exec("DROP INDEX messenger_inbox_processed_at_idx")
			}
			o := i.options()
			o.BatchSize, o.Pace, o.MaxDuration = 100, 50*time.Millisecond, 300*time.Millisecond
			first := i.prune(o)
			if first.Result != ResultTimeLimit || first.Reason != ReasonTimeLimit || first.RowsDeleted == 0 || first.RowsDeleted == 5000 {
				t.Errorf("first run: %+v", first)
			}
			o = i.options()
			i.expect(i.prune(o), ResultDone, ReasonCompleted, 5000-first.RowsDeleted)
		})
	}
}

func TestStoppedRunFinishesItsSlice(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.fill(5000, week+time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	o := i.options()
	o.BatchSize = 500
	conn := i.connect(i.url)
	r, err := Prune(ctx, conn, o, func(p Progress) {
		if p.RowsDeleted >= 1500 {
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	i.expect(r, ResultTimeLimit, ReasonInterrupted, 1500)
	if conn.IsClosed() || i.count() != 3500 {
		t.Errorf("connection closed: %v, %d records left, want 3500", conn.IsClosed(), i.count())
	}
}

func TestKilledRunHasDeletedOnlyExpiredRecords(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.fill(30000, week+time.Hour)
	i.exec(`INSERT INTO messenger_inbox SELECT 'mails', n::text, now() - interval '6 days 23 hours' FROM generate_series(1, 1000) n`)
	for attempt := range 8 {
		conn := i.connect(i.url)
		pid := conn.PgConn().PID()
		o := i.options()
		o.BatchSize = 200
		timer := time.AfterFunc(time.Duration(3+attempt*7)*time.Millisecond, func() {
			if other, err := pgx.Connect(context.Background(), i.url); err == nil {
				_, _ = other.Exec(context.Background(), "SELECT pg_terminate_backend($1)", pid)
				_ = other.Close(context.Background())
			}
		})
		before := i.count()
		r, err := Prune(context.Background(), conn, o, nil)
		timer.Stop()
		if (err != nil) != (r.Result == ResultFailed) {
			t.Fatalf("result %s with error %v", r.Result, err)
		}
		if deleted := before - i.count(); r.Result == ResultFailed && (deleted < r.RowsDeleted || deleted > r.RowsDeleted+200) {
			t.Errorf("%d records went, the report says %d: %s", deleted, r.RowsDeleted, r.Message)
		}
	}
	if r := i.prune(i.options()); r.Result != ResultDone {
		t.Errorf("the run after the killed ones: %+v", r)
	}
	if kept := i.count(); kept != 1000 {
		t.Errorf("%d records are left, want the 1000 inside the window", kept)
	}
}

func TestSecondRunAtOnceIsRefused(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.fill(2000, week+time.Hour)
	o := i.options()
	o.BatchSize = 1000
	refused := false
	r, err := Prune(context.Background(), i.connect(i.url), o, func(Progress) {
		if !refused {
			refused = true
			i.expect(i.prune(o), ResultRefused, ReasonAlreadyRunning, 0)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	i.expect(r, ResultDone, ReasonCompleted, 2000)
	i.expect(i.prune(o), ResultDone, ReasonCompleted, 0) // the lock was given back
}

func TestEqualTimestampsFarAboveTheBatch(t *testing.T) {
	i := newInbox(t, "timestamp(0) without time zone")
	i.exec(`INSERT INTO messenger_inbox SELECT 'orders', n::text, '2026-01-01' FROM generate_series(1, 60000) n`)
	i.exec(`INSERT INTO messenger_inbox SELECT 'mails', n::text, timestamp '2026-01-01' + (n - 50) * interval '1 second' FROM generate_series(1, 100) n`)
	o := i.options()
	o.BatchSize = 1000
	r := i.prune(o)
	i.expect(r, ResultDone, ReasonCompleted, 60100)
	if r.Slices < 60 {
		t.Errorf("%d slices for 60100 records in batches of 1000", r.Slices)
	}
}

func TestBatchOfOne(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.fill(50, week+time.Hour)
	i.exec(`INSERT INTO messenger_inbox SELECT 'mails', n::text, '2026-01-01' FROM generate_series(1, 20) n`)
	o := i.options()
	o.BatchSize = 1
	i.expect(i.prune(o), ResultDone, ReasonCompleted, 70)
}

func TestEmptyTable(t *testing.T) {
	i := newInbox(t, "timestamptz")
	r := i.prune(i.options())
	i.expect(r, ResultDone, ReasonCompleted, 0)
	if r.OldestRemaining != nil || r.Cutoff == nil {
		t.Errorf("report of an empty table: %+v", r)
	}
	i.exec("DROP INDEX messenger_inbox_processed_at_idx")
	i.expect(i.prune(i.options()), ResultDone, ReasonCompleted, 0)
}

func TestPagesByListForServersWithoutRangeScan(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.fill(9000, 0)
	conn := i.connect(i.url)
	tab, err := preflight(context.Background(), conn, i.options())
	if err != nil {
		t.Fatal(err)
	}
	tab.ordered, tab.pageRange = false, pageRangeByList
	expired := i.number(`SELECT count(*) FROM messenger_inbox WHERE processed_at < now() - interval '7 days'`)
	db := &session{conn: conn, lockTimeout: time.Second, statementTimeout: 10 * time.Second}
	w, err := newHeapWalk(context.Background(), db, tab, time.Now().Add(-week), false)
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for !w.finished() {
		n, err := w.step(context.Background(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		rows += n
	}
	if rows < expired || rows > expired+1 {
		t.Errorf("%d of %d expired records were deleted", rows, expired)
	}
}

func TestPartitionedTable(t *testing.T) {
	for _, walk := range walks {
		t.Run(walk.name, func(t *testing.T) {
			i := newInbox(t, "timestamptz")
			i.exec("DROP TABLE messenger_inbox")
			i.exec(`CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL, processed_at timestamptz NOT NULL,
				PRIMARY KEY (transport, message_id)) PARTITION BY HASH (message_id)`)
			for n := range 3 {
				i.exec(fmt.Sprintf(`CREATE TABLE part%d PARTITION OF messenger_inbox FOR VALUES WITH (MODULUS 3, REMAINDER %d)`, n, n))
			}
			if walk.indexed {
				i.exec("CREATE INDEX ON messenger_inbox (processed_at)")
			}
			i.fill(9000, week+time.Hour)
			i.exec(`INSERT INTO messenger_inbox SELECT 'mails', n::text, now() - interval '6 days' FROM generate_series(1, 500) n`)
			i.expect(i.prune(i.options()), ResultDone, ReasonCompleted, 9000)
			if left := i.count(); left != 500 {
				t.Errorf("%d records are left, want 500", left)
			}
		})
	}
}

func TestWeirdIdentifiers(t *testing.T) {
	c := defaultContract
	c.Schema, c.Table, c.ProcessedAt, c.MessageID, c.Transport = `Sch"ema`, `in'box; DROP TABLE {time}`, `{table} "at" ž`, "id $1", "прт"
	i := newInboxOf(t, c, "timestamptz")
	i.fill(300, week+time.Hour)
	i.expect(i.prune(i.options()), ResultDone, ReasonCompleted, 300)
}

func TestConcurrentInsertsAreNeverLost(t *testing.T) {
	i := newInbox(t, "timestamp(0) without time zone")
	i.fill(60000, week+time.Hour)
	latencies := insertWhile(i, func() {
		o := i.options()
		o.Pace = 10 * time.Millisecond
		i.expect(i.prune(o), ResultDone, ReasonCompleted, 60000)
	})
	if left := i.count(); left != int64(len(latencies)) || left == 0 {
		t.Errorf("%d records are left of %d inserted", left, len(latencies))
	}
}

func TestFutureRecordIsReported(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.exec(`INSERT INTO messenger_inbox VALUES ('orders', 'ahead', now() + interval '2 hours')`)
	if r := i.prune(i.options()); !strings.Contains(r.Message, "2h0m0s ahead of the database's clock") {
		t.Errorf("message: %s", r.Message)
	}
}

func TestReportIsOneSmallObject(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.fill(10, week+time.Hour)
	encoded, err := i.prune(i.options()).JSON()
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(encoded, &object); err != nil || object["result"] != "Done" || object["rowsDeleted"] != 10.0 || object["cutoff"] == nil {
		t.Errorf("%v: %s", err, encoded)
	}
}
