//go:build integration

package drill_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/drill"
	"github.com/messaginginbox/operator/test/pgbouncer"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestContractIsProvenOnEveryTableThatKeepsIt(t *testing.T) {
	for name, statements := range map[string][]string{
		"as Doctrine makes it": {table},
		"with a time zone":     {`CREATE TABLE messenger_inbox (transport text NOT NULL, message_id text NOT NULL, processed_at timestamptz NOT NULL, UNIQUE (message_id, transport))`},
		"with uuid and char":   {`CREATE TABLE messenger_inbox (transport char(190) NOT NULL, message_id uuid NOT NULL, processed_at timestamp NOT NULL, PRIMARY KEY (transport, message_id))`},
		"with more columns": {`CREATE TABLE messenger_inbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, transport text NOT NULL, message_id text NOT NULL,
			processed_at timestamp NOT NULL, host text, tries int NOT NULL DEFAULT 1, UNIQUE (transport, message_id))`},
		"with a harmless trigger": {table, `CREATE FUNCTION harmless() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`,
			`CREATE TRIGGER harmless BEFORE INSERT ON messenger_inbox FOR EACH ROW EXECUTE FUNCTION harmless()`},
		"with a rule on updates": {table, `CREATE RULE updates AS ON UPDATE TO messenger_inbox DO INSTEAD NOTHING`},
	} {
		t.Run(name, func(t *testing.T) {
			inbox := newInbox(t, statements...)
			report := run(t, inbox)
			wantResult(t, report, drill.ResultProven, drill.ReasonProven)
			if len(report.Checks) != 7 {
				t.Errorf("%d checks: %+v", len(report.Checks), report.Checks)
			}
			if report.LockWaitSeconds < 0.05 || report.LockWaitSeconds > 5 {
				t.Errorf("the lock wait is %v s; the first holds on for 0.05 s", report.LockWaitSeconds)
			}
			wantNothingLeft(t, inbox)
		})
	}
}

func TestRecordsOfOthersStay(t *testing.T) {
	inbox := newInbox(t, table, `INSERT INTO messenger_inbox SELECT 'orders', i::text, now() FROM generate_series(1, 100) i`)
	wantResult(t, run(t, inbox), drill.ResultProven, drill.ReasonProven)
	var count int
	if err := connect(t, inbox).QueryRow(t.Context(), `SELECT count(*) FROM messenger_inbox`).Scan(&count); err != nil || count != 100 {
		t.Errorf("%d records, %v", count, err)
	}
}

func TestEveryHandlerConnectionIsDrilled(t *testing.T) {
	s := postgres.Shared(t)
	inbox := newInbox(t, table)
	name := nameOf(t, inbox)
	session := pgbouncer.Run(t, s, pgbouncer.Options{Mode: pgbouncer.Session})
	transaction := pgbouncer.Run(t, s, pgbouncer.Options{Mode: pgbouncer.Transaction, PoolSize: 3})
	report := run(t, transaction.URL(name), inbox, session.URL(name), transaction.URL(name))
	wantResult(t, report, drill.ResultProven, drill.ReasonProven)
	if len(report.Checks) != 7+3*7 {
		t.Errorf("%d checks: %+v", len(report.Checks), report.Checks)
	}
	wantNothingLeft(t, inbox)
}

func TestHandlerThatCommitsElsewhereIsNotWrittenTo(t *testing.T) {
	inbox, other := newInbox(t, table), newInbox(t, table,
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''written to''; END'`,
		`CREATE TRIGGER refuse BEFORE INSERT ON messenger_inbox FOR EACH STATEMENT EXECUTE FUNCTION refuse()`)
	report := run(t, inbox, other)
	wantResult(t, report, drill.ResultBroken, "OtherDatabase")
	if last := report.Checks[len(report.Checks)-1]; last.Connection != "handler 0" || last.Passed {
		t.Errorf("the last check is %+v", last)
	}
}

const swallow = `CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`

