//go:build integration

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
)

// What assessment.InvalidJob says of a Job, a real API server says too.
func TestInvalidJobsAreThoseThatTheAPIServerRefuses(t *testing.T) {
	s := newStepped(t, "suspend: true")
	for i, test := range []struct {
		job     string
		refused bool
	}{
		{"{}", false},
		{"{podLabels: {app.example.com/team: orders}, podAnnotations: {any/thing: at all}, nodeSelector: {disk: ssd}, tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}, {operator: Exists}]}", false},
		{"{resources: {requests: {cpu: 10m, example.com/gpu: 1}, limits: {memory: 32Mi, example.com/gpu: 1}}}", false},
		{"{podLabels: {'not a key': x}}", true},
		{"{podLabels: {team: 'a b'}}", true},
		{"{podLabels: {job-name: mine}}", true},
		{"{podAnnotations: {'a b': x}}", true},
		{"{nodeSelector: {disk: 'a b'}}", true},
		{"{tolerations: [{value: b}]}", true},
		{"{tolerations: [{key: a, operator: Exists, value: b}]}", true},
		{"{tolerations: [{key: a, effect: Never}]}", true},
		{"{tolerations: [{key: a, tolerationSeconds: 5}]}", true},
		{"{resources: {requests: {memory: 64Mi}, limits: {memory: 32Mi}}}", true},
		{"{resources: {requests: {cpu: -1}}}", true},
		{"{resources: {limits: {mem: 1}}}", true},
		{"{resources: {requests: {example.com/gpu: 1}}}", true},
		{"{resources: {claims: [{name: a}]}}", true},
	} {
		inbox := orders(t, s.inbox.Namespace, "pruning: {job: "+test.job+"}")
		inbox.UID, inbox.Name = s.inbox.UID, fmt.Sprintf("orders-%d", i)
		rejected, err := s.createJob(t.Context(), pruningJob(inbox, s.Image, time.Unix(0, 0), time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if (rejected != "") != test.refused {
			t.Errorf("%s: the API server says %q", test.job, rejected)
		}
		if problem := assessment.InvalidJob(&inbox.Spec); (problem != "") != test.refused {
			t.Errorf("%s: InvalidJob says %q", test.job, problem)
		}
	}
}

func TestAnInvalidJobIsNamedAndNotCreated(t *testing.T) {
	s := newStepped(t, "pruning: {schedule: '* * * * *', job: {podLabels: {team: 'a b'}}}\n  drill: {schedule: '@daily'}")
	s.now = s.now.Add(24 * time.Hour)
	s.step(t)
	mustSay(t, s.inbox, v1alpha1.ConditionPruningHealthy, `spec.pruning.job.podLabels: Invalid value: "a b"`)
	mustSay(t, s.inbox, v1alpha1.ConditionStalled, "podLabels")
	s.proven(t, metav1.ConditionUnknown, v1alpha1.ReasonInvalidJob)
	if len(s.jobs(t))+len(s.drills(t)) != 0 {
		t.Errorf("%d pruning Jobs and %d drills", len(s.jobs(t)), len(s.drills(t)))
	}
	_, err := PruneNow(t.Context(), kube, s.inbox, s.Image, false)
	refused(t, err, "podLabels")
	_, err = DrillNow(t.Context(), kube, s.inbox, s.Image)
	refused(t, err, "podLabels")

	s.inbox.Spec.Pruning.Job.PodLabels = map[string]string{"team": "a-b"}
	if err = kube.Update(t.Context(), s.inbox); err != nil {
		t.Fatal(err)
	}
	s.step(t)
	if len(s.jobs(t)) != 1 || len(s.drills(t)) != 1 {
		t.Errorf("%d pruning Jobs and %d drills once it is mended", len(s.jobs(t)), len(s.drills(t)))
	}
}

func TestNamesOfThePodAreCheckedByTheDefinition(t *testing.T) {
	namespace := newNamespace(t)
	inbox := orders(t, namespace, "")
	inbox.Spec.Pruning.Job.ServiceAccountName = "Not_A_Name"
	if err := kube.Create(t.Context(), inbox); err == nil || !strings.Contains(err.Error(), "spec.pruning.job.serviceAccountName") {
		t.Errorf("the error is %v", err)
	}
}
