//go:build integration

package dbschema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

const keylessTable = `CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL, processed_at timestamptz NOT NULL)`

func TestApplyCreatesTheTable(t *testing.T) {
	db := newDatabase(t)
	o := db.mustApply(defaultContract)

	verdict := Compare(defaultContract, o)
	assertReasons(t, verdict)
	assertSteps(t, verdict)
	if !o.MadeByOperator() {
		t.Errorf("comment is %q", o.Comment)
	}
	if index, found := o.TimestampIndex(defaultContract); !found || index.Name != "messenger_inbox_processed_at_idx" {
		t.Errorf("timestamp index is %+v", index)
	}
	var types []string
	for _, col := range o.Columns {
		types = append(types, col.Type)
	}
	if got := strings.Join(types, ", "); got != "character varying(190), character varying(255), timestamp(0) without time zone" {
		t.Errorf("types are %s", got)
	}
	if db.count("SELECT count(*) FROM pg_class WHERE relname = 'messenger_inbox' AND 'autovacuum_vacuum_scale_factor=0.02' = ANY (reloptions)") != 1 {
		t.Error("the storage parameters are not set")
	}
	db.run("INSERT INTO messenger_inbox VALUES ('orders', '1', now())")
	_, err := db.Exec(t.Context(), "INSERT INTO messenger_inbox VALUES ('orders', '1', now())")
	assertCode(t, err, uniqueViolation)
}

func TestApplyDoesNothingToACompleteTable(t *testing.T) {
	db := newDatabase(t)
	db.mustApply(defaultContract)
	before := db.count("SELECT count(*) FROM pg_class")
	if _, err := Apply(t.Context(), db.Conn, defaultContract, "sha256:whatever", ApplyOptions{}); err != nil {
		t.Error(err)
	}
	if after := db.count("SELECT count(*) FROM pg_class"); after != before {
		t.Errorf("%d relations, before %d", after, before)
	}
}

func TestApplyAdoptsATableOfDoctrineAsItIs(t *testing.T) {
	db := newDatabase(t, symfonyTable, "INSERT INTO messenger_inbox VALUES ('orders', '1', now())")
	c := defaultContract
	c.TimestampIndex = "idx_processed"
	o := db.mustApply(c)
	if verdict := Compare(c, o); len(verdict.Findings) > 0 {
		t.Errorf("findings %+v", verdict.Findings)
	}
	if index, _ := o.TimestampIndex(c); index.Name != "idx_processed" {
		t.Errorf("timestamp index is %+v", index)
	}
	if o.MadeByOperator() || db.count("SELECT count(*) FROM messenger_inbox") != 1 || db.count("SELECT count(*) FROM pg_class WHERE relname = 'messenger_inbox' AND reloptions IS NOT NULL") != 0 {
		t.Error("more than the index was changed")
	}
}

func TestApplyAddsTheKeyToATableWithoutDuplicates(t *testing.T) {
	db := newDatabase(t, keylessTable, "INSERT INTO messenger_inbox SELECT 'orders', n::text, now() FROM generate_series(1, 1000) n")
	o := db.mustApply(defaultContract)
	if verdict := Compare(defaultContract, o); len(verdict.Findings) > 0 {
		t.Errorf("findings %+v", verdict.Findings)
	}
}

func TestApplyQuotesEveryName(t *testing.T) {
	c := Contract{
		Schema: `Sch"ema; DROP`, Table: strings.Repeat("ü", 20) + ` "T'able" %s --$1;/*`, Transport: `Trans"port`, MessageID: "message id",
		ProcessedAt: "ORDER", TimeZone: "Europe/Paris", TimestampIndex: `i"x'`,
	}
	schema := "CREATE SCHEMA " + quote(c.Schema)
	for name, statements := range map[string][]string{
		"new":     {schema},
		"adopted": {schema, fmt.Sprintf("CREATE TABLE %s (%s text NOT NULL, %s text NOT NULL, %s timestamp NOT NULL)", c.qualifiedTable(), quote(c.Transport), quote(c.MessageID), quote(c.ProcessedAt))},
	} {
		t.Run(name, func(t *testing.T) {
			db := newDatabase(t, statements...)
			if verdict := Compare(c, db.mustApply(c)); len(verdict.Findings) > 0 || !verdict.Plan.Empty() {
				t.Errorf("findings %+v, steps %+v", verdict.Findings, verdict.Plan.Steps)
			}
		})
	}
}

func TestTenOperatorsApplyAtOnce(t *testing.T) {
	for name, statements := range map[string][]string{"new table": nil, "table without key and index": {keylessTable}} {
		t.Run(name, func(t *testing.T) {
			db := newDatabase(t, statements...)
			digest := db.compare(defaultContract).Plan.Digest()
			var operators sync.WaitGroup
			for range 10 {
				conn := connect(t, db.url)
				operators.Go(func() {
					o, err := Apply(t.Context(), conn, defaultContract, digest, ApplyOptions{AdvisoryLockTimeout: time.Minute})
					if err != nil {
						t.Error(err)
					}
					if verdict := Compare(defaultContract, o); len(verdict.Findings) > 0 {
						t.Errorf("findings %+v", verdict.Findings)
					}
				})
			}
			operators.Wait()
			if tables := db.count("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); tables != 1 {
				t.Errorf("%d tables", tables)
			}
			if indexes := db.count("SELECT count(*) FROM pg_indexes WHERE schemaname = 'public'"); indexes != 2 {
				t.Errorf("%d indexes", indexes)
			}
		})
	}
}

