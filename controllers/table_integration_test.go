//go:build integration

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/metrics"
	"github.com/messaginginbox/operator/internal/pruner"
	"github.com/messaginginbox/operator/internal/tablestats"
)

// restart makes a new manager, which knows only what the status says.
func (s *stepped) restart(t *testing.T) {
	t.Helper()
	s.Reconciler = &Reconciler{
		Client: kube, Live: kube, Events: s.events, Pools: database.NewPools(database.PoolOptions{}), Image: s.Image,
		Clock: s.Clock, Recheck: s.Recheck, SlowRecheck: s.SlowRecheck,
	}
	t.Cleanup(s.Pools.Close)
}

// stepUntil looks again and again, since the statistics arrive a moment late.
func (s *stepped) stepUntil(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if s.step(t); done() {
			return
		}
	}
	t.Fatalf("it did not come to pass; the table's status is %+v and the conditions are\n%s", s.inbox.Status.Table, describe(s.inbox))
}

// hourlyRecords are a record for each of the last hours.
const hourlyRecords = `INSERT INTO messenger_inbox SELECT 'orders', n::text, date_trunc('second', now() AT TIME ZONE 'utc' - n * interval '1 hour') FROM generate_series(0, 330) n`

func TestTheApplicationsOwnPurgeIsFoundOut(t *testing.T) {
	s := newStepped(t, "retention: {period: 336h}\n  pruning: {schedule: '@yearly'}")
	target := s.target(t)
	s.step(t)
	execute(t, target, hourlyRecords)
	s.stepUntil(t, func() bool { return s.inbox.Status.Table.Rows == 331 })
	if !meta.IsStatusConditionTrue(s.inbox.Status.Conditions, v1alpha1.ConditionRetentionSafe) {
		t.Fatalf("before anything was deleted:\n%s", describe(s.inbox))
	}

	execute(t, target, "DELETE FROM messenger_inbox WHERE processed_at < now() AT TIME ZONE 'utc' - interval '168 hours'")
	s.stepUntil(t, func() bool {
		return s.histories.of(client.ObjectKeyFromObject(s.inbox), s.inbox.UID, nil).ForeignDeletes == 163
	})
	execute(t, target, "DELETE FROM messenger_inbox WHERE processed_at < now() AT TIME ZONE 'utc' - interval '167 hours'")
	s.step(t)
	unsafe := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionRetentionSafe)
	if unsafe.Status != metav1.ConditionFalse || unsafe.Reason != v1alpha1.ReasonForeignPurge {
		t.Fatalf("RetentionSafe = %s (%s)", unsafe.Status, unsafe.Reason)
	}
	mustSay(t, s.inbox, v1alpha1.ConditionRetentionSafe, "spec.retention.period is 336h", "at most 167h old", "about 160 deletions by others", "applicationPeriod")
	if ready := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionReady); ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonForeignPurge {
		t.Errorf("Ready = %s (%s)", ready.Status, ready.Reason)
	}
	if observed := s.inbox.Status.Table.ObservedRetention; observed == nil || observed.Truncate(time.Minute) != 167*time.Hour {
		t.Errorf("observedRetention = %v, want 167h", observed)
	}

	s.now = s.now.Add(10 * time.Minute)
	s.restart(t)
	version, table := s.inbox.ResourceVersion, s.inbox.Status.Table.DeepCopy()
	s.step(t)
	after := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionRetentionSafe)
	if *after != *unsafe || s.inbox.ResourceVersion != version {
		t.Errorf("a restart changed the finding:\n%+v\n%+v\nor the table:\n%+v\n%+v", unsafe, after, table, s.inbox.Status.Table)
	}
	if s.now = s.now.Add(time.Hour); len(s.jobs(t)) != 0 {
		t.Error("a pruning Job was created although records vanish too early")
	}

	change(t, s.inbox, func(spec *v1alpha1.MessagingInboxSpec) {
		spec.Retention.ApplicationPeriod = &v1alpha1.Duration{Duration: metav1.Duration{Duration: 167 * time.Hour}}
	})
	s.step(t)
	if !meta.IsStatusConditionTrue(s.inbox.Status.Conditions, v1alpha1.ConditionRetentionSafe) || s.inbox.Status.Table.ObservedRetention != nil {
		t.Errorf("the application's retention is declared now, and covers the window:\n%s", describe(s.inbox))
	}
}

