//go:build integration

package tablestats

import (
	"context"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m, postgres.Options{})) }

var contract = dbschema.Contract{
	Schema: "public", Table: "messenger_inbox",
	Transport: "transport", MessageID: "message_id", ProcessedAt: "processed_at", TimeZone: "UTC",
}

// Autovacuum would recount the rows whenever it likes; the tests say when.
const table = `CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL,
	processed_at timestamp(0) NOT NULL, PRIMARY KEY (transport, message_id)) WITH (autovacuum_enabled = off);
	CREATE INDEX ON messenger_inbox (processed_at)`

// watched is a table, and the history of looks at it.
type watched struct {
	t        *testing.T
	url      string
	operator *pgx.Conn
	history  *History
}

func watch(t *testing.T, statements string) *watched {
	t.Helper()
	w := &watched{t: t, url: postgres.Shared(t).NewDatabase(t)}
	w.operator = w.connect()
	w.session(func(run func(string, ...any)) { run(statements) })
	w.look(0)
	return w
}

func (w *watched) connect() *pgx.Conn {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// session runs statements in a session of their own, which reports to the statistics
// when it ends.
func (w *watched) session(statements func(run func(sql string, arguments ...any))) {
	w.t.Helper()
	conn := w.connect()
	statements(func(sql string, arguments ...any) {
		// The simple protocol takes several statements at once, and errors are part of the play.
		_, _ = conn.Exec(w.t.Context(), sql, append([]any{pgx.QueryExecModeSimpleProtocol}, arguments...)...)
	})
	if err := conn.Close(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.gone(conn.PgConn().PID())
}

// gone waits until the server has ended a session: only then are its numbers in.
func (w *watched) gone(pid uint32) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var left bool
		if err := w.operator.QueryRow(w.t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", int64(pid)).Scan(&left); err != nil {
			w.t.Fatal(err)
		}
		if !left {
			return
		}
	}
	w.t.Fatal("a session did not end")
}

func (w *watched) counters() Counters {
	w.t.Helper()
	counters, err := ReadCounters(w.t.Context(), w.operator, contract, w.observed())
	if err != nil {
		w.t.Fatal(err)
	}
	return counters
}

func (w *watched) observed() dbschema.Observed {
	w.t.Helper()
	observed, err := dbschema.Inspect(w.t.Context(), w.operator, contract)
	if err != nil {
		w.t.Fatal(err)
	}
	return observed
}

// look adds a look to the history, as the reconciler does when the operator has
// deleted so many rows.
func (w *watched) look(pruned int64) *History {
	w.t.Helper()
	ages, err := Measure(w.t.Context(), w.operator, contract, w.observed())
	if err != nil {
		w.t.Fatal(err)
	}
	w.history = Advance(w.history, Sample{
		Counters: w.counters(), Ages: ages, Quiet: true, Pruned: pruned, PrunedKnown: true, Retention: 14 * day,
	})
	return w.history
}

// The operator looks every few minutes: its own looks must leave no trace in what it reads.
func TestLookingLeavesTheIndexStatisticsAlone(t *testing.T) {
	w := watch(t, table+"; INSERT INTO messenger_inbox SELECT 'orders', n::text, now() - n * interval '1 minute' FROM generate_series(1, 5000) n; ANALYZE messenger_inbox")
	before := w.counters()
	pid := w.operator.PgConn().PID()
	for range 20 {
		w.look(0)
	}
	if err := w.operator.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.operator = w.connect()
	w.gone(pid)
	if after := w.counters(); after.IndexScans != before.IndexScans || after.IndexReads != before.IndexReads {
		t.Errorf("scans %d -> %d, reads %d -> %d", before.IndexScans, after.IndexScans, before.IndexReads, after.IndexReads)
	}
}

