//go:build integration

package pruner

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestRunRefusesBeforeItTouchesAnything(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.fill(100, week+time.Hour)
	i.exec("CREATE VIEW a_view AS SELECT * FROM messenger_inbox")
	i.exec("CREATE TABLE no_key (LIKE messenger_inbox)")
	i.exec("CREATE TABLE naive (LIKE messenger_inbox INCLUDING INDEXES)")
	i.exec("ALTER TABLE naive ALTER processed_at TYPE timestamp")
	cases := []struct {
		name   string
		change func(*Options)
		reason string
		says   string
	}{
		{"retention one nanosecond below the window", func(o *Options) { o.Required = week + 1 }, ReasonTooShort, "168h0m0.000000001s"},
		{"retention of 0", func(o *Options) { o.Retention, o.Required = 0, 0 }, ReasonRetentionZero, "every proof"},
		{"negative retention", func(o *Options) { o.Retention, o.Required = -time.Hour, -time.Hour }, ReasonRetentionZero, "-1h"},
		{"negative window", func(o *Options) { o.Required = -1 }, ReasonInvalidOptions, "negative"},
		{"batch of 0", func(o *Options) { o.BatchSize = 0 }, ReasonInvalidOptions, "at least 1"},
		{"no time", func(o *Options) { o.MaxDuration = 0 }, ReasonInvalidOptions, "must be positive"},
		{"a view", func(o *Options) { o.Contract.Table = "a_view" }, dbschema.ReasonNotATable, "view"},
		{"a table without the unique key", func(o *Options) { o.Contract.Table = "no_key" }, dbschema.ReasonUniqueKeyMissing, "no_key"},
		{"no table", func(o *Options) { o.Contract.Table = "nothing" }, dbschema.ReasonTableMissing, "nothing"},
		{"another column", func(o *Options) { o.Contract.ProcessedAt = "handled_at" }, dbschema.ReasonColumnMissing, "handled_at"},
		{"an unknown time zone", func(o *Options) { o.Contract.Table, o.Contract.TimeZone = "naive", "Europe/Bielefeld" }, dbschema.ReasonInvalidTimeZone, "Europe/Bielefeld"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := i.options()
			c.change(&o)
			r := i.prune(o)
			i.expect(r, ResultRefused, c.reason, 0)
			if !strings.Contains(r.Message, c.says) {
				t.Errorf("message %q does not say %q", r.Message, c.says)
			}
			if left := i.count(); left != 100 {
				t.Errorf("%d records are left, want all 100", left)
			}
		})
	}
}

// role creates a role that can only log in, and returns its URL.
func (i *inbox) role(privileges string) string {
	i.t.Helper()
	name := "r_" + i.conn.Config().Database
	quoted := pgx.Identifier{name}.Sanitize()
	i.exec("CREATE ROLE " + quoted + " LOGIN PASSWORD 'secret'")
	i.t.Cleanup(func() {
		i.exec("DROP OWNED BY " + quoted)
		i.exec("DROP ROLE " + quoted)
	})
	i.exec("GRANT " + privileges + " ON messenger_inbox TO " + quoted)
	return postgres.Shared(i.t).URLFor(name, "secret", i.conn.Config().Database)
}

func TestRoleWithSelectAndDeleteIsEnough(t *testing.T) {
	for _, walk := range walks {
		t.Run(walk.name, func(t *testing.T) {
			i := newInbox(t, "timestamp(0) without time zone")
			if !walk.indexed {
				i.exec("DROP INDEX messenger_inbox_processed_at_idx")
			}
			i.fill(1000, week+time.Hour)
			i.url = i.role("SELECT, DELETE")
			i.expect(i.prune(i.options()), ResultDone, ReasonCompleted, 1000)
		})
	}
}

func TestMissingPrivilegeIsNamed(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.url = i.role("SELECT")
	r := i.prune(i.options())
	i.expect(r, ResultRefused, database.ReasonPermissionDenied, 0)
	if !strings.Contains(r.Message, "lacks DELETE on") || !strings.Contains(r.Message, `GRANT SELECT, DELETE ON "public"."messenger_inbox" TO "r_`) {
		t.Errorf("message: %s", r.Message)
	}
}