func TestTheOperatorsOwnDeletionsAreNotForeign(t *testing.T) {
	s := newStepped(t, "retention: {period: 168h}\n  pruning: {schedule: '@yearly'}")
	target := s.target(t)
	s.step(t)
	execute(t, target, hourlyRecords)
	s.stepUntil(t, func() bool { return s.inbox.Status.Table.Rows == 331 })

	prune := func(rows int64, exitCode int32, reported bool) {
		t.Helper()
		s.now = s.now.AddDate(1, 0, 0)
		s.step(t)
		jobs := s.jobs(t)
		job := &jobs[len(jobs)-1]
		execute(t, target, fmt.Sprintf("DELETE FROM messenger_inbox WHERE ctid IN (SELECT ctid FROM messenger_inbox ORDER BY processed_at LIMIT %d)", rows))
		s.step(t) // a look while the Job is at work
		if !reported {
			s.end(t, job, exitCode, nil)
		} else {
			cutoff := time.Now().Add(-168 * time.Hour).UTC()
			s.end(t, job, exitCode, &pruner.Report{Result: pruner.ResultDone, Message: "Nothing is left.", RowsDeleted: rows, Cutoff: &cutoff})
		}
	}
	prune(100, 0, true)
	s.now = s.now.Add(5 * time.Minute)
	history := func() int64 {
		return s.histories.of(client.ObjectKeyFromObject(s.inbox), s.inbox.UID, nil).ForeignDeletes
	}
	counted := func(deleted int64) func() bool {
		return func() bool {
			return s.histories.of(client.ObjectKeyFromObject(s.inbox), s.inbox.UID, nil).Last.Deleted == deleted
		}
	}
	if s.stepUntil(t, counted(100)); history() != 0 {
		t.Errorf("after the operator's own run %d foreign deletions", history())
	}
	prune(20, 1, false)
	s.now = s.now.Add(5 * time.Minute)
	if s.stepUntil(t, counted(120)); history() != 0 {
		t.Errorf("after a run that left no report %d foreign deletions", history())
	}
	execute(t, target, "DELETE FROM messenger_inbox WHERE ctid IN (SELECT ctid FROM messenger_inbox ORDER BY processed_at LIMIT 7)")
	if s.stepUntil(t, counted(127)); history() != 7 {
		t.Errorf("after 7 deletions by another %d foreign deletions", history())
	}
	if !meta.IsStatusConditionTrue(s.inbox.Status.Conditions, v1alpha1.ConditionRetentionSafe) {
		t.Errorf("expired records may be deleted by anybody:\n%s", describe(s.inbox))
	}
}

// countedWrites counts the status writes that are begun.
type countedWrites struct {
	client.Client
	count int
}

func (c *countedWrites) Status() client.SubResourceWriter {
	c.count++
	return c.Client.Status()
}

func TestAnIdleTableCausesNoWrites(t *testing.T) {
	s := newStepped(t, "pruning: {suspend: true}\n  retention: {period: 336h, maxTableSize: 1Gi}")
	execute(t, s.target(t), "CREATE TABLE messenger_inbox (transport varchar(190), message_id varchar(255), processed_at timestamptz NOT NULL, PRIMARY KEY (transport, message_id))")
	execute(t, s.target(t), "CREATE INDEX ON messenger_inbox (processed_at)")
	execute(t, s.target(t), hourlyRecords)
	execute(t, s.target(t), "INSERT INTO messenger_inbox VALUES ('orders', 'x', clock_timestamp() - interval '333 hours')")
	s.stepUntil(t, func() bool { return s.inbox.Status.Table != nil && s.inbox.Status.Table.Rows == 332 })
	for range 5 { // the sessions above may have more to report
		time.Sleep(200 * time.Millisecond)
		s.step(t)
	}
	table, writes := s.inbox.Status.Table.DeepCopy(), &countedWrites{Client: kube}
	s.Client = writes
	for range 20 {
		s.now = s.now.Add(5 * time.Minute)
		s.step(t)
	}
	s.restart(t)
	s.Client = writes
	s.step(t)
	if writes.count != 0 {
		t.Errorf("the status was written %d times although nothing changed:\n%+v\n%+v", writes.count, table, s.inbox.Status.Table)
	}
	if table = s.inbox.Status.Table; table.IndexBytes == 0 || table.LookedAt == nil || table.Baseline == nil || table.Baseline.Oldest.Nanosecond() == 0 {
		t.Errorf("table = %+v", table)
	}
}

