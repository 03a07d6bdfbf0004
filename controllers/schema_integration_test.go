//go:build integration

package controllers

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestPolicyPlanWaitsForTheApprovalOfThisVeryPlan(t *testing.T) {
	namespace, target := managed(t), postgres.Shared(t).NewDatabase(t)
	putSecret(t, namespace, "url", target)
	inbox := orders(t, namespace, "schema: {policy: Plan}")
	apply(t, inbox)

	waiting := await(t, inbox, v1alpha1.ConditionSchemaReady, metav1.ConditionFalse, v1alpha1.ReasonPlanApproval)
	plan := waiting.Status.Schema.Plan
	mustSay(t, waiting, v1alpha1.ConditionSchemaReady, "spec.schema.approvedPlan: "+plan.Digest)
	if !strings.Contains(plan.Steps[0].SQL, "CREATE TABLE") {
		t.Errorf("the plan's first step is %q", plan.Steps[0].SQL)
	}
	change(t, inbox, func(spec *v1alpha1.MessagingInboxSpec) {
		spec.Schema.ApprovedPlan = "sha256:" + strings.Repeat("0", 64)
	})
	await(t, inbox, v1alpha1.ConditionSchemaReady, metav1.ConditionFalse, v1alpha1.ReasonPlanApproval)
	if tables := queryInt(t, target, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); tables != 0 {
		t.Fatalf("%d tables were made without approval", tables)
	}
	change(t, inbox, func(spec *v1alpha1.MessagingInboxSpec) { spec.Schema.ApprovedPlan = plan.Digest })
	if ready := awaitReady(t, inbox); ready.Status.Schema.Plan != nil {
		t.Errorf("a plan is left: %+v", ready.Status.Schema.Plan)
	}
}

func TestPolicyObserveLeavesTheTableToTheApplicationsMigration(t *testing.T) {
	namespace, target := managed(t), postgres.Shared(t).NewDatabase(t)
	putSecret(t, namespace, "url", target)
	inbox := orders(t, namespace, "schema: {policy: Observe}")
	apply(t, inbox)

	missing := await(t, inbox, v1alpha1.ConditionSchemaReady, metav1.ConditionFalse, v1alpha1.ReasonTableMissing)
	mustSay(t, missing, v1alpha1.ConditionSchemaReady, "Observe", "migrations")
	execute(t, target, doctrineTable) // the application's migration
	awaitReady(t, inbox)
}

func TestATableOfTheApplicationIsAdoptedAsItIs(t *testing.T) {
	namespace, target := managed(t), postgres.Shared(t).NewDatabase(t)
	execute(t, target, `CREATE SCHEMA app; CREATE TABLE app."In""box" ("von" text NOT NULL, "Nr" uuid NOT NULL, wann timestamptz NOT NULL, PRIMARY KEY ("Nr", "von"))`)
	putSecret(t, namespace, "url", target)
	inbox := orders(t, namespace, `table: {name: 'In"box', columns: {transport: von, messageID: Nr, processedAt: wann}}
  database: {schema: app, urlSecretRef: {name: database}}`)
	apply(t, inbox)

	ready := awaitReady(t, inbox)
	var indexes []string
	for _, index := range ready.Status.Schema.Indexes {
		indexes = append(indexes, index.Definition)
	}
	if len(indexes) != 2 || !strings.Contains(strings.Join(indexes, "\n"), "(wann)") {
		t.Errorf("indexes = %q, want the primary key and one on wann", indexes)
	}
}