func TestDeletionsByOthers(t *testing.T) {
	w := watch(t, table+"; INSERT INTO messenger_inbox SELECT 'orders', n::text, now() AT TIME ZONE 'utc' - n * interval '1 hour' + interval '1 minute' FROM generate_series(0, 400) n")
	w.session(func(run func(string, ...any)) {
		run("DELETE FROM messenger_inbox WHERE processed_at < now() AT TIME ZONE 'utc' - interval '14 days'")
	})
	history := w.look(64)
	if history.ForeignDeletes != 0 || history.Vanished != nil {
		t.Errorf("after the operator's own run: %d foreign deletions, vanished %+v", history.ForeignDeletes, history.Vanished)
	}
	w.session(func(run func(string, ...any)) {
		run("DELETE FROM messenger_inbox WHERE processed_at < now() AT TIME ZONE 'utc' - interval '7 days'")
	})
	history = w.look(64)
	if history.ForeignDeletes < 167 || history.ForeignDeletes > 169 {
		t.Errorf("%d foreign deletions, want the 168 of the second week", history.ForeignDeletes)
	}
	if history.Vanished != nil {
		t.Errorf("records at the very end of their retention are no finding: %+v", history.Vanished)
	}
	w.session(func(run func(string, ...any)) {
		run("DELETE FROM messenger_inbox WHERE processed_at < now() AT TIME ZONE 'utc' - interval '3 days'")
	})
	history = w.look(64)
	if history.Vanished == nil || history.Vanished.Age < 7*day-2*time.Hour || history.Vanished.Age > 7*day+time.Hour {
		t.Errorf("vanished = %+v, want records of a week", history.Vanished)
	}
	w.session(func(run func(string, ...any)) { run("TRUNCATE messenger_inbox") })
	history = w.look(64)
	if history.Vanished == nil || history.Vanished.Age > 3*day+time.Hour {
		t.Errorf("after TRUNCATE vanished = %+v, want records of at most three days", history.Vanished)
	}
}

func TestSizesBloatAndVacuum(t *testing.T) {
	w := watch(t, table)
	if c := w.counters(); c.LastVacuum != nil || c.Live != 0 {
		t.Errorf("a new table: %+v", c)
	}
	w.session(func(run func(string, ...any)) {
		run("INSERT INTO messenger_inbox SELECT 'orders', md5(n::text), now() FROM generate_series(1, 50000) n")
	})
	w.session(func(run func(string, ...any)) { run("VACUUM ANALYZE messenger_inbox") })
	full := w.counters()
	if full.Live != 50_000 || full.Dead != 0 || full.LastVacuum == nil || full.IndexBytes == 0 {
		t.Errorf("a full table: %+v", full)
	}
	mustAddUp(t, full, "messenger_inbox_pkey", "messenger_inbox_processed_at_idx")
	if full.Indexes[0].Bytes <= full.Indexes[1].Bytes {
		t.Errorf("the index of 50,000 hashes is not larger than that of one time: %+v", full.Indexes)
	}
	if bloat := full.Bloat(); bloat == nil || *bloat > full.HeapBytes/10 {
		t.Errorf("a full table of %d bytes has a bloat of %v", full.HeapBytes, valueOr(bloat))
	}
	w.session(func(run func(string, ...any)) { run("DELETE FROM messenger_inbox WHERE message_id < '8'") })
	half := w.counters()
	if half.Dead+half.Live != 50_000 || half.Dead < 20_000 {
		t.Errorf("half a table: %+v", half)
	}
	if bloat := half.Bloat(); bloat == nil || *bloat < half.HeapBytes*4/10 || *bloat > half.HeapBytes*6/10 {
		t.Errorf("half a table of %d bytes has a bloat of %v", half.HeapBytes, valueOr(bloat))
	}
}

// mustAddUp compares the sizes of the named indexes with that of all of them.
func mustAddUp(t *testing.T, c Counters, names ...string) {
	t.Helper()
	var found []string
	var sum int64
	for _, index := range c.Indexes {
		found, sum = append(found, index.Name), sum+index.Bytes
	}
	if !slices.Equal(found, names) || sum != c.IndexBytes || sum == 0 {
		t.Fatalf("the indexes %+v do not add up to the %d bytes of %q", c.Indexes, c.IndexBytes, names)
	}
}

