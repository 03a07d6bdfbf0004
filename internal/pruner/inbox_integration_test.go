//go:build integration

package pruner

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestMain(m *testing.M) {
	// As durable as in production, or the benchmarks would flatter the one that writes less.
	settings := map[string]string{"fsync": "on", "full_page_writes": "on", "shared_buffers": "1GB", "max_wal_size": "8GB"}
	os.Exit(postgres.Main(m, postgres.Options{Settings: settings}))
}

// week is the retention of the tests.
const week = 7 * 24 * time.Hour

// inbox is a database with an inbox table.
type inbox struct {
	t        testing.TB
	url      string
	conn     *pgx.Conn // of the superuser
	contract dbschema.Contract
	table    string // quoted
}

var defaultContract = dbschema.Contract{Schema: "public", Table: "messenger_inbox", Transport: "transport", MessageID: "message_id", ProcessedAt: "processed_at"}

// newInbox makes a table with an index on the timestamp, whose type is columnType.
func newInbox(t testing.TB, columnType string) *inbox {
	t.Helper()
	return newInboxOf(t, defaultContract, columnType)
}

func newInboxOf(t testing.TB, c dbschema.Contract, columnType string) *inbox {
	t.Helper()
	i := &inbox{t: t, url: postgres.Shared(t).NewDatabase(t), contract: c, table: pgx.Identifier{c.Schema, c.Table}.Sanitize()}
	i.conn = i.connect(i.url)
	quote := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	if c.Schema != "public" {
		i.exec("CREATE SCHEMA " + quote(c.Schema))
	}
	i.exec(fmt.Sprintf("CREATE TABLE %s (%s varchar(190) NOT NULL, %s varchar(255) NOT NULL, %s %s NOT NULL, PRIMARY KEY (%s, %s))",
		i.table, quote(c.Transport), quote(c.MessageID), quote(c.ProcessedAt), columnType, quote(c.Transport), quote(c.MessageID)))
	i.exec(fmt.Sprintf("CREATE INDEX %s ON %s (%s)", quote(c.TimestampIndexName()), i.table, quote(c.ProcessedAt)))
	return i
}

// connect opens a connection as the command line does.
func (i *inbox) connect(url string) *pgx.Conn {
	i.t.Helper()
	config, err := database.Parse(url)
	if err != nil {
		i.t.Fatal(err)
	}
	conn, err := config.Connect(context.Background(), database.Limits{StatementTimeout: 10 * time.Minute})
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (i *inbox) exec(statement string, arguments ...any) {
	i.t.Helper()
	if _, err := i.conn.Exec(context.Background(), statement, arguments...); err != nil {
		i.t.Fatalf("%s: %v", statement, err)
	}
}

// fill adds count records whose ages are spread evenly from the given one to two weeks.
func (i *inbox) fill(count int, from time.Duration) {
	i.t.Helper()
	i.exec(fmt.Sprintf(`INSERT INTO %s SELECT 'orders', md5($1::text || '/' || n),
		clock_timestamp() - ($2::bigint + ($3::bigint - $2::bigint) * n / $1::bigint) * interval '1 second' FROM generate_series(0, $1::bigint - 1) n
		ORDER BY n DESC`, i.table), count, int64(from.Seconds()), int64((2 * week).Seconds()))
}

// number returns the one number that a query answers.
func (i *inbox) number(query string, arguments ...any) int64 {
	i.t.Helper()
	var n int64
	if err := i.conn.QueryRow(context.Background(), query, arguments...).Scan(&n); err != nil {
		i.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (i *inbox) count() int64 {
	i.t.Helper()
	return i.number("SELECT count(*) FROM " + i.table)
}

// options are those of most tests.
func (i *inbox) options() Options {
	return Options{Contract: i.contract, Retention: week, Required: week, BatchSize: 5000, MaxDuration: time.Minute, LockTimeout: 50 * time.Millisecond}
}

// prune runs on a connection of its own and must not fail.
func (i *inbox) prune(o Options) Report {
	i.t.Helper()
	report, err := Prune(context.Background(), i.connect(i.url), o, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	return report
}

// expect compares the parts of a report that every run has.
func (i *inbox) expect(r Report, result, reason string, rows int64) {
	i.t.Helper()
	if r.Result != result || r.Reason != reason || r.RowsDeleted != rows {
		i.t.Errorf("%s/%s with %d rows (%s), want %s/%s with %d", r.Result, r.Reason, r.RowsDeleted, r.Message, result, reason, rows)
	}
}
