//go:build integration

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/postgres"
	"github.com/messaginginbox/operator/test/symfony"
)

// observed is a resource with a redis transport and a doctrine failure transport in the
// inbox's own database.
const observed = `
  database: {urlSecretRef: {name: database}}
  retention: {period: 1000h, applicationPeriod: 1000h}
  pruning: {schedule: '* * * * *'}
  transports:
  - {name: orders, type: redis, failureTransport: failed, observe: {urlSecretRef: {name: redis}}}
  - {name: failed, type: doctrine, inbox: false, redelivery: {maxAge: 336h}, observe: {urlSecretRef: {name: failed}}}`

func TestTransportsAreObserved(t *testing.T) {
	namespace, target := managed(t), postgres.Shared(t).NewDatabase(t)
	broker := brokers.RunRedis(t)
	options, err := redis.ParseURL(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	messages := redis.NewClient(options)
	t.Cleanup(func() { _ = messages.Close() })
	seedRedis(t, messages, 300)
	execute(t, target, symfony.MessagesTable)
	execute(t, target, `INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at)
		SELECT '', '[]', 'failed', u, u FROM (SELECT now() AT TIME ZONE 'utc' - interval '50 hours 20 minutes' AS u) now`)
	putSecretValues(t, namespace, "database", map[string]string{"url": target})
	putSecretValues(t, namespace, "redis", map[string]string{"url": broker.URL() + "/orders/workers?redeliver_timeout=7200"})
	putSecretValues(t, namespace, "failed", map[string]string{"url": "doctrine://default?queue_name=failed"})
	inbox := orders(t, namespace, observed)
	apply(t, inbox)

	seen := await(t, inbox, v1alpha1.ConditionTransportsObserved, metav1.ConditionTrue, v1alpha1.ReasonObserved)
	first, failed := seen.Status.Transports[0], seen.Status.Transports[1]
	if *first.Messages != (v1alpha1.MessageCounts{Pending: 50, InFlight: 250}) || first.Observed.PendingEntries == nil || *first.Observed.PendingEntries != 250 {
		t.Errorf("orders: %+v, %+v", first.Messages, first.Observed)
	}
	if *failed.Messages != (v1alpha1.MessageCounts{Pending: 1}) || failed.OldestAge.Duration != 50*time.Hour {
		t.Errorf("failed: %+v, %s", failed.Messages, failed.OldestAge)
	}
	// redeliver_timeout of the DSN, and 250 observed entries of a minute each for claim and handler.
	if term := first.Terms[0]; term.Value.Duration != 2*time.Hour+250*2*time.Minute || term.Origin != "observed" {
		t.Errorf("the redelivery is %s (%s)", term.Value.Duration, term.Origin)
	}
	mustSay(t, seen, v1alpha1.ConditionRetentionSafe, "orders has a maxPending of 250, not 100")

	t.Run("and nothing is written while nothing changes", func(t *testing.T) {
		before := awaitReady(t, inbox)
		for range 5 {
			touch(t, inbox)
			time.Sleep(300 * time.Millisecond)
		}
		// The minute's pruning tick may write; what was observed does not.
		if after := get(t, inbox); !equality.Semantic.DeepEqual(after.Status.Transports, before.Status.Transports) {
			t.Errorf("the transports were written: %s\n%s", describe(before), describe(get(t, inbox)))
		}
	})
	t.Run("and guard the pruning Job, with URLs from the Secrets only", func(t *testing.T) {
		job := awaitPruningJob(t, namespace)
		container := job.Spec.Template.Spec.Containers[0]
		if !slices.Contains(container.Args, "--guard=transport=failed&type=doctrine") {
			t.Errorf("arguments %q", container.Args)
		}
		index := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "INBOX_GUARD_0_URL" })
		if index < 0 || container.Env[index].ValueFrom.SecretKeyRef.Name != "failed" {
			t.Errorf("environment %+v", container.Env)
		}
	})
	t.Run("a message that is older than maxAge makes the retention unsafe", func(t *testing.T) { overstays(t, inbox, target) })
	t.Run("a message that waits for longer than the retention makes it unsafe", func(t *testing.T) { waitsTooLong(t, inbox, messages, broker.URL()) })
	t.Run("a broker that is down is named, and what was seen still counts", func(t *testing.T) { brokerGoesDown(t, inbox, broker.URL()) })
}

