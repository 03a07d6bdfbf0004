//go:build integration

package pruner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/messaginginbox/operator/test/postgres"

	"github.com/jackc/pgx/v5"
)

// waitingFor is a guard that knows these messages.
func waitingFor(ids ...string) func(context.Context) (Waiting, error) {
	return func(context.Context) (Waiting, error) { return Waiting{IDs: ids}, nil }
}

// expectHeld compares how many proofs were held, of which the oldest has a time.
func (i *inbox) expectHeld(r Report, count int64) {
	i.t.Helper()
	if r.Held == nil || *r.Held != count || (r.HeldSince != nil) != (count > 0) {
		i.t.Fatalf("held %s since %v, want %d", shown(r.Held), r.HeldSince, count)
	}
}

func shown(count *int64) string {
	if count == nil {
		return "an unknown number"
	}
	return fmt.Sprint(*count)
}

func TestAProofWhoseMessageStillWaitsIsKept(t *testing.T) {
	for _, walk := range walks {
		for _, columnType := range []string{"timestamptz", "timestamp(0) without time zone"} {
			t.Run(walk.name+", "+columnType, func(t *testing.T) { keepsWhatWaits(t, columnType, walk.indexed) })
		}
	}
}

func keepsWhatWaits(t *testing.T, columnType string, indexed bool) {
	t.Helper()
	i := newInbox(t, columnType)
	if !indexed {
		i.exec("DROP INDEX messenger_inbox_processed_at_idx")
	}
	i.exec(`INSERT INTO messenger_inbox SELECT 'orders', 'expired ' || n, now() - interval '8 days' - n * interval '1 minute' FROM generate_series(1, 7000) n`)
	i.exec(`INSERT INTO messenger_inbox VALUES ('orders', '0F9A-held', now() - interval '30 days'), ('payments', '0F9A-held', now() - interval '20 days'), ('orders', 'young', now() - interval '1 day')`)
	o := i.options()
	o.Waiting = waitingFor("0f9aheld", "expired 7", "young", "never handled")
	report := i.prune(o)
	i.expect(report, ResultDone, ReasonCompleted, 6999)
	i.expectHeld(report, 3)
	if age := time.Since(*report.HeldSince); age < 30*24*time.Hour-time.Minute || age > 30*24*time.Hour+2*time.Hour {
		t.Errorf("held since %s, want 30 days ago", report.HeldSince)
	}
	if indexed && !report.OldestRemaining.Equal(*report.HeldSince) {
		t.Errorf("the oldest remaining is of %s, want the held one's %s", report.OldestRemaining, report.HeldSince)
	}
	if !strings.Contains(report.Message, "kept 3 expired records") {
		t.Errorf("the message does not tell of them: %s", report.Message)
	}
	if left := i.count(); left != 4 {
		t.Errorf("%d records are left, want 4", left)
	}
	o.Waiting = waitingFor() // they were handled meanwhile
	report = i.prune(o)
	i.expect(report, ResultDone, ReasonCompleted, 3)
	i.expectHeld(report, 0)
}

func TestHeldProofsOfOneTimestampDoNotStopTheRun(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.exec(`INSERT INTO messenger_inbox SELECT 'orders', 'm' || n, date_trunc('second', now()) - interval '8 days' FROM generate_series(1, 500) n`)
	i.exec(`INSERT INTO messenger_inbox SELECT 'orders', 'later' || n, now() - interval '7 days 1 hour' FROM generate_series(1, 50) n`)
	var held []string
	for n := range 300 {
		held = append(held, fmt.Sprintf("m%d", n+1))
	}
	o := i.options()
	o.BatchSize, o.Waiting = 40, waitingFor(held...)
	report := i.prune(o)
	i.expect(report, ResultDone, ReasonCompleted, 250)
	i.expectHeld(report, 300)
	if left := i.count(); left != 300 {
		t.Errorf("%d are left, want 300", left)
	}
}

func TestADryRunDoesNotCountWhatIsHeld(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.exec(`INSERT INTO messenger_inbox SELECT 'orders', 'm' || n, now() - interval '8 days' FROM generate_series(1, 10) n`)
	o := i.options()
	o.DryRun, o.Waiting = true, waitingFor("m3")
	i.expect(i.prune(o), ResultDone, ReasonCompleted, 9)
}

