//go:build integration

package probe_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestAQueueThatGoesMeanwhileAndComesBack(t *testing.T) {
	t.Run("a table of a doctrine transport", func(t *testing.T) {
		database := sharedDatabase(t)
		execute(t, database, messagesTable)
		there := inDatabase(t, "", database, probe.Place{})
		mustSee(t, look(t, there), probe.Observation{})
		execute(t, database, "DROP TABLE messenger_messages")
		mustFail(t, there, probe.ReasonQueueNotFound, "messenger_messages")
		execute(t, database, messagesTable)
		mustSee(t, look(t, there), probe.Observation{})
	})
	t.Run("a group of a redis stream", func(t *testing.T) {
		server := brokers.RunRedis(t)
		client := dial(t, server.URL())
		there := target(t, redelivery.Redis, server.URL()+"/orders", probe.Place{})
		empty := probe.Observation{Redelivered: of(int64(0)), Settings: probe.Settings{PendingEntries: of(int64(0)), StreamLength: of(int64(0))}}
		do(t, client, "XGROUP CREATE orders symfony 0 MKSTREAM")
		mustSee(t, look(t, there), empty)
		do(t, client, "XGROUP DESTROY orders symfony")
		mustFail(t, there, probe.ReasonQueueNotFound, "no group symfony")
		do(t, client, "XGROUP CREATE orders symfony 0")
		mustSee(t, look(t, there), empty)
	})
	t.Run("a tube of beanstalkd", func(t *testing.T) {
		server := brokers.Run(t, brokers.StartBeanstalkd)
		connection := dialBeanstalkd(t, server)
		there := target(t, redelivery.Beanstalkd, "beanstalkd://"+server.Address()+"?tube_name=orders", probe.Place{})
		say := func(command, answer string) {
			t.Helper()
			if _, err := connection.Write([]byte(command + "\r\n")); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(answer)+2)
			if _, err := connection.Read(got); err != nil || string(got) != answer+"\r\n" {
				t.Fatalf("%s: %q, %v", command, got, err)
			}
		}
		say("use orders", "USING orders")
		mustSee(t, look(t, there), probe.Observation{})
		say("use default", "USING default")
		if seen := look(t, there); len(seen.Gaps) != 1 {
			t.Errorf("seen %s, want a gap: beanstalkd forgot the tube", shown(seen))
		}
	})
}

// A broker that worked, and then takes ten seconds for each answer.
func TestABrokerThatBecomesSlowIsLeftAfterTheTimeLimit(t *testing.T) {
	const patience = 5 * time.Second
	mustBeLeft := func(t *testing.T, there probe.Target, reason string) {
		t.Helper()
		started := time.Now()
		mustFail(t, there, reason)
		if took := time.Since(started); took > patience {
			t.Errorf("left after %s", took)
		}
	}
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := brokers.RunRedis(t)
		client := dial(t, server.URL())
		do(t, client, "XGROUP CREATE orders symfony 0 MKSTREAM")
		there := target(t, redelivery.Redis, server.URL()+"/orders", probe.Place{})
		look(t, there)
		do(t, client, "CLIENT PAUSE 10000 ALL")
		mustBeLeft(t, there, probe.ReasonNoAnswer)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		server := postgres.Run(t, postgres.Options{})
		execute(t, server.URL("postgres"), messagesTable)
		there := inDatabase(t, "", server.URL("postgres"), probe.Place{})
		look(t, there)
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		mustBeLeft(t, there, probe.ReasonNoAnswer)
	})
	t.Run("a table that is locked", func(t *testing.T) {
		t.Parallel()
		database := sharedDatabase(t)
		execute(t, database, messagesTable)
		there := inDatabase(t, "", database, probe.Place{})
		connection, err := pgx.Connect(t.Context(), database)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close(context.Background()) })
		if _, err := connection.Exec(t.Context(), "BEGIN; LOCK TABLE messenger_messages IN ACCESS EXCLUSIVE MODE"); err != nil {
			t.Fatal(err)
		}
		mustBeLeft(t, there, "LockTimeout")
	})
}
