//go:build integration

package waiting

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/postgres"
	"github.com/messaginginbox/operator/test/symfony"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m, postgres.Options{})) }

const stamped = `{"X-Message-Stamp-Symfony\\Component\\Messenger\\Stamp\\MessageIdStamp":"[{\"id\":\"%s\"}]"}`

// table is a doctrine failure queue with these pairs of headers and body.
func table(t *testing.T, messages ...[2]string) (probe.Target, *pgx.Conn) {
	t.Helper()
	url := postgres.Shared(t).NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	run := func(sql string, arguments ...any) {
		if _, execErr := conn.Exec(t.Context(), sql, arguments...); execErr != nil {
			t.Fatal(execErr)
		}
	}
	run(symfony.MessagesTable)
	for _, message := range messages {
		run(`INSERT INTO messenger_messages (headers, body, queue_name) VALUES ($1, $2, 'failed')`, message[0], message[1])
	}
	run(`INSERT INTO messenger_messages (headers, body, queue_name) VALUES ($1, '', 'other')`, fmt.Sprintf(stamped, "of another queue"))
	return failedIn(t, url), conn
}

// failedIn is the queue failed in the database of the URL.
func failedIn(t *testing.T, url string) probe.Target {
	t.Helper()
	config, err := database.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	pools := database.NewPools(database.PoolOptions{MaxConns: 1})
	t.Cleanup(pools.Close)
	target, err := probe.NewDoctrineTarget("failed", "doctrine://default?queue_name=failed", probe.Place{}, config, pools, "test")
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// stream is a redis failure transport.
func stream(t *testing.T) (probe.Target, *redis.Client) {
	t.Helper()
	broker := brokers.RunRedis(t)
	options, err := redis.ParseURL(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	target, err := probe.NewTarget("failed", redelivery.Redis, broker.URL()+"/failed", probe.Place{})
	if err != nil {
		t.Fatal(err)
	}
	return target, client
}

func mustRead(t *testing.T, limit int, targets ...probe.Target) Messages {
	t.Helper()
	messages, err := Read(t.Context(), targets, limit)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(messages.IDs)
	return messages
}

func TestTheWaitingMessagesOfAllQueues(t *testing.T) {
	failed, _ := table(t,
		[2]string{fmt.Sprintf(stamped, "a"), "{}"},
		[2]string{"[]", symfony.AddSlashes(envelope)},
		[2]string{`{"message_id": "b"}`, "{}"},
		[2]string{"no JSON", "{}"})
	outbox, client := stream(t)
	if err := client.XGroupCreateMkStream(t.Context(), "failed", "symfony", "0").Err(); err != nil {
		t.Fatal(err)
	}
	entry := func(id string) string { return `{"body":"{}","headers":` + fmt.Sprintf(stamped, id) + `}` }
	for _, values := range [][]any{{"message", entry("c")}, {"message", entry("d")}, {"message", "\xff\xfe"}, {"message_id", "e"}} {
		if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "failed", Values: values}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "symfony", Consumer: "one", Streams: []string{"failed", ">"}, Count: 1}).Err(); err != nil {
		t.Fatal(err) // c is delivered and not acknowledged: it still waits
	}
	if err := client.ZAdd(t.Context(), "failed__queue", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: entry("f")}).Err(); err != nil {
		t.Fatal(err)
	}
	messages := mustRead(t, 100, failed, outbox)
	if want := []string{id, "a", "b", "c", "d", "e", "f"}; !slices.Equal(messages.IDs, want) {
		t.Errorf("ids %q, want %q", messages.IDs, want)
	}
	if messages.Unidentified != 2 || messages.Exceeded != "" {
		t.Errorf("%d unidentified, exceeded %q; want 2 and none", messages.Unidentified, messages.Exceeded)
	}
}

func TestMoreThanTheLimitIsSaid(t *testing.T) {
	var rows [][2]string
	for n := range 11 {
		rows = append(rows, [2]string{fmt.Sprintf(stamped, fmt.Sprint(n)), ""})
	}
	failed, conn := table(t, rows...)
	if messages := mustRead(t, 10, failed); messages.Exceeded != "failed" {
		t.Errorf("exceeded %q by 11 of 10", messages.Exceeded)
	}
	if _, err := conn.Exec(t.Context(), `DELETE FROM messenger_messages WHERE id = 1`); err != nil {
		t.Fatal(err)
	}
	if messages := mustRead(t, 10, failed); messages.Exceeded != "" || len(messages.IDs) != 10 {
		t.Errorf("exceeded %q by 10 of 10", messages.Exceeded)
	}
}

func TestAnEmptyOrMissingStreamHasNoMessages(t *testing.T) {
	target, _ := stream(t)
	if messages := mustRead(t, 10, target); len(messages.IDs) != 0 || messages.Unidentified != 0 {
		t.Errorf("messages %+v", messages)
	}
}

func TestAQueueThatCannotBeReadIsAnError(t *testing.T) {
	failed, conn := table(t)
	if _, err := conn.Exec(t.Context(), `DROP TABLE messenger_messages`); err != nil {
		t.Fatal(err)
	}
	down, err := probe.NewTarget("failed", redelivery.Redis, "redis://:hunter2@127.0.0.1:1/failed", probe.Place{})
	if err != nil {
		t.Fatal(err)
	}
	for reason, target := range map[string]probe.Target{probe.ReasonQueueNotFound: failed, probe.ReasonUnreachable: down} {
		_, err := Read(t.Context(), []probe.Target{target}, 10)
		var failure *probe.Failure
		if !errors.As(err, &failure) || failure.Reason != reason || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v, want one of reason %s", err, reason)
		}
	}
}
