//go:build integration

package controllers

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/drill"
	"github.com/messaginginbox/operator/internal/pruner"
	"github.com/messaginginbox/operator/test/postgres"
)

const once = "pruning: {schedule: '0 0 1 1 *'}"

// refused checks that the error is a refusal that says why.
func refused(t *testing.T, err error, says string) {
	t.Helper()
	var refusal *Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, says) {
		t.Fatalf("the error is %v; want a refusal that says %q", err, says)
	}
}

func TestARunByHandCountsAsAnyOther(t *testing.T) {
	s := newStepped(t, once)
	s.now = time.Now()
	image := JobImage{Name: "localhost/inbox:test"}
	_, err := PruneNow(t.Context(), kube, s.inbox, image, false)
	refused(t, err, "DatabaseReachable is Unknown (NotInspected)") // nobody has looked yet

	s.step(t)
	job, err := PruneNow(t.Context(), kube, s.inbox, image, false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = PruneNow(t.Context(), kube, s.inbox, image, false)
	refused(t, err, "Job "+job.Name+" is at work")
	s.step(t)
	if jobs := s.jobs(t); len(jobs) != 1 || jobs[0].Name != job.Name {
		t.Fatalf("the operator did not leave the Job at work: %v", jobs)
	}
	s.end(t, job, 0, &pruner.Report{Result: pruner.ResultDone, RowsDeleted: 7})
	s.step(t)
	status := s.inbox.Status.Pruning
	if status.LastRun == nil || status.LastRun.Job != job.Name || status.RowsDeleted != 7 {
		t.Errorf("status.pruning is %+v", status)
	}

	// The schedule goes on, and after it the hand.
	s.now = time.Date(time.Now().Year()+1, 1, 1, 0, 0, 1, 0, time.UTC)
	s.step(t)
	jobs := s.jobs(t)
	if len(jobs) != 2 {
		t.Fatalf("%d Jobs after the tick, want 2", len(jobs))
	}
	_, err = PruneNow(t.Context(), kube, s.inbox, image, false)
	refused(t, err, "Job "+jobs[1].Name+" is at work")
}

// A change of the spec, a pause and an unsafe retention stop a run by hand as they stop one
// of the schedule: its arguments are what nobody declares any more.
func TestARunByHandIsStoppedByAPause(t *testing.T) {
	s := newStepped(t, once)
	s.now = time.Now()
	s.step(t)
	if _, err := PruneNow(t.Context(), kube, s.inbox, JobImage{Name: "localhost/inbox:test"}, false); err != nil {
		t.Fatal(err)
	}
	change(t, s.inbox, func(spec *v1alpha1.MessagingInboxSpec) { spec.Suspend = true })
	s.step(t)
	if jobs := s.jobs(t); len(jobs) != 0 {
		t.Errorf("%d Jobs are left after the pause", len(jobs))
	}
	_, err := PruneNow(t.Context(), kube, s.inbox, JobImage{Name: "localhost/inbox:test"}, true)
	refused(t, err, "spec.suspend is true")
}

func TestARunByHandNeedsTheSpecsNewestAssessment(t *testing.T) {
	s := newStepped(t, once)
	s.now = time.Now()
	s.step(t)
	change(t, s.inbox, func(spec *v1alpha1.MessagingInboxSpec) {
		spec.Retention.Period = v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Hour}}
	})
	_, err := PruneNow(t.Context(), kube, get(t, s.inbox), JobImage{Name: "localhost/inbox:test"}, false)
	refused(t, err, "the spec is at generation 2: the operator has yet to look at it")
	s.step(t)
	_, err = PruneNow(t.Context(), kube, s.inbox, JobImage{Name: "localhost/inbox:test"}, false)
	refused(t, err, "RetentionSafe is False (TooShort). spec.retention.period is 1h")
}

