//go:build integration

package samedatabase_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/samedatabase"
	"github.com/messaginginbox/operator/test/pgbouncer"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m, postgres.Options{})) }

const inboxTable = `CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL,
	processed_at timestamp(0) NOT NULL, PRIMARY KEY (transport, message_id))`

func connect(t *testing.T, raw string) *pgx.Conn {
	t.Helper()
	config, err := database.Parse(raw)
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

func compare(t *testing.T, inbox, handler string) samedatabase.Verdict {
	t.Helper()
	verdict, err := samedatabase.Compare(t.Context(), connect(t, inbox), connect(t, handler), "public", "messenger_inbox")
	if err != nil {
		t.Fatal(err)
	}
	return verdict
}

func wantReason(t *testing.T, verdict samedatabase.Verdict, reason string) {
	t.Helper()
	if verdict.Reason != reason || verdict.Shared != (reason == samedatabase.ReasonShared) {
		t.Errorf("verdict is %+v, want the reason %s", verdict, reason)
	}
}

func nameOf(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

func TestOneDatabaseByEveryWayToReachIt(t *testing.T) {
	s := postgres.Shared(t)
	direct := s.NewDatabase(t)
	execute(t, connect(t, direct), inboxTable)
	name := nameOf(t, direct)
	bySession := pgbouncer.Run(t, s, pgbouncer.Options{Mode: pgbouncer.Session})
	byTransaction := pgbouncer.Run(t, s, pgbouncer.Options{Mode: pgbouncer.Transaction, PoolSize: 2})
	ways := map[string]string{
		"by its address":                        direct,
		"by another host name":                  strings.Replace(direct, "127.0.0.1", "localhost", 1),
		"through the Unix socket":               fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s", s.SocketDir(), s.Port(), postgres.Superuser, s.Password(), name),
		"through PgBouncer in session mode":     bySession.URL(name),
		"through PgBouncer in transaction mode": byTransaction.URL(name),
	}
	for inboxWay, inbox := range ways {
		for handlerWay, handler := range ways {
			t.Run(inboxWay+" and "+handlerWay, func(t *testing.T) {
				wantReason(t, compare(t, inbox, handler), samedatabase.ReasonShared)
			})
		}
	}
}

func TestAnotherDatabaseOfTheServer(t *testing.T) {
	s := postgres.Shared(t)
	inbox, other := s.NewDatabase(t), s.NewDatabase(t)
	execute(t, connect(t, inbox), inboxTable)
	execute(t, connect(t, other), inboxTable)
	verdict := compare(t, inbox, other)
	wantReason(t, verdict, samedatabase.ReasonOtherDatabase)
	if !strings.Contains(verdict.Message, nameOf(t, other)) {
		t.Errorf("the message does not name the database: %s", verdict.Message)
	}
	pooler := pgbouncer.Run(t, s, pgbouncer.Options{Mode: pgbouncer.Transaction})
	wantReason(t, compare(t, inbox, pooler.URL(nameOf(t, other))), samedatabase.ReasonOtherDatabase)
}

func TestAnotherServer(t *testing.T) {
	other := postgres.Run(t, postgres.Options{})
	wantReason(t, compare(t, postgres.Shared(t).URL("postgres"), other.URL("postgres")), samedatabase.ReasonOtherServer)
}

func TestReplicaAndThenItsPromotionToAClone(t *testing.T) {
	s := postgres.Run(t, postgres.Options{})
	inbox := s.URL("postgres")
	execute(t, connect(t, inbox), inboxTable)
	replica, err := s.Replica(t.Context(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := replica.Stop(); err != nil {
			t.Error(err)
		}
	})
	wantReason(t, compare(t, inbox, replica.URL("postgres")), samedatabase.ReasonReplica)

	// Now it has the same system identifier, names and oids, and takes writes.
	execute(t, connect(t, replica.URL("postgres")), "SELECT pg_promote()")
	verdict := compare(t, inbox, replica.URL("postgres"))
	wantReason(t, verdict, samedatabase.ReasonClone)
	pooler := pgbouncer.Run(t, replica, pgbouncer.Options{Mode: pgbouncer.Transaction})
	wantReason(t, compare(t, inbox, pooler.URL("postgres")), samedatabase.ReasonClone)
}

func TestRoleThatMayNotReadTheSystemIdentifierStillFindsOut(t *testing.T) {
	s := postgres.Run(t, postgres.Options{})
	for _, name := range []string{"inbox", "other"} {
		if err := s.CreateDatabase(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		execute(t, connect(t, s.URL(name)), inboxTable, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
	}
	execute(t, connect(t, s.URL("inbox")), "CREATE ROLE app LOGIN PASSWORD 'secret'")
	wantReason(t, compare(t, s.URLFor("app", "secret", "inbox"), s.URLFor("app", "secret", "inbox")), samedatabase.ReasonShared)
	wantReason(t, compare(t, s.URLFor("app", "secret", "inbox"), s.URLFor("app", "secret", "other")), samedatabase.ReasonOtherServer)
}

func TestTableOfTheHandlersConnection(t *testing.T) {
	inbox := postgres.Shared(t).NewDatabase(t)
	handler := inbox + "&options=-csearch_path%3Dapp,public"
	execute(t, connect(t, inbox), "CREATE SCHEMA app")
	wantReason(t, compare(t, inbox, handler), samedatabase.ReasonTableMissing)
	execute(t, connect(t, inbox), inboxTable)
	wantReason(t, compare(t, inbox, handler), samedatabase.ReasonShared)
	execute(t, connect(t, inbox), "SET search_path TO app", inboxTable)
	verdict := compare(t, inbox, handler)
	wantReason(t, verdict, samedatabase.ReasonOtherTable)
	if !strings.Contains(verdict.Message, "app.messenger_inbox") {
		t.Errorf("the message does not name the table: %s", verdict.Message)
	}
	outside := compare(t, inbox, inbox+"&options=-csearch_path%3Dpg_catalog")
	wantReason(t, outside, samedatabase.ReasonShared)
	if !strings.Contains(outside.Message, "not in the search_path") {
		t.Errorf("the message does not warn: %s", outside.Message)
	}
}

func TestReadOnlyTransactionsOfTheHandlers(t *testing.T) {
	inbox := postgres.Shared(t).NewDatabase(t)
	execute(t, connect(t, inbox), inboxTable)
	wantReason(t, compare(t, inbox, inbox+"&options=-cdefault_transaction_read_only%3Don"), samedatabase.ReasonReadOnly)
}

func TestPoolerWithOneServerConnectionForBothIsAnErrorInTime(t *testing.T) {
	s := postgres.Shared(t)
	name := nameOf(t, s.NewDatabase(t))
	small := pgbouncer.Run(t, s, pgbouncer.Options{Mode: pgbouncer.Transaction, PoolSize: 1})
	inbox, handler := connect(t, small.URL(name)), connect(t, small.URL(name))
	started := time.Now()
	_, err := samedatabase.Compare(t.Context(), inbox, handler, "public", "messenger_inbox")
	if err == nil || !strings.Contains(err.Error(), "two server connections") {
		t.Errorf("the error is %v", err)
	}
	if waited := time.Since(started); waited > 30*time.Second {
		t.Errorf("it took %s", waited)
	}
}
