//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

const (
	everyMinute = "pruning: {schedule: '* * * * *'}\n"
	safe        = "transports: [{name: orders, type: amqp}]\n"
	// 1000 records that expired under the default retention of 168h, 10 at its edge from
	// the inside, and 100 of today.
	records = `INSERT INTO messenger_inbox SELECT 'orders', 'old-' || n, (now() AT TIME ZONE 'utc') - interval '169 hours' FROM generate_series(1, 1000) n;
		INSERT INTO messenger_inbox SELECT 'orders', 'edge-' || n, (now() AT TIME ZONE 'utc') - interval '167 hours' FROM generate_series(1, 10) n;
		INSERT INTO messenger_inbox SELECT 'orders', 'new-' || n, (now() AT TIME ZONE 'utc') FROM generate_series(1, 100) n`
)

func TestAPodPrunesWhatExpiredAndReportsIt(t *testing.T) {
	t.Parallel()
	made := newTeam(t)
	made.apply(t, safe+everyMinute)
	made.awaitReady(t)
	made.execute(t, records)

	inbox := made.await(t, "a run that deleted records", func(inbox *v1alpha1.MessagingInbox) bool {
		return inbox.Status.Pruning != nil && inbox.Status.Pruning.RowsDeleted > 0
	})
	if deleted := inbox.Status.Pruning.RowsDeleted; deleted != 1000 {
		t.Errorf("rowsDeleted = %d, want 1000", deleted)
	}
	run := inbox.Status.Pruning.LastRun
	if run.Result != v1alpha1.RunDone || run.RowsDeleted != 1000 {
		t.Errorf("lastRun = %+v", run)
	}
	if age := run.CompletedAt.Sub(run.Cutoff.Time); age < 168*time.Hour || age > 169*time.Hour {
		t.Errorf("the cutoff lies %s before the end of the run, want the retention of 168h", age)
	}
	if left := made.count(t, "SELECT count(*) FROM messenger_inbox"); left != 110 {
		t.Errorf("%d records are left, want 110", left)
	}
	if old := made.count(t, "SELECT count(*) FROM messenger_inbox WHERE message_id LIKE 'old-%'"); old != 0 {
		t.Errorf("%d expired records are left", old)
	}
	made.awaitCondition(t, v1alpha1.ConditionPruningHealthy, metav1.ConditionTrue, v1alpha1.ReasonRunSucceeded)
	if logs := kubectl(t, "-n", made.namespace, "logs", "job/"+run.Job); !strings.Contains(logs, `"rowsDeleted":1000`) {
		t.Errorf("the pod's log is %q", logs)
	}
	if table := kubectl(t, "-n", made.namespace, "get", "inbox", "orders"); !strings.Contains(table, "AllChecksPassed") {
		t.Errorf("kubectl get says %q", table)
	}
}

func TestAPodWithOnlySelectAndDeletePrunes(t *testing.T) {
	t.Parallel()
	made := newTeam(t)
	made.execute(t, "CREATE ROLE pruner LOGIN PASSWORD 'pruner'")
	made.putSecret(t, "pruner", made.as("pruner", "pruner"))
	made.apply(t, safe+"pruning: {schedule: '* * * * *', suspend: true}\ndatabase: {urlSecretRef: {name: database}, pruningURLSecretRef: {name: pruner}}")
	made.awaitReady(t)
	made.execute(t, records)
	made.execute(t, "GRANT SELECT ON messenger_inbox TO pruner")
	made.apply(t, safe+everyMinute+"database: {urlSecretRef: {name: database}, pruningURLSecretRef: {name: pruner}}")

	refused := made.awaitCondition(t, v1alpha1.ConditionPruningHealthy, metav1.ConditionFalse, v1alpha1.ReasonRunRefused)
	if run := refused.Status.Pruning.LastRun; !strings.Contains(run.Message, "DELETE") {
		t.Errorf("the run says %q, which does not name the missing privilege", run.Message)
	}
	made.execute(t, "GRANT DELETE ON messenger_inbox TO pruner")
	healthy := made.awaitCondition(t, v1alpha1.ConditionPruningHealthy, metav1.ConditionTrue, v1alpha1.ReasonRunSucceeded)
	if deleted := healthy.Status.Pruning.RowsDeleted; deleted != 1000 {
		t.Errorf("rowsDeleted = %d, want 1000", deleted)
	}
}

