//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/controllers"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/environment"
	"github.com/messaginginbox/operator/test/symfony"
)

// onlyByHand never fires while a test runs.
const onlyByHand = "pruning: {schedule: '0 0 1 1 *'}\n"

// prune makes a Job now, as kubectl inbox prune does, and waits until its run is in the status.
func (made team) prune(t *testing.T) *v1alpha1.MessagingInbox {
	t.Helper()
	image := controllers.JobImage{PullPolicy: corev1.PullIfNotPresent, Name: kubectl(t, "-n", environment.Namespace, "get", "deployment", "messaging-inbox-manager",
		"-o", "jsonpath={.spec.template.spec.containers[0].image}")}
	job, err := controllers.PruneNow(t.Context(), kube, made.inbox(t), image, false)
	if err != nil {
		t.Fatal(err)
	}
	return made.await(t, "the end of "+job.Name, func(inbox *v1alpha1.MessagingInbox) bool {
		return inbox.Status.Pruning != nil && inbox.Status.Pruning.LastRun != nil && inbox.Status.Pruning.LastRun.Job == job.Name
	})
}

// mustHold compares what a run deleted and held, and which expired records are left.
func (made team) mustHold(t *testing.T, inbox *v1alpha1.MessagingInbox, deleted, held int64, since, left string) {
	t.Helper()
	run := inbox.Status.Pruning.LastRun
	if run.Result != v1alpha1.RunDone || run.RowsDeleted != deleted || run.Held == nil || *run.Held != held {
		t.Errorf("lastRun = %+v, want %d records deleted and %d held", run, deleted, held)
	}
	if found := made.expired(t); found != left {
		t.Errorf("the expired records that are left are %q, want %q", found, left)
	}
	shown := fmt.Sprintf("      held: %d\n", held)
	if since != "" {
		shown += fmt.Sprintf("      heldSince: %q\n", since)
	}
	if text := kubectl(t, "-n", made.namespace, "get", "messaginginbox", "orders", "-o", "yaml"); !strings.Contains(text, shown) {
		t.Errorf("kubectl get does not show\n%s\nbut\n%s", shown, text)
	}
}

// mustNotHavePruned expects that the run deleted nothing, and that the condition says why.
func (made team) mustNotHavePruned(t *testing.T, inbox *v1alpha1.MessagingInbox, reason, left string, says ...string) {
	t.Helper()
	healthy := meta.FindStatusCondition(inbox.Status.Conditions, v1alpha1.ConditionPruningHealthy)
	if healthy.Status != metav1.ConditionFalse || healthy.Reason != reason {
		t.Errorf("PruningHealthy is %s (%s): %s", healthy.Status, healthy.Reason, healthy.Message)
	}
	for _, part := range says {
		if !strings.Contains(healthy.Message, part) || !strings.Contains(inbox.Status.Pruning.LastRun.Message, part) {
			t.Errorf("%q is not in the condition %q and the run's %q", part, healthy.Message, inbox.Status.Pruning.LastRun.Message)
		}
	}
	if run := inbox.Status.Pruning.LastRun; run.RowsDeleted != 0 || run.Held != nil {
		t.Errorf("lastRun = %+v", run)
	}
	if found := made.expired(t); found != left {
		t.Errorf("the expired records that are left are %q, want %q", found, left)
	}
}

// expired are the ids of the records that no retention of these tests keeps.
func (made team) expired(t *testing.T) string {
	t.Helper()
	return made.text(t, "SELECT coalesce(string_agg(message_id, ' ' ORDER BY message_id), '') FROM messenger_inbox WHERE processed_at < (now() AT TIME ZONE 'utc') - interval '168 hours'")
}

