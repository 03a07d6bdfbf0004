//go:build integration

package businesskeys_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/businesskeys"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m, postgres.Options{})) }

func connect(t *testing.T) *pgx.Conn {
	t.Helper()
	config, err := database.Parse(postgres.Shared(t).NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	connection, err := config.Connect(t.Context(), database.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

func execute(t *testing.T, connection *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := connection.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// check judges one key of the table pay"ments, which needs quotes.
func check(t *testing.T, connection *pgx.Conn, columns ...string) businesskeys.Finding {
	t.Helper()
	findings, err := businesskeys.Check(t.Context(), connection, []businesskeys.Key{{Schema: "public", Table: `pay"ments`, Columns: columns}})
	if err != nil {
		t.Fatal(err)
	}
	return findings[0]
}

const table = `CREATE TABLE "pay""ments" (id bigint PRIMARY KEY, attempt text NOT NULL, tenant text NOT NULL, note text)`

func TestEnforcedKeys(t *testing.T) {
	for name, test := range map[string]struct {
		statements []string
		columns    []string
	}{
		"a primary key":                           {[]string{table}, []string{"id"}},
		"a unique constraint":                     {[]string{table, `ALTER TABLE "pay""ments" ADD UNIQUE (attempt)`}, []string{"attempt"}},
		"a unique index":                          {[]string{table, `CREATE UNIQUE INDEX ON "pay""ments" (attempt)`}, []string{"attempt"}},
		"columns in another order":                {[]string{table, `CREATE UNIQUE INDEX ON "pay""ments" (tenant, attempt)`}, []string{"attempt", "tenant"}},
		"an index with included columns":          {[]string{table, `CREATE UNIQUE INDEX ON "pay""ments" (attempt) INCLUDE (note)`}, []string{"attempt"}},
		"a nullable column with nulls equal":      {[]string{table, `CREATE UNIQUE INDEX ON "pay""ments" (note) NULLS NOT DISTINCT`}, []string{"note"}},
		"a fit index beside a partial one":        {[]string{table, `CREATE UNIQUE INDEX a ON "pay""ments" (attempt) WHERE id > 1`, `CREATE UNIQUE INDEX b ON "pay""ments" (attempt)`}, []string{"attempt"}},
		"a partitioned table with its key on all": {[]string{`CREATE TABLE "pay""ments" (attempt text PRIMARY KEY) PARTITION BY HASH (attempt)`}, []string{"attempt"}},
	} {
		t.Run(name, func(t *testing.T) {
			connection := connect(t)
			execute(t, connection, test.statements...)
			if finding := check(t, connection, test.columns...); !finding.Enforced || finding.Index == "" || finding.Missing != "" {
				t.Errorf("got %+v", finding)
			}
		})
	}
}

func TestMissingPartsAndTheStatementThatAddsThem(t *testing.T) {
	for name, test := range map[string]struct {
		statements []string
		columns    []string
		missing    string
		sql        string
	}{
		"no index at all":             {[]string{table}, []string{"attempt"}, `no unique index on exactly ("attempt")`, `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."pay""ments" ("attempt")`},
		"an index that is not unique": {[]string{table, `CREATE INDEX ON "pay""ments" (attempt)`}, []string{"attempt"}, "no unique index", `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."pay""ments" ("attempt")`},
		"an index on more columns":    {[]string{table, `CREATE UNIQUE INDEX ON "pay""ments" (attempt, tenant)`}, []string{"attempt"}, "no unique index", `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."pay""ments" ("attempt")`},
		"an index on fewer columns":   {[]string{table, `CREATE UNIQUE INDEX ON "pay""ments" (attempt)`}, []string{"attempt", "tenant"}, "no unique index", `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."pay""ments" ("attempt", "tenant")`},
		"an index on an expression":   {[]string{table, `CREATE UNIQUE INDEX ON "pay""ments" (lower(attempt))`}, []string{"attempt"}, "no unique index", `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."pay""ments" ("attempt")`},
		"a partial index":             {[]string{table, `CREATE UNIQUE INDEX p ON "pay""ments" (attempt) WHERE tenant = 'a'`}, []string{"attempt"}, `"p" is partial`, `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."pay""ments" ("attempt")`},
		"a deferrable constraint":     {[]string{table, `ALTER TABLE "pay""ments" ADD CONSTRAINT d UNIQUE (attempt) DEFERRABLE`}, []string{"attempt"}, `"d" is deferrable`, `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."pay""ments" ("attempt")`},
		"an invalid index": {[]string{table, `CREATE UNIQUE INDEX i ON "pay""ments" (attempt)`, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'i'::regclass`}, []string{"attempt"},
			`"i" is invalid`, `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."pay""ments" ("attempt")`},
		"a nullable column":              {[]string{table, `CREATE UNIQUE INDEX n ON "pay""ments" (note)`}, []string{"note"}, `"note" can be NULL`, `ALTER TABLE "public"."pay""ments" ALTER COLUMN "note" SET NOT NULL`},
		"a nullable column and no index": {[]string{table}, []string{"note"}, "can be NULL", `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."pay""ments" ("note") NULLS NOT DISTINCT`},
		"a partitioned table without":    {[]string{`CREATE TABLE "pay""ments" (attempt text NOT NULL) PARTITION BY HASH (attempt)`}, []string{"attempt"}, "no unique index", `CREATE UNIQUE INDEX ON "public"."pay""ments" ("attempt")`},
	} {
		t.Run(name, func(t *testing.T) {
			connection := connect(t)
			execute(t, connection, test.statements...)
			finding := check(t, connection, test.columns...)
			if finding.Enforced || !strings.Contains(finding.Missing, test.missing) || finding.SQL != test.sql {
				t.Fatalf("got %+v", finding)
			}
			execute(t, connection, finding.SQL)
			if after := check(t, connection, test.columns...); !after.Enforced {
				t.Errorf("after %s: %+v", finding.SQL, after)
			}
		})
	}
}

func TestWhatNoIndexCouldMend(t *testing.T) {
	for name, test := range map[string]struct {
		statements []string
		missing    string
	}{
		"no table":           {nil, "does not exist"},
		"a view":             {[]string{`CREATE VIEW "pay""ments" AS SELECT 1 AS attempt`}, "is a view"},
		"no such column":     {[]string{`CREATE TABLE "pay""ments" (id int)`}, `no column "attempt"`},
		"a table with heirs": {[]string{table, `CREATE TABLE heir () INHERITS ("pay""ments")`, `CREATE UNIQUE INDEX ON "pay""ments" (attempt)`}, "inherit"},
	} {
		t.Run(name, func(t *testing.T) {
			connection := connect(t)
			execute(t, connection, test.statements...)
			if finding := check(t, connection, "attempt"); finding.Enforced || !strings.Contains(finding.Missing, test.missing) || finding.SQL != "" {
				t.Errorf("got %+v", finding)
			}
		})
	}
}

func TestRoleWithoutAnyPrivilegeOnTheTableMayCheck(t *testing.T) {
	s := postgres.Run(t, postgres.Options{})
	for _, statement := range []string{table, `REVOKE ALL ON SCHEMA public FROM PUBLIC`, `CREATE ROLE app LOGIN PASSWORD 'secret'`} {
		if err := s.Exec(t.Context(), "postgres", statement); err != nil {
			t.Fatal(err)
		}
	}
	connection, err := pgx.Connect(t.Context(), s.URLFor("app", "secret", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(context.Background()) }()
	if finding := check(t, connection, "id"); !finding.Enforced {
		t.Errorf("got %+v", finding)
	}
}