func TestAnUnsafeRetentionGetsNoPodUntilItIsMended(t *testing.T) {
	t.Parallel()
	made := newTeam(t)
	unsafe := "transports: [{name: orders, type: amqp, failureTransport: failed}, {name: failed, type: doctrine, inbox: false, redelivery: {maxAge: 336h}}]\n"
	made.apply(t, unsafe+everyMinute)
	made.awaitCondition(t, v1alpha1.ConditionRetentionSafe, metav1.ConditionFalse, v1alpha1.ReasonTooShort)
	made.awaitCondition(t, v1alpha1.ConditionSchemaReady, metav1.ConditionTrue, v1alpha1.ReasonContractMet)
	made.execute(t, records)

	time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(65 * time.Second))) // a tick passes
	var jobs batchv1.JobList
	if err := kube.List(t.Context(), &jobs, client.InNamespace(made.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(jobs.Items) != 0 {
		t.Errorf("%d Jobs were created while the retention was unsafe", len(jobs.Items))
	}
	if left := made.count(t, "SELECT count(*) FROM messenger_inbox"); left != 1110 {
		t.Errorf("%d records are left of 1110", left)
	}
	described := kubectl(t, "-n", made.namespace, "describe", "inbox", "orders")
	for _, part := range []string{"TooShort", "Set spec.retention.period to"} {
		if !strings.Contains(described, part) {
			t.Errorf("kubectl describe does not say %q:\n%s", part, described)
		}
	}
	made.apply(t, unsafe+everyMinute+"retention: {period: 1000h}")
	made.awaitReady(t)
	if run := made.awaitRun(t); run.Result != v1alpha1.RunDone || run.RowsDeleted != 0 {
		t.Errorf("lastRun = %+v", run)
	}
}

func TestAJobsPodIsShapedAsDeclaredAndRestricted(t *testing.T) {
	t.Parallel()
	made := newTeam(t)
	made.apply(t, safe+`
pruning:
  schedule: '* * * * *'
  dryRun: true
  job:
    podLabels: {cost-centre: orders}
    podAnnotations: {example.com/note: kept}
    resources: {requests: {cpu: 20m}, limits: {memory: 64Mi}}
    nodeSelector: {kubernetes.io/os: linux}
    tolerations: [{key: batch, operator: Exists}]`)
	run := made.awaitRun(t)
	if !run.DryRun || run.Result != v1alpha1.RunDone {
		t.Errorf("lastRun = %+v", run)
	}
	var pods corev1.PodList
	if err := kube.List(t.Context(), &pods, client.InNamespace(made.namespace), client.MatchingLabels{batchv1.JobNameLabel: run.Job, "cost-centre": "orders"}); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 {
		t.Fatalf("%d pods with the declared label", len(pods.Items))
	}
	pod := pods.Items[0]
	if pod.Annotations["example.com/note"] != "kept" || pod.Spec.NodeSelector["kubernetes.io/os"] != "linux" || pod.Spec.Containers[0].Resources.Limits.Memory().String() != "64Mi" {
		t.Errorf("the pod is not shaped as declared: %+v", pod)
	}
	if automount := pod.Spec.AutomountServiceAccountToken; automount == nil || *automount || len(pod.Spec.Volumes) != 0 {
		t.Errorf("the pod has a token or a volume: %+v", pod.Spec.Volumes)
	}
	if text := pod.String(); strings.Contains(text, env.Postgres.Password()) {
		t.Error("the password is in the pod's specification")
	}
}