func TestATableTooLargeWarnsAndStaysReady(t *testing.T) {
	s := newStepped(t, "retention: {maxTableSize: 8Ki}\n  pruning: {schedule: '@yearly'}")
	s.step(t)
	s.now = s.now.AddDate(1, 0, 0)
	s.step(t)
	jobs := s.jobs(t)
	s.end(t, &jobs[0], 0, &pruner.Report{Result: pruner.ResultDone, Message: "Nothing is left."})
	execute(t, s.target(t), hourlyRecords)
	s.stepUntil(t, func() bool { return s.inbox.Status.Table.Rows == 331 })
	warned := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionPruningHealthy)
	if warned.Status != metav1.ConditionTrue || warned.Reason != v1alpha1.ReasonTableGrows {
		t.Errorf("PruningHealthy = %s (%s)", warned.Status, warned.Reason)
	}
	mustSay(t, s.inbox, v1alpha1.ConditionReady, "spec.retention.maxTableSize is 8Ki")
	if !meta.IsStatusConditionTrue(s.inbox.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("a large table is no reason to be not ready:\n%s", describe(s.inbox))
	}
	if err := kube.Create(t.Context(), func() *v1alpha1.MessagingInbox {
		refused := orders(t, s.inbox.Namespace, "")
		refused.Name = "refused"
		refused.Spec.Retention.MaxTableSize = s.inbox.Spec.Retention.MaxTableSize
		refused.Spec.Retention.MaxTableSize.Set(0)
		return refused
	}()); err == nil || !strings.Contains(err.Error(), "maxTableSize must be more than 0") {
		t.Errorf("a limit of 0: %v", err)
	}
}

func TestMetricsComeAndGoWithTheirResource(t *testing.T) {
	s := newStepped(t, `transports: [{name: orders, type: amqp, failureTransport: failed}, {name: failed, type: doctrine, inbox: false, redelivery: {maxAge: 24h}}]`)
	s.Metrics = &metrics.Collector{}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.Metrics)
	names := func() (names []string) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			names = append(names, family.GetName())
		}
		return names
	}
	s.step(t)
	for _, want := range []string{
		"messaginginbox_table_size_bytes", "messaginginbox_retention_margin_seconds", "messaginginbox_transport_window_seconds",
		"messaginginbox_condition_status", "messaginginbox_foreign_deleted_rows_total", "messaginginbox_failure_max_age_seconds", "messaginginbox_pruned_rows_total",
	} {
		if !slices.Contains(names(), want) {
			t.Errorf("no series of %s", want)
		}
	}
	if err := kube.Delete(t.Context(), s.inbox); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reconcile(quietLogger(t), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.inbox)}); err != nil {
		t.Fatal(err)
	}
	if left := names(); len(left) != 0 {
		t.Errorf("the resource is gone, its series are not: %q", left)
	}
}

func TestADrillsOwnTracesAreNotCounted(t *testing.T) {
	s := newStepped(t, "pruning: {suspend: true}\n  drill: {schedule: '@yearly'}")
	s.step(t)
	s.runDrill(t, s.theOneDrill(t))
	history := func() *tablestats.History {
		return s.histories.of(client.ObjectKeyFromObject(s.inbox), s.inbox.UID, nil)
	}
	awaitStatistics(t, s.target(t)) // in a cluster a look waits for them by itself
	s.step(t)
	drilled := history().Last
	if drilled.Deleted == 0 || drilled.IndexReads == 0 {
		t.Fatalf("the drill left no traces to leave out: %+v", drilled)
	}
	execute(t, s.target(t), "INSERT INTO messenger_inbox SELECT 'orders', n::text, now() FROM generate_series(1, 10) n; DELETE FROM messenger_inbox WHERE message_id < '3'")
	s.stepUntil(t, func() bool { return history().Last.Deleted > drilled.Deleted })
	if found := history(); found.ForeignDeletes != 3 || found.Skips != 0 { // 1, 10 and 2
		t.Errorf("%d foreign deletions and %d skips, want 3 and 0", found.ForeignDeletes, found.Skips)
	}
}

// awaitStatistics waits until the sessions that ended have handed in their numbers: until
// none has changed for two seconds.
func awaitStatistics(t *testing.T, target string) {
	t.Helper()
	const numbers = "SELECT n_tup_del + n_tup_ins + (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'messenger_inbox') FROM pg_stat_user_tables WHERE relname = 'messenger_inbox'"
	last, since := queryInt(t, target, numbers), time.Now()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if now := queryInt(t, target, numbers); now != last || now == 0 {
			last, since = now, time.Now()
		}
		if time.Since(since) > 2*time.Second {
			return
		}
	}
	t.Fatal("the statistics do not come to rest")
}
