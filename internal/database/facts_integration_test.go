//go:build integration

package database_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestFactsOfAPrimaryAndItsReplica(t *testing.T) {
	s := postgres.Shared(t)
	replica, err := s.Replica(t.Context(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if stopErr := replica.Stop(); stopErr != nil {
			t.Error(stopErr)
		}
	})
	primary, err := database.ReadFacts(t.Context(), connect(t, parse(t, s.URL("postgres")), database.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	if primary.VersionNum < 130000 || primary.InRecovery || primary.ReadOnly || primary.Database != "postgres" || primary.User != "postgres" {
		t.Errorf("the primary's facts are %+v", primary)
	}
	if difference := time.Since(primary.Now); difference.Abs() > time.Minute || primary.Now.Location() != time.UTC {
		t.Errorf("the server's clock shows %s", primary.Now)
	}
	if refusal := primary.Check(); refusal != nil {
		t.Error(refusal)
	}

	standby := connect(t, parse(t, replica.URL("postgres")), database.Limits{})
	facts, err := database.ReadFacts(t.Context(), standby)
	if err != nil {
		t.Fatal(err)
	}
	if !facts.InRecovery || !facts.ReadOnly || facts.SystemIdentifier == "" || facts.SystemIdentifier != primary.SystemIdentifier {
		t.Errorf("the replica's facts are %+v, the primary's %+v", facts, primary)
	}
	if f := database.Classify(facts.Check()); f.Reason != database.ReasonReadOnly || f.Class != database.WaitingOnUser {
		t.Errorf("got %+v", f)
	}
	_, err = standby.Exec(t.Context(), "CREATE TABLE t (id int)")
	if f := database.Classify(err); f.Reason != database.ReasonReadOnly {
		t.Errorf("got %+v", f)
	}
}

func TestFactsOfALimitedRole(t *testing.T) {
	s := postgres.Shared(t)
	url := s.NewDatabase(t)
	execute(t, connect(t, parse(t, url), database.Limits{}), "CREATE ROLE modest LOGIN PASSWORD 'p'",
		"REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
	facts, err := database.ReadFacts(t.Context(), connect(t, parse(t, s.URLFor("modest", "p", parse(t, url).Database())), database.Limits{}))
	if err != nil || facts.SystemIdentifier != "" || facts.User != "modest" {
		t.Errorf("got %+v, %v", facts, err)
	}
}

func TestMissingPrivileges(t *testing.T) {
	s := postgres.Shared(t)
	url := s.NewDatabase(t)
	owner := connect(t, parse(t, url), database.Limits{})
	execute(t, owner, "CREATE ROLE pruner LOGIN PASSWORD 'p'", `CREATE SCHEMA "odd.""schema"`, `CREATE TABLE "odd.""schema"."in box" (id int)`,
		`GRANT SELECT ON "odd.""schema"."in box" TO pruner`)
	pruner := connect(t, parse(t, s.URLFor("pruner", "p", parse(t, url).Database())), database.Limits{})
	missing := func(q database.Querier, wanted ...string) []string {
		t.Helper()
		got, err := database.MissingPrivileges(t.Context(), q, `odd."schema`, "in box", wanted...)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := missing(pruner, "INSERT", "SELECT", "DELETE"); !slices.Equal(got, []string{"USAGE", "INSERT", "DELETE"}) {
		t.Errorf("without USAGE: %v", got)
	}
	execute(t, owner, `GRANT USAGE ON SCHEMA "odd.""schema" TO pruner`)
	if got := missing(pruner, "SELECT", "DELETE"); !slices.Equal(got, []string{"DELETE"}) {
		t.Errorf("with USAGE: %v", got)
	}
	execute(t, owner, `GRANT DELETE ON "odd.""schema"."in box" TO pruner`)
	if got := missing(pruner, "SELECT", "DELETE"); len(got) != 0 {
		t.Errorf("with all: %v", got)
	}
	if got := missing(pruner); len(got) != 0 {
		t.Errorf("nothing wanted: %v", got)
	}
	for _, names := range [][2]string{{"no_such", "in box"}, {`odd."schema`, "no_such"}} {
		if _, err := database.MissingPrivileges(t.Context(), pruner, names[0], names[1], "SELECT"); !errors.Is(err, database.ErrNotFound) {
			t.Errorf("%v: got %v", names, err)
		}
	}
}
