//go:build integration

package dbschema

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/messaginginbox/operator/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m, postgres.Options{})) }

// symfonyTable is a table as a Doctrine migration of Symfony's inbox makes it.
const symfonyTable = `CREATE TABLE messenger_inbox (transport VARCHAR(190) NOT NULL, message_id VARCHAR(255) NOT NULL,
	processed_at TIMESTAMP(0) WITHOUT TIME ZONE NOT NULL, PRIMARY KEY(transport, message_id))`

var defaultContract = Contract{
	Schema: "public", Table: "messenger_inbox",
	Transport: "transport", MessageID: "message_id", ProcessedAt: "processed_at", TimeZone: "UTC",
}

// testDatabase is an empty database with one session of its superuser.
type testDatabase struct {
	*pgx.Conn
	t   testing.TB
	url string
}

func newDatabase(t testing.TB, statements ...string) *testDatabase {
	t.Helper()
	url := postgres.Shared(t).NewDatabase(t)
	db := &testDatabase{Conn: connect(t, url), t: t, url: url}
	db.run(statements...)
	return db
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (db *testDatabase) run(statements ...string) {
	db.t.Helper()
	for _, statement := range statements {
		if _, err := db.Exec(db.t.Context(), statement); err != nil {
			db.t.Fatalf("%s: %v", statement, err)
		}
	}
}

func (db *testDatabase) inspect(c Contract) Observed {
	db.t.Helper()
	o, err := Inspect(db.t.Context(), db, c)
	if err != nil {
		db.t.Fatal(err)
	}
	return o
}

func (db *testDatabase) compare(c Contract) Verdict {
	db.t.Helper()
	return Compare(c, db.inspect(c))
}

// apply applies what the table calls for now.
func (db *testDatabase) apply(c Contract, options ApplyOptions) (Observed, error) {
	db.t.Helper()
	return Apply(db.t.Context(), db.Conn, c, db.compare(c).Plan.Digest(), options)
}

func (db *testDatabase) mustApply(c Contract) Observed {
	db.t.Helper()
	o, err := db.apply(c, ApplyOptions{})
	if err != nil {
		db.t.Fatal(err)
	}
	return o
}

func (db *testDatabase) count(query string) int64 {
	db.t.Helper()
	var count int64
	if err := db.QueryRow(db.t.Context(), query).Scan(&count); err != nil {
		db.t.Fatalf("%s: %v", query, err)
	}
	return count
}

// eventually waits for a state of the server that comes by itself.
func (db *testDatabase) eventually(what, query string, arguments ...any) {
	db.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var reached bool
		if err := db.QueryRow(db.t.Context(), query, arguments...).Scan(&reached); err != nil {
			db.t.Fatalf("%s: %v", query, err)
		}
		if reached {
			return
		}
	}
	db.t.Fatalf("waited 30 s in vain: %s", what)
}

func reasons(v Verdict) []string {
	var found []string
	for _, finding := range v.Findings {
		found = append(found, finding.Reason)
	}
	return found
}

func kinds(p Plan) []StepKind {
	var found []StepKind
	for _, step := range p.Steps {
		found = append(found, step.Kind)
	}
	return found
}

func assertReasons(t testing.TB, v Verdict, want ...string) {
	t.Helper()
	if got := reasons(v); !slices.Equal(got, want) {
		t.Errorf("findings are %v, want %v: %+v", got, want, v.Findings)
	}
}

func assertSteps(t testing.TB, v Verdict, want ...StepKind) {
	t.Helper()
	if got := kinds(v.Plan); !slices.Equal(got, want) {
		t.Errorf("steps are %v, want %v", got, want)
	}
}

func assertCode(t testing.TB, err error, code string) {
	t.Helper()
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != code {
		t.Errorf("error is %v, want SQLSTATE %s", err, code)
	}
}