func TestWhatBreaksTheContractIsNamed(t *testing.T) {
	keyless := strings.Replace(table, ", PRIMARY KEY (transport, message_id)", "", 1)
	for name, test := range map[string]struct {
		statements []string
		reasons    []string // of the failed checks, in their order
		text       string   // in one of them
	}{
		"no unique key": {[]string{keyless}, []string{"UniqueKeyMissing", "DuplicateAccepted", "NoLockWait"}, "no immediate unique key"},
		"a deferrable key, initially immediate": {[]string{keyless, `ALTER TABLE messenger_inbox ADD UNIQUE (transport, message_id) DEFERRABLE`},
			[]string{"UniqueKeyDeferrable"}, "is deferrable"},
		"a deferrable key, initially deferred": {[]string{keyless, `ALTER TABLE messenger_inbox ADD UNIQUE (transport, message_id) DEFERRABLE INITIALLY DEFERRED`},
			[]string{"UniqueKeyDeferrable", "DuplicateAccepted", "NoLockWait"}, "only at the commit"},
		"a partial unique index": {[]string{keyless, `CREATE UNIQUE INDEX ON messenger_inbox (transport, message_id) WHERE transport = 'orders'`},
			[]string{"UniqueKeyMissing", "DuplicateAccepted", "NoLockWait"}, "is partial"},
		"a rule that swallows the insert": {[]string{table, `CREATE RULE swallow AS ON INSERT TO messenger_inbox DO INSTEAD NOTHING`},
			[]string{"InsertSwallowed"}, `rule "swallow"`},
		"a trigger that swallows the insert": {[]string{table, swallow, `CREATE TRIGGER drops BEFORE INSERT ON messenger_inbox FOR EACH ROW EXECUTE FUNCTION swallow()`},
			[]string{"InsertSwallowed"}, `trigger "drops"`},
		"a trigger that changes the id": {[]string{table, `CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.message_id := upper(NEW.message_id); RETURN NEW; END'`,
			`CREATE TRIGGER changes BEFORE INSERT ON messenger_inbox FOR EACH ROW EXECUTE FUNCTION change()`},
			[]string{"InsertSwallowed"}, `trigger "changes"`},
		"a deferred trigger that deletes the record": {[]string{table, `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM messenger_inbox; RETURN NULL; END'`,
			`CREATE CONSTRAINT TRIGGER loses AFTER INSERT ON messenger_inbox DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose()`},
			[]string{"InsertSwallowed"}, `trigger "loses"`},
		"a trigger that drops duplicates in silence": {[]string{table, `CREATE FUNCTION once() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN IF EXISTS (SELECT FROM messenger_inbox WHERE message_id = NEW.message_id) THEN RETURN NULL; END IF; RETURN NEW; END'`,
			`CREATE TRIGGER once BEFORE INSERT ON messenger_inbox FOR EACH ROW EXECUTE FUNCTION once()`},
			[]string{"InsertSwallowed", "DuplicateAccepted"}, "takes the message for a new one"},
		"a rule that keeps expired records": {[]string{table, `CREATE RULE keeps AS ON DELETE TO messenger_inbox DO INSTEAD NOTHING`},
			[]string{"DeleteSwallowed"}, `rule "keeps"`},
		"a foreign key that deletes proofs": {[]string{`CREATE TABLE other (transport varchar(190) PRIMARY KEY)`, `INSERT INTO other VALUES ('messaginginbox.drill')`,
			table, `ALTER TABLE messenger_inbox ADD CONSTRAINT deletes FOREIGN KEY (transport) REFERENCES other ON DELETE CASCADE`},
			[]string{"ForeignKeyDeletes"}, "deletes (to other, ON DELETE CASCADE)"},
		"an unlogged table": {[]string{strings.Replace(table, "CREATE TABLE", "CREATE UNLOGGED TABLE", 1)}, []string{"UnloggedTable"}, "crash"},
		"a view":            {[]string{`CREATE VIEW messenger_inbox AS SELECT 1 AS transport`}, []string{"NotATable"}, "view"},
	} {
		t.Run(name, func(t *testing.T) {
			inbox := newInbox(t, test.statements...)
			report := run(t, inbox)
			wantResult(t, report, drill.ResultBroken, test.reasons[0])
			if reasons := failedReasons(report); !slices.Equal(reasons, test.reasons) {
				t.Errorf("the failed checks are %v, want %v: %+v", reasons, test.reasons, report.Checks)
			}
			if !slices.ContainsFunc(report.Checks, func(check drill.Check) bool { return !check.Passed && strings.Contains(check.Happened, test.text) }) {
				t.Errorf("no failed check says %q: %+v", test.text, report.Checks)
			}
			if test.reasons[0] != "NotATable" {
				wantNothingLeft(t, inbox)
			}
		})
	}
}