func TestAPodKeepsTheProofsOfMessagesThatWaitInTables(t *testing.T) {
	t.Parallel()
	const password = "hunter2-of-the-pruner"
	made := newTeam(t)
	made.execute(t, symfony.MessagesTable)
	// The role may prune, and not read the messages.
	made.execute(t, "CREATE ROLE guarded_pruner LOGIN PASSWORD '"+password+"'; ALTER DEFAULT PRIVILEGES GRANT SELECT, DELETE ON TABLES TO guarded_pruner")
	made.putSecret(t, "pruner", made.as("guarded_pruner", password))
	made.putSecret(t, "failed", "doctrine://default?queue_name=failed")
	made.putSecret(t, "outbox", "doctrine://default?queue_name=outbox")
	made.apply(t, onlyByHand+`database: {urlSecretRef: {name: database}, pruningURLSecretRef: {name: pruner}}
transports:
- {name: orders, type: amqp, failureTransport: failed, outbox: outbox}
- {name: failed, type: doctrine, inbox: false, redelivery: {maxAge: 48h}, observe: {urlSecretRef: {name: failed}}}
- {name: outbox, type: doctrine, inbox: false, observe: {urlSecretRef: {name: outbox}}}`)
	made.awaitReady(t)

	made.execute(t, records)
	made.execute(t, `INSERT INTO messenger_inbox VALUES ('orders', 'as-json', '2020-02-02 02:02:02'), ('orders', 'as-php', '2020-03-03'), ('orders', 'in-outbox', '2020-04-04'), ('orders', 'unheld', '2020-01-01')`)
	send := func(queue, headers, body string) {
		made.execute(t, "INSERT INTO messenger_messages (queue_name, headers, body) VALUES ($1, $2, $3)", queue, headers, body)
	}
	for _, id := range []string{"as-json", "new-1", "never handled"} {
		headers, body := symfony.JSON(id)
		send("failed", headers, body)
	}
	headers, body := symfony.PHP("as-php")
	send("failed", headers, body)
	headers, body = symfony.JSON("in-outbox")
	send("outbox", headers, body)
	headers, body = symfony.JSON("unheld")
	send("of nobody", headers, body)
	made.mustHold(t, made.prune(t), 1001, 3, "2020-02-02T02:02:02Z", "as-json as-php in-outbox")

	made.execute(t, "DELETE FROM messenger_messages")
	made.mustHold(t, made.prune(t), 3, 0, "", "")

	made.execute(t, "INSERT INTO messenger_inbox VALUES ('orders', 'm7', '2020-05-05'), ('orders', 'unheld', '2020-01-01')")
	made.execute(t, `INSERT INTO messenger_messages (queue_name, headers, body) SELECT 'outbox', '{"message_id":"m' || n || '"}', '{"order":5}' FROM generate_series(1, 100001) n`)
	made.mustNotHavePruned(t, made.prune(t), v1alpha1.ReasonRunRefused, "m7 unheld", "more than 100000 messages wait", "transport outbox", "Handle or remove messages there")
	made.execute(t, `DELETE FROM messenger_messages WHERE headers = '{"message_id":"m100001"}'`)
	made.mustHold(t, made.prune(t), 1, 1, "2020-05-05T00:00:00Z", "m7")
	made.mustShowNo(t, env.Postgres.Password(), password)
}

func TestAPodKeepsTheProofsOfMessagesThatWaitInRedis(t *testing.T) {
	t.Parallel()
	const password = "hunter2-of-redis"
	made := newTeam(t)
	broker := brokers.RunRedis(t, "--bind", "127.0.0.1", env.Postgres.Host(), "--protected-mode", "no")
	options, err := redis.ParseURL(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	administrator := redis.NewClient(options)
	t.Cleanup(func() { _ = administrator.Close() })
	run := func(command ...any) {
		t.Helper()
		if err := administrator.Do(t.Context(), command...).Err(); err != nil {
			t.Fatalf("%v: %v", command, err)
		}
	}
	// The rights that docs/runbook.md names, and no other.
	run("ACL", "SETUSER", "inbox", "on", ">"+password, "~failed", "~failed__queue", "+xinfo|groups", "+xlen", "+xpending", "+xrange", "+zcount", "+zcard", "+zrevrange")
	run("XGROUP", "CREATE", "failed", "symfony", "0", "MKSTREAM")
	run("XADD", "failed", "*", "message", symfony.Entry(symfony.JSON("delivered")))
	run("XREADGROUP", "GROUP", "symfony", "consumer", "STREAMS", "failed", ">")
	run("XADD", "failed", "*", "message", symfony.Entry(symfony.JSON("as-json")))
	run("XADD", "failed", "*", "message", symfony.Entry(symfony.PHP("as-php")))
	run("ZADD", "failed__queue", time.Now().Add(time.Hour).UnixMilli(), symfony.Entry(symfony.JSON("delayed")))

	made.putSecret(t, "failed", strings.Replace(broker.URL(), "127.0.0.1", "inbox:"+password+"@"+env.Postgres.Host(), 1)+"/failed/symfony")
	made.apply(t, onlyByHand+`transports:
- {name: orders, type: amqp, failureTransport: failed}
- {name: failed, type: redis, inbox: false, redelivery: {maxAge: 48h}, observe: {urlSecretRef: {name: failed}}}`)
	made.awaitReady(t)
	made.execute(t, records)
	made.execute(t, `INSERT INTO messenger_inbox VALUES ('orders', 'as-json', '2020-03-03'), ('orders', 'as-php', '2020-02-02 02:02:02'), ('orders', 'delayed', '2020-04-04'), ('orders', 'delivered', '2020-05-05'), ('orders', 'unheld', '2020-01-01')`)
	made.awaitCondition(t, v1alpha1.ConditionTransportsObserved, metav1.ConditionTrue, v1alpha1.ReasonObserved)
	made.mustHold(t, made.prune(t), 1001, 4, "2020-02-02T02:02:02Z", "as-json as-php delayed delivered")

	made.execute(t, "INSERT INTO messenger_inbox VALUES ('orders', 'unheld', '2020-01-01')")
	run("CONFIG", "SET", "bind", "127.0.0.1") // pods and the manager are refused from now on
	made.mustNotHavePruned(t, made.prune(t), v1alpha1.ReasonRunFailed, "as-json as-php delayed delivered unheld", "transport failed", env.Postgres.Host(), "check host, port and network policy", "nothing was deleted")
	run("CONFIG", "SET", "bind", "127.0.0.1 "+env.Postgres.Host())
	made.mustHold(t, made.prune(t), 1, 4, "2020-02-02T02:02:02Z", "as-json as-php delayed delivered")

	run("XTRIM", "failed", "MAXLEN", "0")
	run("DEL", "failed__queue")
	made.mustHold(t, made.prune(t), 4, 0, "", "")
	made.mustShowNo(t, env.Postgres.Password(), password)
}
