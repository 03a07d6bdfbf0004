//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/test/environment"
)

const serviceAccount = "system:serviceaccount:" + environment.Namespace + ":messaging-inbox-manager"

func TestTheOperatorHasNoRightThatItDoesNotUse(t *testing.T) {
	t.Parallel()
	for _, right := range []string{
		"create pods", "delete pods", "create secrets", "update secrets", "delete secrets", "update messaginginboxes.messaginginbox.dev",
		"delete messaginginboxes.messaginginbox.dev", "update jobs.batch", "get configmaps", "list nodes", "create rolebindings.rbac.authorization.k8s.io", "impersonate users",
	} {
		verb, resource, _ := strings.Cut(right, " ")
		output, err := env.Kubectl(t.Context(), "auth", "can-i", verb, resource, "--all-namespaces", "--as="+serviceAccount)
		if err == nil || strings.TrimSpace(output) != "no" {
			t.Errorf("the operator may %s: %s", right, output)
		}
	}
}

func TestANewManagerTakesOver(t *testing.T) {
	made := newTeam(t)
	made.apply(t, safe)
	made.awaitReady(t)
	kubectl(t, "-n", environment.Namespace, "delete", "pod", "--all", "--wait=true")
	made.putSecret(t, "database", made.as("postgres", "wrong"))
	made.awaitCondition(t, v1alpha1.ConditionDatabaseReachable, metav1.ConditionFalse, v1alpha1.ReasonAuthenticationFailed)
	made.putSecret(t, "database", made.url)
	made.awaitReady(t)
}

func TestNoPasswordLeavesTheSecret(t *testing.T) {
	t.Parallel()
	made := newTeam(t)
	made.apply(t, safe+everyMinute)
	made.awaitRun(t)
	made.putSecret(t, "database", made.as("postgres", "hunter2-wrong"))
	made.awaitCondition(t, v1alpha1.ConditionDatabaseReachable, metav1.ConditionFalse, v1alpha1.ReasonAuthenticationFailed)
	made.mustShowNo(t, env.Postgres.Password(), "hunter2-wrong")
}

// mustShowNo expects that a password is nowhere but in its Secret.
func (made team) mustShowNo(t *testing.T, passwords ...string) {
	t.Helper()
	for what, text := range map[string]string{
		"the manager's log": kubectl(t, "-n", environment.Namespace, "logs", "deployment/messaging-inbox-manager"),
		"the pods' logs":    kubectl(t, "-n", made.namespace, "logs", "-l", "messaginginbox.dev/purpose=prune", "--tail=-1"),
		"the resource":      kubectl(t, "-n", made.namespace, "get", "inbox", "orders", "-o", "yaml"),
		"the events":        kubectl(t, "-n", made.namespace, "get", "events", "-o", "yaml"),
		"the Jobs and pods": kubectl(t, "-n", made.namespace, "get", "jobs,pods", "-o", "yaml"),
	} {
		if text == "" {
			t.Errorf("there is nothing in %s to look through", what)
		}
		for _, password := range passwords {
			if strings.Contains(text, password) {
				t.Errorf("a password is in %s", what)
			}
		}
	}
}

func TestALongIndexBuildRunsInAPod(t *testing.T) {
	t.Parallel()
	made := newTeam(t)
	// About 300 MiB, above the limit of what the manager builds itself.
	made.execute(t, `CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL, processed_at timestamp(0) NOT NULL, PRIMARY KEY (transport, message_id));
		INSERT INTO messenger_inbox SELECT 'orders', md5(n::text) || repeat('x', 150), now() - n * interval '1 second' FROM generate_series(1, 700000) n; ANALYZE messenger_inbox`)
	if bytes := made.count(t, "SELECT pg_total_relation_size('messenger_inbox')"); bytes < 256<<20 {
		t.Fatalf("the table has only %d bytes", bytes)
	}
	made.apply(t, safe+"pruning: {suspend: true}")
	made.await(t, "an index on processed_at", func(inbox *v1alpha1.MessagingInbox) bool {
		return inbox.Status.Schema != nil && inbox.Status.Schema.Plan == nil && len(inbox.Status.Schema.Indexes) == 2 &&
			meta.IsStatusConditionTrue(inbox.Status.Conditions, v1alpha1.ConditionReady)
	})
	jobs := kubectl(t, "-n", made.namespace, "get", "jobs", "-l", "messaginginbox.dev/purpose=migrate", "-o", "name")
	if strings.Count(jobs, "\n") != 1 {
		t.Errorf("migration Jobs = %q, want one", jobs)
	}
}

func TestDeletingWhileTheDatabaseIsGoneDoesNotHang(t *testing.T) {
	t.Parallel()
	made := newTeam(t)
	made.apply(t, safe)
	made.awaitReady(t)
	if err := env.Postgres.DropDatabase(t.Context(), made.namespace); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "-n", made.namespace, "delete", "inbox", "orders", "--timeout=30s")
	kubectl(t, "delete", "namespace", made.namespace, "--timeout=90s")
}

func TestMetricsAndProbesAnswer(t *testing.T) {
	t.Parallel()
	pod := strings.TrimPrefix(strings.TrimSpace(kubectl(t, "-n", environment.Namespace, "get", "pods", "-o", "name")), "pod/")
	base := "/api/v1/namespaces/" + environment.Namespace + "/pods/" + pod
	if metrics := kubectl(t, "get", "--raw", base+":8080/proxy/metrics"); !strings.Contains(metrics, "controller_runtime_reconcile_total") {
		t.Errorf("the metrics lack controller_runtime_reconcile_total:\n%.500s", metrics)
	}
	for _, probe := range []string{"healthz", "readyz"} {
		if answer := kubectl(t, "get", "--raw", base+":8081/proxy/"+probe); answer != "ok" {
			t.Errorf("%s answers %q", probe, answer)
		}
	}
}