func TestSettingsThatEndangerTheContractAreNamedWithTheirLevel(t *testing.T) {
	s := postgres.Run(t, postgres.Options{})
	if err := s.CreateDatabase(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	admin := s.URL("app")
	execute(t, admin, table, `CREATE ROLE worker LOGIN PASSWORD 'secret'`, `GRANT ALL ON messenger_inbox TO worker`)
	worker := s.URLFor("worker", "secret", "app")
	for name, test := range map[string]struct {
		set, reset string
		inbox      string
		reasons    []string
		level      string
	}{
		"for the role":                {`ALTER ROLE worker SET synchronous_commit = off`, `ALTER ROLE worker RESET ALL`, worker, []string{"AsynchronousCommit"}, "set for the role"},
		"for the database":            {`ALTER DATABASE app SET synchronous_commit = off`, `ALTER DATABASE app RESET ALL`, worker, []string{"AsynchronousCommit"}, "set for the database"},
		"in the URL":                  {``, ``, worker + "&options=-csynchronous_commit%3Doff", []string{"AsynchronousCommit"}, "set by the connection URL"},
		"a weaker but durable commit": {`ALTER ROLE worker SET synchronous_commit = local`, `ALTER ROLE worker RESET ALL`, worker, nil, ""},
		"repeatable read": {`ALTER ROLE worker SET default_transaction_isolation = 'repeatable read'`, `ALTER ROLE worker RESET ALL`, worker,
			[]string{"NotReadCommitted", "SerializationFailure"}, "repeatable read"},
		"serializable": {`ALTER ROLE worker SET default_transaction_isolation = 'serializable'`, `ALTER ROLE worker RESET ALL`, worker,
			[]string{"NotReadCommitted", "SerializationFailure"}, "serializable"},
		"triggers off": {``, ``, admin + "&options=-csession_replication_role%3Dreplica", []string{"SessionReplicationRole"}, "replica"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.set != "" {
				execute(t, admin, test.set)
				defer execute(t, admin, test.reset)
			}
			report := run(t, test.inbox)
			if reasons := failedReasons(report); !slices.Equal(reasons, test.reasons) {
				t.Errorf("the failed checks are %v, want %v: %+v", reasons, test.reasons, report.Checks)
			}
			if !strings.Contains(report.Message, test.level) {
				t.Errorf("the message does not say %q: %s", test.level, report.Message)
			}
			wantNothingLeft(t, admin)
		})
	}
	t.Run("for the server", func(t *testing.T) {
		execute(t, admin, `ALTER SYSTEM SET synchronous_commit = off`, `SELECT pg_reload_conf()`)
		eventually(t, "the setting is read", func() bool {
			var value string
			return connect(t, worker).QueryRow(t.Context(), `SHOW synchronous_commit`).Scan(&value) == nil && value == "off"
		})
		report := run(t, worker)
		wantResult(t, report, drill.ResultBroken, "AsynchronousCommit")
		if !strings.Contains(report.Message, "whole server") {
			t.Errorf("the message does not name the level: %s", report.Message)
		}
	})
}

