//go:build integration

package dbschema

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// build is an Apply in another session that cannot end, since a writer's transaction
// is open.
type build struct {
	db      *testDatabase
	builder *pgx.Conn
	writer  pgx.Tx
	cancel  context.CancelFunc
	done    chan error
	digest  string
}

func startBuild(t *testing.T, db *testDatabase, options ApplyOptions) *build {
	t.Helper()
	b := &build{db: db, builder: connect(t, db.url), done: make(chan error, 1), digest: db.compare(defaultContract).Plan.Digest()}
	writer, err := connect(t, db.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Exec(t.Context(), oneRecord); err != nil {
		t.Fatal(err)
	}
	b.writer = writer
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	b.cancel = cancel
	go func() {
		_, err := Apply(ctx, b.builder, defaultContract, b.digest, options)
		b.done <- err
	}()
	db.eventually("the build waits for the writer", "SELECT EXISTS (SELECT FROM pg_stat_progress_create_index WHERE pid = $1::int AND phase LIKE 'waiting for writers%')",
		b.builder.PgConn().PID())
	return b
}

func (b *build) releaseWriter() {
	b.db.t.Helper()
	if err := b.writer.Commit(b.db.t.Context()); err != nil {
		b.db.t.Fatal(err)
	}
}

const oneRecord = "INSERT INTO messenger_inbox VALUES ('orders', 'written', now())"

// recovers checks that an invalid index is left, and that the approval of the build
// covers its repetition.
func (b *build) recovers() {
	b.db.t.Helper()
	b.db.eventually("the build has ended", "SELECT NOT EXISTS (SELECT FROM pg_stat_progress_create_index)")
	b.releaseWriter()
	verdict := b.db.compare(defaultContract)
	assertSteps(b.db.t, verdict, DropInvalidIndex, CreateTimestampIndex)
	if verdict.Plan.Digest() != b.digest {
		b.db.t.Error("the repetition of the build needs another approval")
	}
	if after := Compare(defaultContract, b.db.mustApply(defaultContract)); len(after.Findings) > 0 {
		b.db.t.Errorf("findings %+v", after.Findings)
	}
	if invalid := b.db.count("SELECT count(*) FROM pg_index WHERE NOT indisvalid"); invalid != 0 {
		b.db.t.Errorf("%d invalid indexes are left", invalid)
	}
}

func TestABuildRecoversFromATerminatedSession(t *testing.T) {
	b := startBuild(t, newDatabase(t, symfonyTable), ApplyOptions{})
	b.db.run("SELECT pg_terminate_backend(pid) FROM pg_stat_progress_create_index")
	assertCode(t, <-b.done, "57P01")
	b.recovers()
}

func TestABuildRecoversFromItsTimeout(t *testing.T) {
	b := startBuild(t, newDatabase(t, symfonyTable), ApplyOptions{BuildTimeout: 5 * time.Second})
	assertCode(t, <-b.done, queryCanceled)
	b.recovers()
}

func TestABuildRecoversFromACancelledContext(t *testing.T) {
	b := startBuild(t, newDatabase(t, symfonyTable), ApplyOptions{})
	b.cancel()
	if err := <-b.done; !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	b.recovers()
}

// A transaction that is open for longer than lock_timeout must not end a build: it
// would end every build on a database that has long transactions.
func TestABuildOutlastsLongTransactions(t *testing.T) {
	b := startBuild(t, newDatabase(t, symfonyTable), ApplyOptions{LockTimeout: 50 * time.Millisecond})
	select {
	case err := <-b.done:
		t.Fatalf("the build ended while the writer was there: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	b.releaseWriter()
	if err := <-b.done; err != nil {
		t.Fatal(err)
	}
	assertReasons(t, b.db.compare(defaultContract))
}

func TestABuildOfAnotherSessionIsLeftAlone(t *testing.T) {
	db := newDatabase(t, symfonyTable)
	watcher := connectAs(t, db, "watcher")
	b := startBuild(t, db, ApplyOptions{})

	verdict := db.compare(defaultContract)
	assertReasons(t, verdict, ReasonTimestampIndexMissing)
	assertSteps(t, verdict)
	if !strings.Contains(verdict.Findings[0].Message, "is being built at this moment") {
		t.Error(verdict.Findings[0].Message)
	}
	progress, err := IndexBuildProgress(t.Context(), db, defaultContract)
	if err != nil || progress == nil || !strings.HasPrefix(progress.Phase, "waiting for writers") {
		t.Errorf("progress is %+v, %v", progress, err)
	}

	// A role that may not see the other session's progress still sees that it builds.
	assertSteps(t, watcher.compare(defaultContract))
	if progress, err := IndexBuildProgress(t.Context(), watcher, defaultContract); err != nil || progress == nil || progress.Phase != "" {
		t.Errorf("progress is %+v, %v", progress, err)
	}

	b.releaseWriter()
	if err := <-b.done; err != nil {
		t.Fatal(err)
	}
	assertReasons(t, db.compare(defaultContract))
	if progress, err := IndexBuildProgress(t.Context(), db, defaultContract); err != nil || progress != nil {
		t.Errorf("progress is %+v, %v", progress, err)
	}
}

func TestAVacuumIsNotTakenForABuild(t *testing.T) {
	b := startBuild(t, newDatabase(t, symfonyTable), ApplyOptions{})
	b.db.run("SELECT pg_terminate_backend(pid) FROM pg_stat_progress_create_index")
	assertCode(t, <-b.done, "57P01")
	b.releaseWriter()
	other := connect(t, b.db.url)
	if _, err := other.Exec(t.Context(), "BEGIN; LOCK TABLE messenger_inbox IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	assertSteps(t, b.db.compare(defaultContract), DropInvalidIndex, CreateTimestampIndex)
}

func TestProgressOfTheOwnBuildIsReported(t *testing.T) {
	reports := make(chan BuildProgress, 100)
	b := startBuild(t, newDatabase(t, symfonyTable), ApplyOptions{Progress: func(p BuildProgress) { reports <- p }})
	if progress := <-reports; !strings.HasPrefix(progress.Phase, "waiting for writers") {
		t.Errorf("phase is %q", progress.Phase)
	}
	b.releaseWriter()
	if err := <-b.done; err != nil {
		t.Fatal(err)
	}
}

func TestADuplicateThatComesMeanwhileEndsTheBuildOfTheKey(t *testing.T) {
	db := newDatabase(t, keylessTable, oneRecord)
	b := startBuild(t, db, ApplyOptions{})
	b.releaseWriter()
	assertCode(t, <-b.done, uniqueViolation)
	verdict := db.compare(defaultContract)
	assertReasons(t, verdict, ReasonDuplicateRecords, ReasonTimestampIndexMissing)
	assertSteps(t, verdict)
	if indexes := db.inspect(defaultContract).Indexes; len(indexes) > 0 {
		t.Errorf("indexes are %+v", indexes)
	}
}

func TestAnIndexThatBecameValidIsNotDropped(t *testing.T) {
	db := newDatabase(t, symfonyTable, "CREATE INDEX messenger_inbox_processed_at_idx ON messenger_inbox (processed_at)")
	drop := Step{Kind: DropInvalidIndex, SQL: "DROP INDEX CONCURRENTLY public.messenger_inbox_processed_at_idx", Concurrent: true, index: "messenger_inbox_processed_at_idx"}
	if err := applyConcurrently(t.Context(), db.Conn, defaultContract, drop, ApplyOptions{}.withDefaults()); err != nil {
		t.Fatal(err)
	}
	assertReasons(t, db.compare(defaultContract))
}

func TestABuildOnAnotherTableIsNotTakenForOne(t *testing.T) {
	db := newDatabase(t, symfonyTable, "CREATE INDEX messenger_inbox_processed_at_idx ON messenger_inbox (processed_at)",
		"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'messenger_inbox_processed_at_idx'::regclass", "CREATE TABLE other (a int)")
	watcher := connectAs(t, db, "bystander")
	writer := connect(t, db.url)
	if _, err := writer.Exec(t.Context(), "BEGIN; INSERT INTO other VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	builder := connect(t, db.url)
	done := make(chan error, 1)
	go func() {
		_, err := builder.Exec(t.Context(), "CREATE INDEX CONCURRENTLY ON other (a)")
		done <- err
	}()
	db.eventually("the other build waits", "SELECT EXISTS (SELECT FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting for writers%' AND datname = current_database())")
	assertSteps(t, watcher.compare(defaultContract), DropInvalidIndex, CreateTimestampIndex)
	if progress, err := IndexBuildProgress(t.Context(), watcher, defaultContract); err != nil || progress != nil {
		t.Errorf("progress is %+v, %v", progress, err)
	}
	if _, err := writer.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestApplySeesAnIndexThatAppearsMeanwhile(t *testing.T) {
	db := newDatabase(t, symfonyTable)
	digest := db.compare(defaultContract).Plan.Digest()
	other := connect(t, db.url)
	if _, err := other.Exec(t.Context(), "BEGIN; CREATE INDEX messenger_inbox_processed_at_idx ON messenger_inbox (processed_at)"); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, db.url)
	applied := make(chan error, 1)
	go func() {
		_, err := Apply(t.Context(), conn, defaultContract, digest, ApplyOptions{LockTimeout: time.Minute, StatementTimeout: time.Minute})
		applied <- err
	}()
	db.eventually("Apply waits for the other session", "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid = $1::int)", conn.PgConn().PID())
	if _, err := other.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	var changed *PlanChangedError
	if err := <-applied; !errors.As(err, &changed) {
		t.Errorf("error is %v", err)
	}
	assertReasons(t, db.compare(defaultContract))
}
