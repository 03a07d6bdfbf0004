package dbschema

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/messaginginbox/operator/internal/database"
)

func TestClassify(t *testing.T) {
	server := func(code string) error { return fmt.Errorf("apply: %w", &pgconn.PgError{Code: code, Message: "told"}) }
	for _, test := range []struct {
		name   string
		err    error
		class  database.Class
		reason string
	}{
		{"privilege", &PrivilegeError{Role: "app", Missing: []string{"CREATE"}, SQL: "GRANT"}, database.WaitingOnUser, database.ReasonPermissionDenied},
		{"locked", fmt.Errorf("apply: %w", &LockedError{Waited: time.Second}), database.Transient, database.ReasonLockTimeout},
		{"lock on the table", server(lockNotAvailable), database.Transient, database.ReasonLockTimeout},
		{"changed", &PlanChangedError{}, database.Transient, "PlanPending"},
		{"made by another meanwhile", &PlanChangedError{Cause: server(uniqueViolation)}, database.Transient, "PlanPending"},
		{"pooler", fmt.Errorf("apply: %w", ErrPooler), database.WaitingOnUser, database.ReasonInvalidURL},
		{"name", Contract{}.Validate(), database.Terminal, database.ReasonUnexpectedError},
		{"duplicate", server(uniqueViolation), database.WaitingOnUser, ReasonDuplicateRecords},
		{"denied by the server", server("42501"), database.WaitingOnUser, database.ReasonPermissionDenied},
		{"timeout", server(queryCanceled), database.Transient, database.ReasonStatementTimeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			failure := Classify(test.err)
			if failure.Class != test.class || failure.Reason != test.reason || failure.Message == "" {
				t.Errorf("failure is %+v, want %v %s", failure, test.class, test.reason)
			}
		})
	}
	if failure := Classify(nil); failure != (database.Failure{}) {
		t.Errorf("no error is %+v", failure)
	}
}

func TestErrorsNameTheNextStep(t *testing.T) {
	for _, test := range []struct {
		err  error
		want []string
	}{
		{&PrivilegeError{Table: `"a"."b"`, Role: "app", Missing: []string{"CREATE", "USAGE"}, SQL: "GRANT IT;"}, []string{`"app"`, `"a"."b"`, "CREATE and USAGE", "GRANT IT;"}},
		{&LockedError{Table: `"a"."b"`, Holder: "pid 7", Waited: 10 * time.Second}, []string{"pid 7 is changing", `"a"."b"`, "10s"}},
		{&LockedError{Table: `"a"."b"`}, []string{"another session"}},
		{&PlanChangedError{Table: `"a"."b"`, Given: "old", Current: "new"}, []string{"plan old", "plan new"}},
		{&PlanChangedError{Table: `"a"."b"`, Given: "old", Cause: errors.New("exists")}, []string{"plan old", "exists", "inspect it again"}},
	} {
		for _, want := range test.want {
			if !strings.Contains(test.err.Error(), want) {
				t.Errorf("%q lacks %q", test.err, want)
			}
		}
	}
}