func TestReadOnlyTargetIsRefused(t *testing.T) {
	i := newInbox(t, "timestamptz")
	t.Run("a replica", func(t *testing.T) {
		replica := startReplica(t)
		conn := i.connect(replica.URL(i.conn.Config().Database))
		r, err := Prune(context.Background(), conn, i.options(), nil)
		if err != nil {
			t.Fatal(err)
		}
		i.expect(r, ResultRefused, database.ReasonReadOnly, 0)
		if !strings.Contains(r.Message, "replica") {
			t.Errorf("message: %s", r.Message)
		}
	})
	t.Run("a role that is read-only by default", func(*testing.T) {
		i.url = i.role("SELECT, DELETE")
		i.exec("ALTER ROLE " + pgx.Identifier{"r_" + i.conn.Config().Database}.Sanitize() + " SET default_transaction_read_only = on")
		i.expect(i.prune(i.options()), ResultRefused, database.ReasonReadOnly, 0)
	})
}

func startReplica(t *testing.T) *postgres.Server {
	t.Helper()
	replica, err := postgres.Shared(t).Replica(context.Background(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := replica.Stop(); err != nil {
			t.Error(err)
		}
	})
	return replica
}

func TestRunWaitsForAReplicaThatIsBehind(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.fill(3000, week+time.Hour)
	replica := startReplica(t)
	follower := i.connect(replica.URL("postgres"))
	execOn(t, follower, "SELECT pg_wal_replay_pause()")
	o := i.options()
	o.BatchSize, o.MaxReplicaLag, o.MaxDuration = 200, 500*time.Millisecond, 4*time.Second
	o.Pace = 300 * time.Millisecond
	r := i.prune(o)
	if r.Result != ResultTimeLimit || r.Reason != ReasonReplicaLag || r.YieldedSeconds < 1 {
		t.Errorf("beside a paused replica: %+v", r)
	}
	execLater(t, time.Second, follower, "SELECT pg_wal_replay_resume()")
	o.MaxDuration = time.Minute
	if r = i.prune(o); r.Result != ResultDone {
		t.Errorf("after the replica went on: %+v", r)
	}

	i.url = i.role("SELECT, DELETE")
	r = i.prune(o)
	i.expect(r, ResultRefused, database.ReasonPermissionDenied, 0)
	if !strings.Contains(r.Message, "pg_monitor") {
		t.Errorf("message: %s", r.Message)
	}
}

func execOn(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// execLater runs the statement after a while, before the end of the test.
func execLater(t *testing.T, after time.Duration, conn *pgx.Conn, statement string) {
	t.Helper()
	done := make(chan error, 1)
	time.AfterFunc(after, func() {
		_, err := conn.Exec(context.Background(), statement)
		done <- err
	})
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	})
}

func TestLockedRecordsStayAndTheOthersGo(t *testing.T) {
	for _, walk := range walks {
		t.Run(walk.name, func(t *testing.T) {
			i := newInbox(t, "timestamptz")
			if !walk.indexed {
				i.exec("DROP INDEX messenger_inbox_processed_at_idx")
			}
			i.fill(8000, week+time.Hour)
			worker := i.connect(i.url)
			execOn(t, worker, "BEGIN")
			execOn(t, worker, "SELECT 1 FROM (SELECT * FROM messenger_inbox ORDER BY processed_at LIMIT 3 OFFSET 4000) old, messenger_inbox i WHERE i.message_id = old.message_id FOR UPDATE OF i")
			o := i.options()
			r := i.prune(o)
			left := i.count()
			if r.Result != ResultTimeLimit || r.Reason != ReasonRecordsLocked || left < 3 || left > 600 || r.RowsDeleted != 8000-left {
				t.Errorf("with three locked records %d are left: %+v", left, r)
			}
			execOn(t, worker, "COMMIT")
			i.expect(i.prune(o), ResultDone, ReasonCompleted, left)
		})
	}
}