func TestApplyRefusesAPlanThatWasNotApproved(t *testing.T) {
	db := newDatabase(t)
	approved := db.compare(defaultContract).Plan.Digest()
	db.run(symfonyTable)
	_, err := Apply(t.Context(), db.Conn, defaultContract, approved, ApplyOptions{})
	var changed *PlanChangedError
	if !errors.As(err, &changed) || changed.Given != approved || changed.Current != db.compare(defaultContract).Plan.Digest() {
		t.Errorf("error is %v", err)
	}
	assertReasons(t, db.compare(defaultContract), ReasonTimestampIndexMissing)
}

func TestApplySeesATableThatAppearsMeanwhile(t *testing.T) {
	db := newDatabase(t)
	digest := db.compare(defaultContract).Plan.Digest()
	other := connect(t, db.url)
	transaction, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = transaction.Exec(t.Context(), symfonyTable); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, db.url)
	applied := make(chan error, 1)
	go func() {
		_, failure := Apply(t.Context(), conn, defaultContract, digest, ApplyOptions{LockTimeout: time.Minute, StatementTimeout: time.Minute})
		applied <- failure
	}()
	db.eventually("Apply waits for the other transaction", "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid = $1::int)", conn.PgConn().PID())
	if err = transaction.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = <-applied
	var changed *PlanChangedError
	if !errors.As(err, &changed) || changed.Cause == nil {
		t.Errorf("error is %v", err)
	}
	db.mustApply(defaultContract)
}

func TestApplyNamesWhoElseApplies(t *testing.T) {
	db := newDatabase(t)
	other := connect(t, db.url)
	if _, err := other.Exec(t.Context(), "SET application_name = 'busy operator'"); err != nil {
		t.Fatal(err)
	}
	release, err := acquireLock(t.Context(), other, defaultContract, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.apply(defaultContract, ApplyOptions{AdvisoryLockTimeout: 50 * time.Millisecond})
	var locked *LockedError
	if !errors.As(err, &locked) || !strings.Contains(locked.Holder, fmt.Sprintf("pid %d (role postgres, application busy operator)", other.PgConn().PID())) {
		t.Errorf("error is %v", err)
	}
	another := defaultContract
	another.Table = "another"
	if _, err := db.apply(another, ApplyOptions{AdvisoryLockTimeout: 50 * time.Millisecond}); err != nil {
		t.Errorf("the lock of one table keeps another from being made: %v", err)
	}
	release()
	db.mustApply(defaultContract)
}

func TestALockOnTheTableEndsApplyInTimeAndLeavesNothing(t *testing.T) {
	db := newDatabase(t, symfonyTable)
	digest := db.compare(defaultContract).Plan.Digest()
	other := connect(t, db.url)
	if _, err := other.Exec(t.Context(), "BEGIN; LOCK TABLE messenger_inbox IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err := Apply(t.Context(), db.Conn, defaultContract, digest, ApplyOptions{LockTimeout: 200 * time.Millisecond})
	assertCode(t, err, lockNotAvailable)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d ", other.PgConn().PID())) {
		t.Errorf("the message does not name the holder: %v", err)
	}
	if indexes := db.inspect(defaultContract).Indexes; len(indexes) != 1 {
		t.Errorf("indexes are %+v", indexes)
	}
	if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	db.mustApply(defaultContract)
}

func TestAStatementTimeoutLeavesNoTable(t *testing.T) {
	db := newDatabase(t)
	other := connect(t, db.url)
	if _, err := other.Exec(t.Context(), "BEGIN; "+symfonyTable); err != nil {
		t.Fatal(err)
	}
	_, err := db.apply(defaultContract, ApplyOptions{LockTimeout: time.Minute, StatementTimeout: 200 * time.Millisecond})
	assertCode(t, err, queryCanceled)
	if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	assertReasons(t, db.compare(defaultContract), ReasonTableMissing)
}

func TestApplyGivesTheSessionBackAsItWas(t *testing.T) {
	db := newDatabase(t)
	config := db.Config()
	config.RuntimeParams["statement_timeout"] = "77s"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := Apply(t.Context(), conn, defaultContract, db.compare(defaultContract).Plan.Digest(), ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	var statement, lock string
	var locks int
	if err := conn.QueryRow(t.Context(), "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'), "+
		"(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())").Scan(&statement, &lock, &locks); err != nil {
		t.Fatal(err)
	}
	if statement != "77s" || lock != "0" || locks != 0 {
		t.Errorf("statement_timeout %s, lock_timeout %s, %d advisory locks", statement, lock, locks)
	}
}

// A pooler answers with a process id of its own, and may give each transaction another
// session.
func TestApplyRefusesAPooler(t *testing.T) {
	db := newDatabase(t)
	config := db.Config()
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(otherProcess{r}, w)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err = Apply(t.Context(), conn, defaultContract, db.compare(defaultContract).Plan.Digest(), ApplyOptions{}); !errors.Is(err, ErrPooler) {
		t.Errorf("error is %v", err)
	}
	assertReasons(t, db.compare(defaultContract), ReasonTableMissing)
}

// otherProcess changes the process id in the server's first answer, as a pooler does.
type otherProcess struct{ io.Reader }

func (r otherProcess) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if at := bytes.Index(p[:n], []byte{'K', 0, 0, 0, 12}); at >= 0 && at+8 < n {
		p[at+8] ^= 1
	}
	return n, err
}
