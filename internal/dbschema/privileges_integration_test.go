//go:build integration

package dbschema

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/messaginginbox/operator/test/postgres"
)

// connectAs makes a role that may log in and nothing more, and connects as it.
func connectAs(t *testing.T, db *testDatabase, role string, statements ...string) *testDatabase {
	t.Helper()
	server := postgres.Shared(t)
	db.run("CREATE ROLE " + quote(role) + " LOGIN PASSWORD 'secret'")
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			if err := server.Exec(context.Background(), db.Config().Database, statement+quote(role)); err != nil {
				t.Error(err)
			}
		}
	})
	db.run(statements...)
	url := server.URLFor(role, "secret", db.Config().Database)
	return &testDatabase{Conn: connect(t, url), t: t, url: url}
}

func TestAMissingPrivilegeIsNamedBeforeTrying(t *testing.T) {
	for _, test := range []struct {
		name       string
		statements []string
		missing    []string
		grant      string
	}{
		{"nothing granted", []string{"REVOKE ALL ON SCHEMA public FROM PUBLIC"},
			[]string{`USAGE on schema "public"`, `CREATE on schema "public"`}, `GRANT USAGE ON SCHEMA "public" TO "some role"; GRANT CREATE ON SCHEMA "public" TO "some role";`},
		{"no CREATE", nil, []string{`CREATE on schema "public"`}, `GRANT CREATE ON SCHEMA "public" TO "some role";`},
		{"table of another role", []string{symfonyTable, "GRANT CREATE ON SCHEMA public TO PUBLIC"},
			[]string{`ownership of table "public"."messenger_inbox", which role "postgres" has`}, `GRANT "postgres" TO "some role";`},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := connectAs(t, newDatabase(t), "some role", test.statements...)
			missing, err := CreatePrivileges(t.Context(), db, defaultContract)
			if err != nil || !slices.Equal(missing, test.missing) {
				t.Errorf("missing are %q, %v", missing, err)
			}
			_, err = db.apply(defaultContract, ApplyOptions{})
			var lacking *PrivilegeError
			if !errors.As(err, &lacking) || lacking.SQL != test.grant || lacking.Role != "some role" {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestTheNamedGrantIsEnough(t *testing.T) {
	superuser := newDatabase(t)
	db := connectAs(t, superuser, "creator")
	_, err := db.apply(defaultContract, ApplyOptions{})
	var lacking *PrivilegeError
	if !errors.As(err, &lacking) {
		t.Fatalf("error is %v", err)
	}
	superuser.run(lacking.SQL)
	if o := db.mustApply(defaultContract); o.Owner != "creator" {
		t.Errorf("owner is %s", o.Owner)
	}
}

func TestARoleThatMayNotReadGetsTheErrorOfPostgreSQL(t *testing.T) {
	db := connectAs(t, newDatabase(t), "blind", keylessTable)
	_, err := Inspect(t.Context(), db, defaultContract)
	assertCode(t, err, "42501")
}