func overstays(t *testing.T, inbox *v1alpha1.MessagingInbox, target string) {
	t.Helper()
	execute(t, target, `UPDATE messenger_messages SET created_at = '2020-02-02 02:02:02', available_at = '2020-02-02 02:02:02'`)
	putSecretValues(t, inbox.Namespace, "failed", map[string]string{"url": "doctrine://default?queue_name=failed&look=again"}) // looks at once
	broken := await(t, inbox, v1alpha1.ConditionRetentionSafe, metav1.ConditionFalse, v1alpha1.ReasonMaxAgeExceeded)
	mustSay(t, broken, v1alpha1.ConditionRetentionSafe, "maxAge is 336h", "2020-02-02T02:02:02Z")
	// A look that fails refutes nothing.
	putSecretValues(t, inbox.Namespace, "failed", map[string]string{"url": "doctrine://default?queue_name=failed&table_name=gone"})
	blind := await(t, inbox, v1alpha1.ConditionTransportsObserved, metav1.ConditionFalse, v1alpha1.ReasonProbeFailed)
	mustSay(t, blind, v1alpha1.ConditionRetentionSafe, "maxAge is 336h", "2020-02-02T02:02:02Z")
	execute(t, target, `DELETE FROM messenger_messages`)
	putSecretValues(t, inbox.Namespace, "failed", map[string]string{"url": "doctrine://default?queue_name=failed&look=anew"})
	awaitReady(t, inbox)
}

// waitsTooLong has workers stand still for 1100 hours.
func waitsTooLong(t *testing.T, inbox *v1alpha1.MessagingInbox, messages *redis.Client, brokerURL string) {
	t.Helper()
	since := time.Now().Add(-1100*time.Hour - time.Minute)
	add := &redis.XAddArgs{Stream: "late", ID: fmt.Sprintf("%d-0", since.UnixMilli()), Values: []any{"message", "{}"}}
	if err := errors.Join(messages.XGroupCreateMkStream(t.Context(), "late", "workers", "0").Err(), messages.XAdd(t.Context(), add).Err()); err != nil {
		t.Fatal(err)
	}
	putSecretValues(t, inbox.Namespace, "redis", map[string]string{"url": brokerURL + "/late/workers"})
	unsafe := await(t, inbox, v1alpha1.ConditionRetentionSafe, metav1.ConditionFalse, v1alpha1.ReasonTooShort)
	mustSay(t, unsafe, v1alpha1.ConditionRetentionSafe, "spec.retention.period is 1000h", "orders has a message that has waited for up to 1101h, longer than 24h")
	putSecretValues(t, inbox.Namespace, "redis", map[string]string{"url": brokerURL + "/orders/workers"})
	awaitReady(t, inbox)
}

func brokerGoesDown(t *testing.T, inbox *v1alpha1.MessagingInbox, brokerURL string) {
	t.Helper()
	putSecretValues(t, inbox.Namespace, "redis", map[string]string{"url": "redis://:hunter2@127.0.0.1:1/orders/workers"})
	down := await(t, inbox, v1alpha1.ConditionTransportsObserved, metav1.ConditionFalse, v1alpha1.ReasonProbeFailed)
	mustSay(t, down, v1alpha1.ConditionTransportsObserved, "orders (Unreachable)", "127.0.0.1:1")
	if strings.Contains(describe(down), "hunter2") {
		t.Error("a password is in the status")
	}
	if kept := down.Status.Transports[0].Observed; kept == nil || kept.PendingEntries == nil {
		t.Errorf("what was seen is forgotten: %+v", kept)
	}
	putSecretValues(t, inbox.Namespace, "redis", map[string]string{"url": brokerURL + "/orders/workers"})
	await(t, inbox, v1alpha1.ConditionTransportsObserved, metav1.ConditionTrue, v1alpha1.ReasonObserved)
}

func seedRedis(t *testing.T, messages *redis.Client, count int) {
	t.Helper()
	ctx := context.Background()
	if err := messages.XGroupCreateMkStream(ctx, "orders", "workers", "0").Err(); err != nil {
		t.Fatal(err)
	}
	for range count {
		if err := messages.XAdd(ctx, &redis.XAddArgs{Stream: "orders", Values: []any{"message", "{}"}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	err := messages.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "workers", Consumer: "one", Streams: []string{"orders", ">"}, Count: int64(count) - 50}).Err()
	if err != nil {
		t.Fatal(err)
	}
}

func awaitPruningJob(t *testing.T, namespace string) *batchv1.Job {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		var jobs batchv1.JobList
		if err := kube.List(t.Context(), &jobs, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		if len(jobs.Items) > 0 {
			return &jobs.Items[0]
		}
	}
	t.Fatal("no pruning Job was created")
	return nil
}
