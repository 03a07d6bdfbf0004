//go:build integration

package drill_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/internal/drill"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(victimURL); url != "" {
		os.Exit(beVictim(url))
	}
	os.Exit(postgres.Main(m, postgres.Options{}))
}

// table is as a Doctrine migration of Symfony's inbox makes it.
const table = `CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL,
	processed_at timestamp(0) NOT NULL, PRIMARY KEY (transport, message_id))`

var contract = dbschema.Contract{
	Schema: "public", Table: "messenger_inbox",
	Transport: "transport", MessageID: "message_id", ProcessedAt: "processed_at", TimeZone: "UTC",
}

func parse(t testing.TB, url string) *database.Config {
	t.Helper()
	config, err := database.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	connection, err := parse(t, url).Connect(t.Context(), database.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

func execute(t testing.TB, url string, statements ...string) {
	t.Helper()
	connection := connect(t, url)
	for _, statement := range statements {
		if _, err := connection.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// newInbox is a database with what the statements make in it.
func newInbox(t testing.TB, statements ...string) string {
	t.Helper()
	url := postgres.Shared(t).NewDatabase(t)
	execute(t, url, statements...)
	return url
}

func run(t testing.TB, inbox string, handlers ...string) drill.Report {
	t.Helper()
	options := drill.Options{Contract: contract, Inbox: parse(t, inbox)}
	for _, handler := range handlers {
		options.Handlers = append(options.Handlers, parse(t, handler))
	}
	return drill.Run(t.Context(), options)
}

func wantResult(t testing.TB, report drill.Report, result, reason string) {
	t.Helper()
	if report.Result != result || report.Reason != reason {
		t.Fatalf("the result is %s (%s), want %s (%s): %s\n%+v", report.Result, report.Reason, result, reason, report.Message, report.Checks)
	}
}

// failedReasons of the checks, each once.
func failedReasons(report drill.Report) []string {
	var reasons []string
	for _, check := range report.Checks {
		if !check.Passed && !slices.Contains(reasons, check.Reason) {
			reasons = append(reasons, check.Reason)
		}
	}
	return reasons
}

// wantNothingLeft looks for records and for objects that a drill could have made.
func wantNothingLeft(t testing.TB, url string) {
	t.Helper()
	var records, relations int64
	err := connect(t, url).QueryRow(t.Context(), `SELECT (SELECT count(*) FROM messenger_inbox WHERE transport = 'messaginginbox.drill'),
		(SELECT count(*) FROM pg_class c WHERE relkind = 'r' AND relname <> 'messenger_inbox' AND relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
			AND relname NOT LIKE 'other%')`).
		Scan(&records, &relations)
	if err != nil {
		t.Fatal(err)
	}
	if records != 0 || relations != 0 {
		t.Errorf("%d records and %d tables are left", records, relations)
	}
}

func eventually(t testing.TB, what string, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if reached() {
			return
		}
	}
	t.Fatalf("waited 30 s in vain: %s", what)
}