func TestWhatIsNotTheInboxIsRefusedAndLeftAlone(t *testing.T) {
	for name, table := range map[string]struct {
		sql, reason string
		says        []string
	}{
		"another package's table": {"CREATE TABLE messenger_inbox (id uuid PRIMARY KEY, body text, headers text, queue_name text, created_at timestamp, available_at timestamp, delivered_at timestamp)",
			v1alpha1.ReasonForeignTable, []string{"queue_name"}},
		"a view": {"CREATE VIEW messenger_inbox AS SELECT 'a'::text AS transport, 'b'::text AS message_id, now() AS processed_at",
			v1alpha1.ReasonNotATable, []string{"view"}},
		"duplicates": {"CREATE TABLE messenger_inbox AS SELECT 'a'::varchar(190) AS transport, (n % 5)::varchar(255) AS message_id, now()::timestamp(0) AS processed_at FROM generate_series(1, 12) n; ALTER TABLE messenger_inbox ALTER transport SET NOT NULL, ALTER message_id SET NOT NULL, ALTER processed_at SET NOT NULL",
			v1alpha1.ReasonDuplicateRecords, []string{"5", "12"}},
		"a date instead of a time": {"CREATE TABLE messenger_inbox (transport text, message_id text, processed_at date NOT NULL, PRIMARY KEY (transport, message_id))",
			v1alpha1.ReasonColumnType, []string{"date"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, target := managed(t), postgres.Shared(t).NewDatabase(t)
			execute(t, target, table.sql)
			putSecret(t, namespace, "url", target)
			inbox := orders(t, namespace, "")
			apply(t, inbox)

			refused := await(t, inbox, v1alpha1.ConditionSchemaReady, metav1.ConditionFalse, table.reason)
			mustSay(t, refused, v1alpha1.ConditionSchemaReady, table.says...)
			if !meta.IsStatusConditionTrue(refused.Status.Conditions, v1alpha1.ConditionStalled) {
				t.Errorf("only a person can mend this, so it is stalled:\n%s", describe(refused))
			}
			if indexes := queryInt(t, target, "SELECT count(*) FROM pg_indexes WHERE tablename = 'messenger_inbox' AND indexname NOT LIKE '%pkey'"); indexes != 0 {
				t.Errorf("%d indexes were added to it", indexes)
			}
		})
	}
}

func TestSuspendObservesOnly(t *testing.T) {
	namespace, target := managed(t), postgres.Shared(t).NewDatabase(t)
	putSecret(t, namespace, "url", target)
	inbox := orders(t, namespace, "suspend: true\n  pruning: {schedule: '* * * * *'}")
	apply(t, inbox)

	suspended := await(t, inbox, v1alpha1.ConditionSchemaReady, metav1.ConditionFalse, v1alpha1.ReasonTableMissing)
	mustSay(t, suspended, v1alpha1.ConditionSchemaReady, "spec.suspend is true")
	await(t, inbox, v1alpha1.ConditionPruningHealthy, metav1.ConditionUnknown, v1alpha1.ReasonSuspended)
	if tables := queryInt(t, target, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); tables != 0 {
		t.Errorf("%d tables were made", tables)
	}
	change(t, inbox, func(spec *v1alpha1.MessagingInboxSpec) { spec.Suspend = false })
	awaitReady(t, inbox)
}

func TestDeletingTheResourceLeavesTheDatabaseAloneAndCannotHang(t *testing.T) {
	server := postgres.Run(t, postgres.Options{})
	namespace, target := managed(t), server.URL("postgres")
	putSecret(t, namespace, "url", target)
	inbox := orders(t, namespace, "")
	apply(t, inbox)
	if ready := awaitReady(t, inbox); len(ready.Finalizers) != 0 {
		t.Errorf("finalizers = %v, want none", ready.Finalizers)
	}
	execute(t, target, "INSERT INTO messenger_inbox VALUES ('orders', 'id', now())")

	if err := server.Pause(); err != nil { // the database answers nobody
		t.Fatal(err)
	}
	if err := kube.Delete(t.Context(), inbox); err != nil {
		t.Fatal(err)
	}
	gone := &v1alpha1.MessagingInbox{}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(inbox), gone); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the resource is still there: %v", err)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	if rows := queryInt(t, target, "SELECT count(*) FROM messenger_inbox"); rows != 1 {
		t.Errorf("%d rows are left of 1", rows)
	}
}

func TestNothingIsWrittenWhileNothingChanges(t *testing.T) {
	namespace, target := managed(t), postgres.Shared(t).NewDatabase(t)
	putSecret(t, namespace, "url", target)
	inbox := orders(t, namespace, "")
	apply(t, inbox)
	before := awaitReady(t, inbox)

	for range 5 {
		touch(t, inbox)
		time.Sleep(300 * time.Millisecond)
	}
	if after := get(t, inbox); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the resource was written: %s, then\n%s", describe(before), describe(after))
	}
}