// A message of another language waits in a queue that its inbox has no letters for.
func TestAnIdThatTheDatabaseCannotHoldHoldsNothing(t *testing.T) {
	server := postgres.Shared(t)
	const name = "held_latin1"
	for _, step := range [][2]string{
		{"postgres", `CREATE DATABASE ` + name + ` TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'`},
		{name, `CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL, processed_at timestamptz NOT NULL, PRIMARY KEY (transport, message_id))`},
		{name, `INSERT INTO messenger_inbox SELECT 'orders', id, now() - interval '8 days' FROM unnest(ARRAY['a', 'b', 'commande-' || chr(233)]) id`},
	} {
		if err := server.Exec(t.Context(), step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
	i := newInbox(t, "timestamptz")
	o := i.options()
	o.Waiting = waitingFor("b", "日本", "commande-é", "и")
	report, err := Prune(t.Context(), i.connect(server.URL(name)), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.RowsDeleted != 1 || report.Held == nil || *report.Held != 2 {
		t.Errorf("deleted %d, held %s, want 1 and 2", report.RowsDeleted, shown(report.Held))
	}
}

func TestNothingIsPrunedWhileTheWaitingMessagesAreNotKnown(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.exec(`INSERT INTO messenger_inbox VALUES ('orders', 'm', now() - interval '8 days')`)
	o := i.options()
	t.Run("because there are too many", func(t *testing.T) {
		o.Waiting = func(context.Context) (Waiting, error) { return Waiting{Refusal: "more than 100000 wait"}, nil }
		report := i.prune(o)
		i.expect(report, ResultRefused, ReasonMessagesWait, 0)
		if report.Held != nil {
			t.Errorf("%d proofs are held, though nobody compared them", *report.Held)
		}
		if report.Message != "more than 100000 wait" {
			t.Errorf("message %q", report.Message)
		}
	})
	t.Run("because a broker is down", func(t *testing.T) {
		o.Waiting = func(context.Context) (Waiting, error) { return Waiting{}, errors.New("redis is down") }
		report, err := Prune(t.Context(), i.connect(i.url), o, nil)
		if err == nil || report.Result != ResultFailed {
			t.Errorf("result %s, error %v", report.Result, err)
		}
	})
	if i.count() != 1 {
		t.Error("the record was deleted")
	}
}

func TestAHundredThousandWaitingMessagesAreCompared(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.exec(`INSERT INTO messenger_inbox SELECT 'orders', md5(n::text), now() - interval '8 days' - n * interval '1 millisecond' FROM generate_series(1, 300000) n`)
	i.exec(`ANALYZE messenger_inbox`)
	ids := make([]string, 0, 100_000)
	rows, err := i.conn.Query(t.Context(), `SELECT md5(n::text) FROM generate_series(299001, 399000) n`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err = pgx.AppendRows(ids, rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	o := i.options()
	o.Waiting = waitingFor(slices.Clip(ids)...)
	scans := `SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes WHERE indexrelname = 'messenger_inbox_pkey'`
	before := i.number(scans)
	conn := i.connect(i.url)
	report, err := Prune(t.Context(), conn, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err = conn.Close(t.Context()); err != nil { // hands in its statistics
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // the server's process ends after the client's
	i.expect(report, ResultDone, ReasonCompleted, 299_000)
	i.expectHeld(report, 1000)
	t.Logf("%.2f s, longest transaction %.3f s", report.DurationSeconds, report.LongestTransactionSeconds)
	if after := i.number(scans); after != before {
		t.Errorf("the unique key was scanned %d times: that spoils the count of skipped redeliveries", after-before)
	}
}

// Every slice leaves out what is held: were each to carry all of it, the run would not end.
func TestAHundredThousandProofsAreHeld(t *testing.T) {
	for _, walk := range walks {
		t.Run(walk.name, func(t *testing.T) {
			i := newInbox(t, "timestamptz")
			if !walk.indexed {
				i.exec("DROP INDEX messenger_inbox_processed_at_idx")
			}
			i.exec(`INSERT INTO messenger_inbox SELECT 'orders', md5(n::text), now() - interval '8 days' - n * interval '1 millisecond' FROM generate_series(1, 300000) n`)
			i.exec(`ANALYZE messenger_inbox`)
			rows, err := i.conn.Query(t.Context(), `SELECT md5((3 * n)::text) FROM generate_series(1, 100000) n`)
			if err != nil {
				t.Fatal(err)
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			o := i.options()
			o.Waiting = waitingFor(ids...)
			report := i.prune(o)
			i.expect(report, ResultDone, ReasonCompleted, 200_000)
			i.expectHeld(report, 100_000)
			if left := i.number(`SELECT count(*) FROM messenger_inbox m JOIN (SELECT md5((3 * n)::text) AS id FROM generate_series(1, 100000) n) held ON held.id = m.message_id`); left != 100_000 {
				t.Errorf("%d of the held proofs are left, want all 100000", left)
			}
			if report.DurationSeconds > 60 {
				t.Errorf("it took %.1f s, want a minute at most", report.DurationSeconds)
			}
			t.Logf("%.2f s, %d slices, longest transaction %.3f s", report.DurationSeconds, report.Slices, report.LongestTransactionSeconds)
		})
	}
}