func TestWhatKeepsADrillFromBeingTried(t *testing.T) {
	s := postgres.Shared(t)
	role := func(t *testing.T, inbox, name string, grants ...string) string {
		t.Helper()
		execute(t, inbox, fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD 'secret'`, name))
		t.Cleanup(func() {
			for _, statement := range []string{"DROP OWNED BY " + name, "DROP ROLE " + name} {
				if err := s.Exec(context.Background(), nameOf(t, inbox), statement); err != nil {
					t.Error(err)
				}
			}
		})
		execute(t, inbox, grants...)
		return s.URLFor(name, "secret", nameOf(t, inbox))
	}
	t.Run("a role without INSERT", func(t *testing.T) {
		inbox := newInbox(t, table)
		report := run(t, role(t, inbox, "pruner", `GRANT SELECT, DELETE ON messenger_inbox TO pruner`))
		wantResult(t, report, drill.ResultNotTried, database.ReasonPermissionDenied)
		if !strings.Contains(report.Message, `GRANT INSERT ON "public"."messenger_inbox" TO "pruner"`) {
			t.Errorf("the message has no remedy: %s", report.Message)
		}
	})
	t.Run("a handler's role without SELECT", func(t *testing.T) {
		inbox := newInbox(t, table)
		report := run(t, inbox, role(t, inbox, "writer", `GRANT INSERT ON messenger_inbox TO writer`))
		wantResult(t, report, drill.ResultNotTried, database.ReasonPermissionDenied)
		if !strings.Contains(report.Message, "handler 0") || !strings.Contains(report.Message, `GRANT SELECT`) {
			t.Errorf("the message names neither the connection nor the remedy: %s", report.Message)
		}
		wantNothingLeft(t, inbox)
	})
	t.Run("row-level security", func(t *testing.T) {
		inbox := newInbox(t, table, `ALTER TABLE messenger_inbox ENABLE ROW LEVEL SECURITY`)
		wantResult(t, run(t, role(t, inbox, "limited", `GRANT ALL ON messenger_inbox TO limited`)), drill.ResultNotTried, drill.ReasonRowSecurity)
	})
	t.Run("columns that a drill cannot fill", func(t *testing.T) {
		inbox := newInbox(t, table, `ALTER TABLE messenger_inbox ADD tenant text NOT NULL, ADD "work er" text NOT NULL`)
		report := run(t, inbox)
		wantResult(t, report, drill.ResultNotTried, drill.ReasonColumnsWithoutDefault)
		if !strings.Contains(report.Message, `"tenant", "work er"`) {
			t.Errorf("the message does not name the columns: %s", report.Message)
		}
	})
	t.Run("a constraint that refuses the record", func(t *testing.T) {
		inbox := newInbox(t, table, `ALTER TABLE messenger_inbox ADD CONSTRAINT known CHECK (transport IN ('orders'))`)
		report := run(t, inbox)
		wantResult(t, report, drill.ResultNotTried, drill.ReasonInsertRefused)
		if !strings.Contains(report.Message, "known") {
			t.Errorf("the message does not name the constraint: %s", report.Message)
		}
	})
	t.Run("transactions that cannot write", func(t *testing.T) {
		wantResult(t, run(t, newInbox(t, table)+"&options=-cdefault_transaction_read_only%3Don"), drill.ResultNotTried, database.ReasonReadOnly)
	})
	t.Run("a wrong password", func(t *testing.T) {
		wantResult(t, run(t, s.URLFor(postgres.Superuser, "wrong", "postgres")), drill.ResultNotTried, database.ReasonAuthenticationFailed)
	})
	t.Run("a pooler with two server connections", func(t *testing.T) {
		inbox := newInbox(t, table)
		small := pgbouncer.Run(t, s, pgbouncer.Options{Mode: pgbouncer.Transaction, PoolSize: 2})
		report := run(t, small.URL(nameOf(t, inbox)))
		wantResult(t, report, drill.ResultNotTried, drill.ReasonNoAnswer)
		wantNothingLeft(t, inbox)
	})
}

func TestDrillOfAnIdleDatabaseIsQuick(t *testing.T) {
	inbox := newInbox(t, table)
	started := time.Now()
	report := run(t, inbox)
	wantResult(t, report, drill.ResultProven, drill.ReasonProven)
	t.Logf("%.3f s, of which the checks took %v", report.DurationSeconds, report.Checks)
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func nameOf(t testing.TB, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}