func TestADrillByHandNeedsNoSchedule(t *testing.T) {
	s := newStepped(t, "pruning: {suspend: true}")
	s.now = time.Now()
	s.step(t)
	job, err := DrillNow(t.Context(), kube, s.inbox, JobImage{Name: "localhost/inbox:test"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = DrillNow(t.Context(), kube, s.inbox, JobImage{Name: "localhost/inbox:test"})
	refused(t, err, "Job "+job.Name+" is at work")
	report, err := json.Marshal(drill.Report{Result: drill.ResultProven, Message: "It holds."})
	if err != nil {
		t.Fatal(err)
	}
	s.endWith(t, job, 0, string(report))
	s.step(t)
	if status := s.inbox.Status.Drill; status == nil || status.Result != v1alpha1.DrillProven || status.Job != job.Name {
		t.Errorf("status.drill is %+v", status)
	}
	s.proven(t, metav1.ConditionTrue, v1alpha1.ReasonProven)
	mustSay(t, s.inbox, v1alpha1.ConditionContractProven, "Drilled on the real table at "+s.inbox.Status.Drill.LastRun.UTC().Format(time.RFC3339), "It holds.")
	s.step(t)
	s.proven(t, metav1.ConditionTrue, v1alpha1.ReasonProven) // it stays, until the table is another one

	execute(t, s.target(t), "ALTER TABLE messenger_inbox ADD COLUMN note text")
	s.step(t)
	s.proven(t, metav1.ConditionUnknown, v1alpha1.ReasonNotDeclared)
	mustSay(t, s.inbox, v1alpha1.ConditionContractProven, "changed since the drill of ", "kubectl inbox drill")
	if s.ready() != metav1.ConditionTrue || len(s.drills(t)) != 1 {
		t.Errorf("Ready is %s after %d drills", s.ready(), len(s.drills(t)))
	}

	// Drilled again, an hour later, the table as it is now is proven.
	s.inbox.Status.Drill.Tick.Time = s.inbox.Status.Drill.Tick.Add(-time.Hour)
	if err = kube.Status().Update(t.Context(), s.inbox); err != nil {
		t.Fatal(err)
	}
	if job, err = DrillNow(t.Context(), kube, s.inbox, JobImage{Name: "localhost/inbox:test"}); err != nil {
		t.Fatal(err)
	}
	s.runDrill(t, job)
	s.step(t)
	s.proven(t, metav1.ConditionTrue, v1alpha1.ReasonProven)
	image, found, err := NewestJobImage(t.Context(), kube, s.inbox)
	if err != nil || !found || image.Name != "localhost/inbox:test" {
		t.Errorf("the newest Job's image is %v (found: %t, %v)", image, found, err)
	}
}

// needsLonger creates a resource of the same table whose messages come back later.
func (s *stepped) needsLonger(t *testing.T) {
	t.Helper()
	other := s.inbox.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Namespace: s.inbox.Namespace, Name: "reports"}
	other.Spec.Retention.Period.Duration.Duration = 500 * time.Hour
	other.Spec.Transports[0].Redelivery = &v1alpha1.TransportRedelivery{Window: &v1alpha1.Duration{Duration: metav1.Duration{Duration: 300 * time.Hour}}}
	apply(t, other)
	(&stepped{Reconciler: s.Reconciler, inbox: other}).step(t)
}

func TestARunByHandLeavesTheProofsOfOthersAlone(t *testing.T) {
	s := newStepped(t, once)
	s.now = time.Now()
	s.step(t)
	image := JobImage{Name: "localhost/inbox:test"}
	if _, err := PruneNow(t.Context(), kube, s.inbox, image, false); err != nil {
		t.Fatal(err)
	}
	s.needsLonger(t)
	_, err := PruneNow(t.Context(), kube, s.inbox, image, false) // the operator has not said so yet
	refused(t, err, "/reports names the same table and needs its proofs for 330h")

	// Who cannot see the other resource has created the Job: the operator stops it.
	s.step(t)
	if jobs := s.jobs(t); len(jobs) != 0 {
		t.Errorf("%d Jobs are left that delete the other's proofs", len(jobs))
	}
	_, err = PruneNow(t.Context(), kube, s.inbox, image, false)
	refused(t, err, "No pruning Job is created: MessagingInbox "+s.inbox.Namespace+"/reports")
}

// The operator does not wait for its next look at the resource to stop such a Job.
func TestTheOperatorLooksAtAJobByHandAtOnce(t *testing.T) {
	namespace := managed(t)
	putSecret(t, namespace, "url", postgres.Shared(t).NewDatabase(t))
	inbox := orders(t, namespace, once)
	apply(t, inbox)
	ready := awaitReady(t, inbox)
	job := pruningJob(ready, JobImage{Name: "localhost/inbox:test"}, time.Time{}, time.Hour)
	delete(job.Annotations, annotationTick)
	job.Annotations[annotationGeneration] = "0" // of a spec that nobody declares any more
	if err := kube.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := kube.Get(t.Context(), client.ObjectKeyFromObject(job), job)
		if apierrors.IsNotFound(err) || !job.DeletionTimestamp.IsZero() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the Job is left (%v)", err)
		}
	}
}