func TestPartitionsAreSummedUp(t *testing.T) {
	w := watch(t, `CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL, processed_at timestamp(0) NOT NULL,
		PRIMARY KEY (transport, message_id)) PARTITION BY HASH (transport, message_id);
		CREATE INDEX ON messenger_inbox (processed_at);
		CREATE TABLE part_0 PARTITION OF messenger_inbox FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE part_1 PARTITION OF messenger_inbox FOR VALUES WITH (MODULUS 2, REMAINDER 1)`)
	w.session(func(run func(string, ...any)) {
		run("INSERT INTO messenger_inbox SELECT 'orders', n::text, now() FROM generate_series(1, 1000) n")
		run("INSERT INTO messenger_inbox SELECT 'orders', n::text, now() FROM generate_series(1, 100) n ON CONFLICT DO NOTHING")
	})
	history := w.look(0)
	mustAddUp(t, history.Last, "messenger_inbox_pkey", "messenger_inbox_processed_at_idx")
	if history.Last.Inserted != 1000 || history.Last.Live != 1000 || history.Skips != 100 {
		t.Errorf("inserted %d, live %d, skips %d", history.Last.Inserted, history.Last.Live, history.Skips)
	}
}

func TestWithoutABtreeOnTheTimestampNothingIsRead(t *testing.T) {
	w := watch(t, `CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL, processed_at timestamptz NOT NULL,
		PRIMARY KEY (transport, message_id)); CREATE INDEX ON messenger_inbox USING brin (processed_at);
		INSERT INTO messenger_inbox VALUES ('orders', '1', now())`)
	ages, err := Measure(t.Context(), w.operator, contract, w.observed())
	if err != nil || ages.Known || ages.Oldest != nil {
		t.Errorf("ages = %+v, %v", ages, err)
	}
	w.session(func(run func(string, ...any)) { run("CREATE INDEX ON messenger_inbox (processed_at)") })
	if ages, err = Measure(t.Context(), w.operator, contract, w.observed()); err != nil || !ages.Known || ages.Oldest == nil {
		t.Errorf("ages = %+v, %v", ages, err)
	}
	w.session(func(run func(string, ...any)) { run("INSERT INTO messenger_inbox VALUES ('orders', '2', '-infinity')") })
	if ages, err = Measure(t.Context(), w.operator, contract, w.observed()); err != nil || ages.Known {
		t.Errorf("with a record at -infinity: ages = %+v, %v", ages, err)
	}
}

func TestARoleThatMayOnlySelectSeesTheSameNumbers(t *testing.T) {
	w := watch(t, table+"; INSERT INTO messenger_inbox SELECT 'orders', n::text, now() FROM generate_series(1, 100) n; ANALYZE messenger_inbox")
	w.session(func(run func(string, ...any)) {
		run("DROP ROLE IF EXISTS observer; CREATE ROLE observer; GRANT SELECT ON messenger_inbox TO observer")
	})
	want := w.counters()
	if _, err := w.operator.Exec(t.Context(), "SET ROLE observer"); err != nil {
		t.Fatal(err)
	}
	got := w.counters()
	if _, err := w.operator.Exec(t.Context(), "RESET ROLE; DROP OWNED BY observer; DROP ROLE observer"); err != nil {
		t.Fatal(err)
	}
	want.Clock = got.Clock
	if want.Inserted != 100 || want.NeededHeapBytes == nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the observer sees %+v, the owner %+v", got, want)
	}
}

// BenchmarkLook is what one look costs the database and the manager.
func BenchmarkLook(b *testing.B) {
	conn, err := pgx.Connect(b.Context(), postgres.Shared(b).NewDatabase(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err = conn.Exec(b.Context(), table+"; INSERT INTO messenger_inbox SELECT 'orders', md5(n::text), now() - n * interval '1 second' FROM generate_series(1, 500000) n; ANALYZE messenger_inbox"); err != nil {
		b.Fatal(err)
	}
	observed, err := dbschema.Inspect(b.Context(), conn, contract)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Measure(b.Context(), conn, contract, observed); err != nil {
			b.Fatal(err)
		}
		if _, err := ReadCounters(b.Context(), conn, contract, observed); err != nil {
			b.Fatal(err)
		}
	}
}
