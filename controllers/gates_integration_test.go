//go:build integration

package controllers

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/pruner"
	"github.com/messaginginbox/operator/test/postgres"
)

func (s *stepped) mustBe(t *testing.T, conditionType string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	found := meta.FindStatusCondition(s.inbox.Status.Conditions, conditionType)
	if found == nil || found.Status != status || found.Reason != reason {
		t.Errorf("%s is not %s (%s):\n%s", conditionType, status, reason, describe(s.inbox))
	}
}

func TestATypingErrorInTheScheduleDoesNotKeepARunAtWork(t *testing.T) {
	s := newStepped(t, "pruning: {schedule: '* * * * *'}")
	if s.step(t); len(s.jobs(t)) != 1 {
		t.Fatal("no Job was created")
	}
	change(t, s.inbox, func(spec *v1alpha1.MessagingInboxSpec) { spec.Suspend, spec.Pruning.TimeZone = true, "Europe/Berln" })
	if s.step(t); len(s.jobs(t)) != 0 {
		t.Error("the Job of the suspended resource is still at work")
	}
}

func TestATickInTheFutureDoesNotStopPruning(t *testing.T) {
	s := newStepped(t, "pruning: {schedule: '* * * * *'}")
	s.step(t)
	job := s.jobs(t)[0]
	job.Annotations[annotationTick] = "2099-01-01T00:00:00Z"
	if err := kube.Update(t.Context(), &job); err != nil {
		t.Fatal(err)
	}
	s.end(t, &job, 0, &pruner.Report{Result: pruner.ResultDone, RowsDeleted: 1})
	s.now = s.now.Add(time.Minute)
	s.step(t)
	s.now = s.now.Add(time.Minute)
	s.step(t)
	if jobs := s.jobs(t); len(jobs) < 2 {
		t.Errorf("%d Jobs, want one for the next tick too", len(jobs))
	}
}

func TestARunThatDoesNotEndIsOverdue(t *testing.T) {
	s := newStepped(t, "pruning: {schedule: '* * * * *', maxDuration: 1m}")
	s.step(t)
	s.now = time.Now().Add(20 * time.Minute) // the Job's age is by the API server's clock
	s.step(t)
	s.mustBe(t, v1alpha1.ConditionPruningHealthy, metav1.ConditionFalse, v1alpha1.ReasonRunOverdue)
}

func TestAResultOfAnotherVersionIsAFailure(t *testing.T) {
	s := newStepped(t, "pruning: {schedule: '* * * * *'}")
	s.step(t)
	s.end(t, &s.jobs(t)[0], 0, &pruner.Report{Result: "Splendid"})
	s.step(t)
	s.mustBe(t, v1alpha1.ConditionPruningHealthy, metav1.ConditionFalse, v1alpha1.ReasonRunFailed)
}

func TestNothingIsPrunedWhenNoTransportIsCovered(t *testing.T) {
	s := newStepped(t, "transports: [{name: orders, type: amqp, inbox: false}, {name: bulk, type: amqp, batchHandlers: true}]\n  retention: {period: 1s}\n  pruning: {schedule: '* * * * *'}")
	if s.step(t); len(s.jobs(t)) != 0 {
		t.Error("a Job was created that would prune proofs of transports whose window nobody knows")
	}
	s.mustBe(t, v1alpha1.ConditionPruningHealthy, metav1.ConditionUnknown, v1alpha1.ReasonNotDeclared)
}

func TestAJobPrunesOnlyTheCoveredTransports(t *testing.T) {
	s := newStepped(t, "transports: [{name: orders, type: amqp}, {name: '$(INBOX_DATABASE_URL)', type: amqp}, {name: bulk, type: amqp, batchHandlers: true}]\n  pruning: {schedule: '* * * * *'}")
	s.step(t)
	arguments := strings.Join(s.jobs(t)[0].Spec.Template.Spec.Containers[0].Args, " ")
	if !strings.Contains(arguments, "--transport=orders --transport=$$(INBOX_DATABASE_URL)") || strings.Contains(arguments, "bulk") {
		t.Errorf("the arguments are %s", arguments)
	}
}

func TestTheOtherRolesMustReachTheInboxsOwnDatabase(t *testing.T) {
	elsewhere := postgres.Shared(t).NewDatabase(t)
	execute(t, elsewhere, doctrineTable)
	for name, test := range map[string]struct{ database, conditionType, reason string }{
		"the pruning role":   {"{urlSecretRef: {name: database}, pruningURLSecretRef: {name: database, key: other}}", v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonPruningElsewhere},
		"the migration role": {"{urlSecretRef: {name: database}, migrationURLSecretRef: {name: database, key: other}}", v1alpha1.ConditionSchemaReady, v1alpha1.ReasonMigratesElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepped(t, "database: "+test.database+"\n  pruning: {schedule: '* * * * *'}")
			secretWithOther(t, s.inbox.Namespace, elsewhere)
			s.step(t)
			s.mustBe(t, test.conditionType, metav1.ConditionFalse, test.reason)
			if jobs := s.jobs(t); len(jobs) != 0 {
				t.Errorf("%d Jobs were created", len(jobs))
			}
		})
	}
}

func TestAMigrationAtWorkEndsWhenItIsSuspended(t *testing.T) {
	s := newStepped(t, "")
	s.step(t)
	job := newJob(s.inbox, s.Image, purposeMigrate, "earlier")
	if err := kube.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	change(t, s.inbox, func(spec *v1alpha1.MessagingInboxSpec) { spec.Suspend = true })
	s.step(t)
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(job), &batchv1.Job{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the migration Job is still there: %v", err)
	}
}

// secretWithOther adds the URL of another database to the Secret.
func secretWithOther(t *testing.T, namespace, url string) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "database"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Data["other"] = []byte(url)
	if err := kube.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}
