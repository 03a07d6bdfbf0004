//go:build integration

package cli

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/certificates"
	"github.com/messaginginbox/operator/test/postgres"
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
	t.Run("through TLS, by the authority of each queue", func(t *testing.T) { guardThroughTLS(t, prune, guards) })
	t.Run("and says which variable it misses", func(t *testing.T) {
		o := finish(t, command(newExpiredInbox(t, 1), append(prune, guards[1])...), nil)
		if r := o.report(t); o.code != 1 || !strings.Contains(r.Message, "INBOX_GUARD_0_URL") {
			t.Errorf("exit code %d, report %s%s", o.code, o.stdout, o.stderr)
		}
	})
}

func guardThroughTLS(t *testing.T, prune, guards []string) {
	authority := certificates.New(t)
	broker := brokers.RunRedisTLS(t, certificates.Must(t)(authority.Issue("127.0.0.1")))
	client := broker.Client()
	t.Cleanup(func() { _ = client.Close() })
	if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "outbox", Values: []any{"message", `{"body":"{}","headers":{"message_id":"7"}}`}}).Err(); err != nil {
		t.Fatal(err)
	}
	server := postgres.Run(t, postgres.Options{TLS: true})
	messages := server.NewDatabase(t)
	execute(t, messages, symfony.MessagesTable)
	execute(t, messages, `INSERT INTO messenger_messages (headers, body, queue_name) VALUES ('{"message_id":"42"}', '{}', 'failed')`)
	bare, _, _ := strings.Cut(messages, "?")

	both := []string{"INBOX_GUARD_0_URL=" + bare + "?sslmode=verify-full", "INBOX_GUARD_1_URL=" + broker.URL()}
	trusted := []string{"INBOX_GUARD_0_CA=" + string(server.CAPEM()), "INBOX_GUARD_1_CA=" + string(authority.PEM)}
	for name, tested := range map[string]struct {
		environment []string
		held        int64
		says        []string
	}{
		"of both":                             {append(both, trusted...), 2, nil},
		"of the stream, but not of the table": {append(both, trusted[1]), 0, []string{"transport failed", "not trusted", "observe.caSecretRef"}},
		"of the table, but not of the stream": {append(both, trusted[0]), 0, []string{"transport outbox", "not trusted", "observe.caSecretRef"}},
		"that is none":                        {append(both, trusted[0], "INBOX_GUARD_1_CA=none"), 0, []string{"INBOX_GUARD_1_CA", "PEM"}},
	} {
		t.Run(name, func(t *testing.T) {
			url := newExpiredInbox(t, 100)
			c := command(url, append(prune, guards...)...)
			c.Env = append(c.Env, tested.environment...)
			mustHold(t, finish(t, c, nil), url, tested.held, tested.says...)
		})
	}
	t.Run("that is the inbox's", func(t *testing.T) {
		url := server.NewDatabase(t)
		expireInbox(t, url, 100)
		inbox, _, _ := strings.Cut(url, "?")
		c := command(inbox+"?sslmode=verify-full", append(prune, guards[0])...)
		c.Env = append(c.Env, both[0], databaseCAVariable+"="+string(server.CAPEM()))
		mustHold(t, finish(t, c, nil), url, 1)
	})
}

// mustHold expects a run that deletes all but the held ones of 100 proofs, or one that
// deletes nothing and says why.
func mustHold(t *testing.T, o outcome, url string, held int64, says ...string) {
	t.Helper()
	r, left := o.report(t), recordsLeft(t, url)
	if len(says) == 0 && (o.code != 0 || (r.Held == nil || *r.Held != held) || r.RowsDeleted != 100-held || left != 10+held) ||
		len(says) > 0 && (o.code == 0 || left != 110) {
		t.Errorf("exit code %d, %d records left, report %s%s", o.code, left, o.stdout, o.stderr)
	}
	for _, part := range says {
		if !strings.Contains(r.Message, part) {
			t.Errorf("the message lacks %q: %s", part, r.Message)
		}
	}
}