func TestRunTakesUpRecordsThatWereLockedForAMoment(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.fill(20000, week+time.Hour)
	worker := i.connect(i.url)
	execOn(t, worker, "BEGIN")
	execOn(t, worker, "SELECT 1 FROM messenger_inbox ORDER BY processed_at LIMIT 2 FOR UPDATE")
	execLater(t, 700*time.Millisecond, worker, "COMMIT")
	o := i.options()
	o.BatchSize, o.Pace = 500, 50*time.Millisecond
	i.expect(i.prune(o), ResultDone, ReasonCompleted, 20000)
}

func TestLockOnTheTableIsWaitedFor(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.fill(1000, week+time.Hour)
	worker := i.connect(i.url)
	conn := i.connect(i.url)
	locked := false
	r, err := Prune(context.Background(), conn, func() Options { o := i.options(); o.BatchSize = 100; return o }(), func(p Progress) {
		if !locked && p.RowsDeleted >= 300 {
			locked = true
			execOn(t, worker, "BEGIN")
			execOn(t, worker, "LOCK TABLE messenger_inbox IN ACCESS EXCLUSIVE MODE")
			execLater(t, time.Second, worker, "COMMIT")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	i.expect(r, ResultDone, ReasonCompleted, 1000)
	if r.Retries == 0 {
		t.Error("the run did not meet the lock")
	}
}

func TestRecordThatATriggerKeepsDoesNotStopTheRun(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.exec("INSERT INTO messenger_inbox SELECT 'orders', n::text, '2026-01-01' FROM generate_series(1, 500) n")
	i.exec("INSERT INTO messenger_inbox SELECT 'mails', n::text, '2026-01-02' FROM generate_series(1, 50) n")
	i.exec(`CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN CASE WHEN OLD.transport = ''mails'' THEN OLD END; END'`)
	i.exec("CREATE TRIGGER keep BEFORE DELETE ON messenger_inbox FOR EACH ROW EXECUTE FUNCTION keep()")
	o := i.options()
	o.BatchSize = 100
	i.expect(i.prune(o), ResultTimeLimit, ReasonRecordsLocked, 50)
}

func TestStatementTimeoutMakesSlicesSmaller(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.fill(600, week+time.Hour)
	i.exec(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.002); RETURN OLD; END'`)
	i.exec("CREATE TRIGGER slow BEFORE DELETE ON messenger_inbox FOR EACH ROW EXECUTE FUNCTION slow()")
	o := i.options()
	o.StatementTimeout = 500 * time.Millisecond
	r := i.prune(o)
	i.expect(r, ResultDone, ReasonCompleted, 600)
	if r.Retries == 0 || r.Slices < 8 {
		t.Errorf("%d retries, %d slices", r.Retries, r.Slices)
	}
}

func TestClockSetBackEndsTheRun(t *testing.T) {
	i := newInbox(t, "timestamptz")
	db := &session{conn: i.connect(i.url), lockTimeout: time.Second, statementTimeout: time.Second, earliest: time.Now().Add(time.Minute)}
	var one int64
	err := db.read(context.Background(), &one, "SELECT 1::bigint")
	r, err := (&run{started: time.Now(), options: i.options()}).conclude(context.Background(), err)
	if err != nil || r.Result != ResultRefused || r.Reason != ReasonClockMovedBack {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestSerializationFailuresAreRetried(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.exec("ALTER DATABASE " + pgx.Identifier{i.conn.Config().Database}.Sanitize() + " SET default_transaction_isolation = 'serializable'")
	i.fill(20000, week+time.Hour)
	done := make(chan struct{})
	other := i.connect(i.url)
	go func() {
		defer close(done)
		for n := range 200 {
			// A rival that deletes what the run is about to delete.
			_, _ = other.Exec(context.Background(), "DELETE FROM messenger_inbox WHERE processed_at = (SELECT processed_at FROM messenger_inbox ORDER BY processed_at OFFSET $1 LIMIT 1)", n*7%500)
		}
	}()
	o := i.options()
	o.BatchSize, o.Pace = 200, time.Millisecond
	r := i.prune(o)
	<-done
	if left := i.count(); r.Result != ResultDone || left != 0 {
		t.Errorf("%d records are left: %+v", left, r)
	}
}
