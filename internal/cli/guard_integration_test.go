//go:build integration

package cli

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/symfony"
)

func TestPruneKeepsTheProofsOfMessagesThatWait(t *testing.T) {
	broker := brokers.RunRedis(t)
	options, err := redis.ParseURL(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "outbox", Values: []any{"message", `{"body":"{}","headers":{"message_id":"7"}}`}}).Err(); err != nil {
		t.Fatal(err)
	}
	prune := []string{"prune", "--retention=168h", "--required-window=140h"}
	guards := []string{"--guard=transport=failed&type=doctrine&queueName=failed", "--guard=transport=outbox&type=redis&stream=outbox"}

	t.Run("in a table and in a stream", func(t *testing.T) {
		url := newExpiredInbox(t, 100)
		execute(t, url, symfony.MessagesTable)
		execute(t, url, `INSERT INTO messenger_messages (headers, body, queue_name) VALUES ('{"message_id":"42"}', '{}', 'failed'), ('{}', '{}', 'failed'), ('{"message_id":"43"}', '{}', 'other')`)
		c := command(url, append(prune, guards...)...)
		c.Env = append(c.Env, "INBOX_GUARD_0_URL=doctrine://default", "INBOX_GUARD_1_URL="+broker.URL())
		o := finish(t, c, nil)
		if r := o.report(t); o.code != 0 || r.RowsDeleted != 98 || r.Held == nil || *r.Held != 2 || r.HeldSince == nil || !strings.Contains(r.Message, "1 waiting messages carry no id") {
			t.Errorf("exit code %d, report %s%s", o.code, o.stdout, o.stderr)
		}
		if left := recordsLeft(t, url); left != 12 {
			t.Errorf("%d records are left, want 12", left)
		}
	})
	t.Run("but deletes nothing while a queue cannot be read", func(t *testing.T) {
		url := newExpiredInbox(t, 100)
		c := command(url, append(prune, guards[1])...)
		c.Args = append(c.Args[:len(c.Args)-1], "--guard=transport=outbox&type=redis")
		c.Env = append(c.Env, "INBOX_GUARD_0_URL=redis://:hunter2@127.0.0.1:1/outbox")
		o := finish(t, c, nil)
		if r := o.report(t); o.code != 1 || r.Result != "Failed" || r.Reason != "QueuesUnread" || !strings.Contains(r.Message, "transport outbox") {
			t.Errorf("exit code %d, report %s%s", o.code, o.stdout, o.stderr)
		}
		if strings.Contains(o.stdout+o.stderr, "hunter2") {
			t.Errorf("a password was shown: %s%s", o.stdout, o.stderr)
		}
		if left := recordsLeft(t, url); left != 110 {
			t.Errorf("%d records are left, want 110", left)
		}
	})
	t.Run("and says which variable it misses", func(t *testing.T) {
		o := finish(t, command(newExpiredInbox(t, 1), append(prune, guards[1])...), nil)
		if r := o.report(t); o.code != 1 || !strings.Contains(r.Message, "INBOX_GUARD_0_URL") {
			t.Errorf("exit code %d, report %s%s", o.code, o.stdout, o.stderr)
		}
	})
}
