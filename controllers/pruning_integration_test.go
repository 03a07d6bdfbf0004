//go:build integration

package controllers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/pruner"
	"github.com/messaginginbox/operator/test/postgres"
)

// stepped reconciles one resource by hand, with a clock that the test moves. The API
// server has no kubelet, so the tests end the Jobs themselves; the end-to-end test runs
// real pods.
type stepped struct {
	*Reconciler
	inbox  *v1alpha1.MessagingInbox
	events *events.FakeRecorder
	now    time.Time
}

func newStepped(t *testing.T, spec string) *stepped {
	t.Helper()
	namespace := newNamespace(t)
	putSecret(t, namespace, "url", postgres.Shared(t).NewDatabase(t))
	s := &stepped{inbox: orders(t, namespace, spec), events: events.NewFakeRecorder(100)}
	apply(t, s.inbox)
	// The tenth second of a minute: no tick is at hand unless the test moves on to it.
	s.now = s.inbox.CreationTimestamp.Truncate(time.Hour).Add(time.Hour + 10*time.Second)
	s.Reconciler = &Reconciler{
		Client: kube, Live: kube, Events: s.events, Pools: database.NewPools(database.PoolOptions{}), Image: JobImage{Name: "localhost/inbox:test", PullPolicy: corev1.PullNever},
		Clock: func() time.Time { return s.now }, Recheck: 5 * time.Minute, SlowRecheck: time.Minute,
	}
	t.Cleanup(s.Pools.Close)
	return s
}

func (s *stepped) step(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := s.Reconcile(quietLogger(t), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.inbox)})
	if err != nil {
		t.Fatal(err)
	}
	s.inbox = get(t, s.inbox)
	return result
}

func (s *stepped) jobs(t *testing.T) []batchv1.Job {
	t.Helper()
	jobs, err := s.pruningJobs(t.Context(), s.inbox)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// end ends a Job as the kubelet and the Job controller would.
func (s *stepped) end(t *testing.T, job *batchv1.Job, exitCode int32, report *pruner.Report) {
	t.Helper()
	text := ""
	if report != nil {
		encoded, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		text = string(encoded)
	}
	s.endWith(t, job, exitCode, text)
}

// endWith ends a Job whose pod left a termination message.
func (s *stepped) endWith(t *testing.T, job *batchv1.Job, exitCode int32, text string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, Name: job.Name + "-x", Labels: map[string]string{batchv1.JobNameLabel: job.Name},
	}, Spec: job.Spec.Template.Spec}
	if err := kube.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Message: text, FinishedAt: metav1.Now()},
	}}}
	if err := kube.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	now := metav1.NewTime(time.Now())
	job.Status.StartTime = &now
	if exitCode == 0 {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		job.Status.Conditions = ended(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, "CompletionsReached", "")
	} else {
		job.Status.Conditions = ended(batchv1.JobFailureTarget, batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	}
	if err := kube.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
}

func ended(before, final batchv1.JobConditionType, reason, message string) (conditions []batchv1.JobCondition) {
	for _, conditionType := range []batchv1.JobConditionType{before, final} {
		conditions = append(conditions, batchv1.JobCondition{
			Type: conditionType, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
		})
	}
	return conditions
}

func TestOneJobATickAndItsReportInTheStatus(t *testing.T) {
	s := newStepped(t, "pruning: {schedule: '*/15 * * * *', batchSize: 100, maxDuration: 2m, maxReplicaLag: 30s}")
	s.now = s.inbox.CreationTimestamp.Add(time.Second)
	next := s.now.Truncate(15 * time.Minute).Add(15 * time.Minute)
	if s.step(t); len(s.jobs(t)) != 0 {
		t.Fatal("a Job was created before the first tick")
	}
	if got := s.inbox.Status.Pruning.NextRun; !got.Time.Equal(next) {
		t.Errorf("nextRun = %s, want %s", got, next)
	}

	s.now = next.Add(time.Second)
	s.step(t)
	s.step(t) // a second look, and a second leader, at the same tick
	jobs := s.jobs(t)
	if len(jobs) != 1 {
		t.Fatalf("%d Jobs for one tick", len(jobs))
	}
	job := jobs[0]
	if want := fmt.Sprintf("orders-prune-%d", next.Unix()/60); job.Name != want {
		t.Errorf("name = %s, want %s", job.Name, want)
	}
	if owner := metav1.GetControllerOf(&job); owner == nil || owner.UID != s.inbox.UID || owner.BlockOwnerDeletion != nil {
		t.Errorf("owner = %+v", owner)
	}
	arguments := job.Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"prune", "--table=messenger_inbox", "--retention=168h0m0s", "--required-window=28h36m9.68s", "--batch-size=100", "--max-duration=2m0s", "--max-replica-lag=30s"} {
		if !slices.Contains(arguments, want) {
			t.Errorf("arguments %q lack %q", arguments, want)
		}
	}
	if strings.Contains(strings.Join(arguments, " "), "postgresql://") {
		t.Errorf("a connection URL is in the arguments: %q", arguments)
	}

	s.end(t, &job, 0, &pruner.Report{Result: pruner.ResultDone, RowsDeleted: 1234, DurationSeconds: 1.5})
	s.step(t)
	s.step(t) // the report counts once
	pruning := s.inbox.Status.Pruning
	if run := pruning.LastRun; run == nil || run.Result != v1alpha1.RunDone || run.RowsDeleted != 1234 || run.Duration.Duration != 1500*time.Millisecond || run.Job != job.Name {
		t.Errorf("lastRun = %+v", run)
	}
	if pruning.RowsDeleted != 1234 {
		t.Errorf("rowsDeleted = %d, want 1234", pruning.RowsDeleted)
	}
	if healthy := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionPruningHealthy); healthy.Status != metav1.ConditionTrue || healthy.Reason != v1alpha1.ReasonRunSucceeded {
		t.Errorf("PruningHealthy = %s (%s)", healthy.Status, healthy.Reason)
	}
	if len(s.jobs(t)) != 1 {
		t.Error("a second Job was created for the same tick")
	}
	if first := s.inbox.Status.Conditions[0]; first.Type != v1alpha1.ConditionReady {
		t.Errorf("the first condition is %s, and a person reads Ready first", first.Type)
	}
}

func TestMissedTicksAreMadeUpForByOneRunAndRunsDoNotOverlap(t *testing.T) {
	s := newStepped(t, "pruning: {schedule: '* * * * *'}")
	s.now = s.now.Add(3 * time.Hour)
	s.step(t)
	if jobs := s.jobs(t); len(jobs) != 1 || !tickOf(&jobs[0]).Equal(s.now.Truncate(time.Minute)) {
		t.Fatalf("Jobs = %d, want one for the newest tick", len(jobs))
	}
	s.now = s.now.Add(5 * time.Minute)
	if s.step(t); len(s.jobs(t)) != 1 {
		t.Error("a run was started beside one that is at work")
	}
}

func TestARunOfAnEarlierSpecIsEndedAndStartedAgain(t *testing.T) {
	s := newStepped(t, "pruning: {schedule: '* * * * *'}")
	s.now = s.now.Add(time.Minute)
	s.step(t)
	before := s.jobs(t)[0]

	change(t, s.inbox, func(spec *v1alpha1.MessagingInboxSpec) { spec.Retention.Period.Duration.Duration = 1000 * time.Hour })
	s.step(t)
	jobs := s.jobs(t)
	if len(jobs) != 1 || jobs[0].UID == before.UID || !slices.Contains(jobs[0].Spec.Template.Spec.Containers[0].Args, "--retention=1000h0m0s") {
		t.Errorf("the Job of the earlier spec was not replaced: %d Jobs", len(jobs))
	}
}

func TestARunIsEndedOnceItIsSuspendedOrUnsafe(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.MessagingInboxSpec){
		"suspended":             func(spec *v1alpha1.MessagingInboxSpec) { spec.Suspend = true },
		"its pruning suspended": func(spec *v1alpha1.MessagingInboxSpec) { spec.Pruning.Suspend = true },
		"unsafe":                func(spec *v1alpha1.MessagingInboxSpec) { spec.Retention.Period.Duration.Duration = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepped(t, "pruning: {schedule: '* * * * *'}")
			s.now = s.now.Add(time.Minute)
			if s.step(t); len(s.jobs(t)) != 1 {
				t.Fatal("no Job was created")
			}
			change(t, s.inbox, edit)
			if s.step(t); len(s.jobs(t)) != 0 {
				t.Error("the Job is still at work")
			}
		})
	}
}

func TestAnotherResourceOfTheSameTableKeepsItsProofs(t *testing.T) {
	short := newStepped(t, "pruning: {schedule: '* * * * *'}")
	other := short.inbox.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Namespace: short.inbox.Namespace, Name: "reports"}
	other.Spec.Retention.Period.Duration.Duration = 500 * time.Hour
	other.Spec.Transports[0].Redelivery = &v1alpha1.TransportRedelivery{Window: &v1alpha1.Duration{Duration: metav1.Duration{Duration: 300 * time.Hour}}}
	apply(t, other)
	short.now = short.inbox.CreationTimestamp.Time // no tick is due yet
	short.step(t)
	long := &stepped{Reconciler: short.Reconciler, inbox: other}
	long.step(t)

	short.now = short.now.Add(2 * time.Minute)
	if short.step(t); len(short.jobs(t)) != 0 {
		t.Error("a Job was created that deletes the other's proofs")
	}
	mustSay(t, short.inbox, v1alpha1.ConditionPruningHealthy, "/reports", "330h", "168h")
	if long.step(t); len(long.jobs(t)) != 1 {
		t.Errorf("%d Jobs of the resource with the longer retention, want 1:\n%s", len(long.jobs(t)), describe(long.inbox))
	}
	change(t, short.inbox, func(spec *v1alpha1.MessagingInboxSpec) { spec.Retention.Period.Duration.Duration = 330 * time.Hour })
	if short.step(t); len(short.jobs(t)) != 1 {
		t.Errorf("%d Jobs once both are covered, want 1", len(short.jobs(t)))
	}
}

func TestThreeEndedJobsAreKept(t *testing.T) {
	s := newStepped(t, "pruning: {schedule: '* * * * *'}")
	for range 5 {
		s.now = s.now.Add(time.Minute)
		s.step(t)
		jobs := s.jobs(t)
		s.end(t, &jobs[len(jobs)-1], 0, &pruner.Report{Result: pruner.ResultDone, RowsDeleted: 10})
		s.step(t)
	}
	if jobs := s.jobs(t); len(jobs) != finishedJobsKept {
		t.Errorf("%d Jobs are kept", len(jobs))
	}
	if total := s.inbox.Status.Pruning.RowsDeleted; total != 50 {
		t.Errorf("rowsDeleted = %d, want 50", total)
	}
}

func TestHowARunEndsIsTold(t *testing.T) {
	for name, run := range map[string]struct {
		exitCode int32
		report   *pruner.Report
		status   metav1.ConditionStatus
		reason   string
		says     string
		ready    metav1.ConditionStatus
	}{
		"its time was up":   {0, &pruner.Report{Result: pruner.ResultTimeLimit, RowsDeleted: 5}, metav1.ConditionTrue, v1alpha1.ReasonWorkLeft, "5 expired records deleted", metav1.ConditionTrue},
		"a dry run":         {0, &pruner.Report{Result: pruner.ResultDone, RowsDeleted: 7, DryRun: true}, metav1.ConditionTrue, v1alpha1.ReasonRunSucceeded, "7 records are expired, none was deleted", metav1.ConditionTrue},
		"it refused":        {4, &pruner.Report{Result: pruner.ResultRefused, Message: "DELETE is missing"}, metav1.ConditionFalse, v1alpha1.ReasonRunRefused, "DELETE is missing", metav1.ConditionFalse},
		"it failed":         {1, &pruner.Report{Result: pruner.ResultFailed, Message: "connection lost"}, metav1.ConditionFalse, v1alpha1.ReasonRunFailed, "connection lost", metav1.ConditionFalse},
		"it left no report": {137, nil, metav1.ConditionFalse, v1alpha1.ReasonRunFailed, "exit code 137", metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepped(t, "pruning: {schedule: '* * * * *'}")
			s.now = s.now.Add(time.Minute)
			s.step(t)
			s.end(t, &s.jobs(t)[0], run.exitCode, run.report)
			s.step(t)
			healthy := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionPruningHealthy)
			if healthy.Status != run.status || healthy.Reason != run.reason || !strings.Contains(healthy.Message, run.says) {
				t.Errorf("PruningHealthy = %s (%s) %s", healthy.Status, healthy.Reason, healthy.Message)
			}
			if ready := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionReady); ready.Status != run.ready {
				t.Errorf("Ready = %s (%s)", ready.Status, ready.Reason)
			}
			if run.report != nil && run.report.DryRun && s.inbox.Status.Pruning.RowsDeleted != 0 {
				t.Errorf("a dry run was counted: %d", s.inbox.Status.Pruning.RowsDeleted)
			}
			// What failed once is tried again at the next tick.
			s.now = s.now.Add(time.Minute)
			if s.step(t); len(s.jobs(t)) != 2 {
				t.Errorf("%d Jobs after the next tick, want 2", len(s.jobs(t)))
			}
		})
	}
}

func TestNoJobWithoutASafeRetention(t *testing.T) {
	for name, unsafe := range map[string]struct {
		spec, reason string
		says         []string
	}{
		"too short":                       {"retention: {period: 24h}", v1alpha1.ReasonTooShort, []string{"orders", "28h36m9.68s", "29h"}},
		"shortened by the application":    {"retention: {period: 168h, applicationPeriod: 24h}", v1alpha1.ReasonTooShort, []string{"spec.retention.applicationPeriod is 24h"}},
		"zero":                            {"retention: {period: 0s}", v1alpha1.ReasonRetentionZero, []string{"0s"}},
		"a failure queue without an end":  {"transports: [{name: orders, type: amqp, failureTransport: failed}, {name: failed, type: doctrine}]", v1alpha1.ReasonUnbounded, []string{"spec.transports[failed].redelivery.maxAge"}},
		"a retry service without a bound": {"transports: [{name: orders, type: redis, redelivery: {retryStrategy: {service: app.retry}}}]", v1alpha1.ReasonUnbounded, []string{"spec.transports[orders].redelivery.retryStrategy.maxTotal"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepped(t, unsafe.spec+"\n  pruning: {schedule: '* * * * *'}")
			s.now = s.now.Add(time.Hour)
			s.step(t)
			safe := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionRetentionSafe)
			if safe.Status != metav1.ConditionFalse || safe.Reason != unsafe.reason {
				t.Errorf("RetentionSafe = %s (%s)", safe.Status, safe.Reason)
			}
			mustSay(t, s.inbox, v1alpha1.ConditionRetentionSafe, unsafe.says...)
			mustSay(t, s.inbox, v1alpha1.ConditionPruningHealthy, "RetentionSafe is False")
			if jobs := s.jobs(t); len(jobs) != 0 {
				t.Errorf("%d Jobs were created", len(jobs))
			}
			if !meta.IsStatusConditionTrue(s.inbox.Status.Conditions, v1alpha1.ConditionStalled) {
				t.Error("only a change of the spec helps, so it is stalled")
			}
			// Mended, the tick that was missed is made up for.
			change(t, s.inbox, func(spec *v1alpha1.MessagingInboxSpec) {
				spec.Retention = v1alpha1.RetentionSpec{Period: v1alpha1.Duration{Duration: metav1.Duration{Duration: 168 * time.Hour}}, MarginPercent: 10}
				spec.Transports = []v1alpha1.Transport{{Name: "orders", Type: v1alpha1.TransportAMQP, Inbox: true}}
			})
			if s.step(t); len(s.jobs(t)) != 1 {
				t.Errorf("%d Jobs once the retention is safe, want 1", len(s.jobs(t)))
			}
		})
	}
}

func TestASuspendedScheduleCreatesNoJob(t *testing.T) {
	s := newStepped(t, "pruning: {schedule: '* * * * *', suspend: true}")
	s.now = s.now.Add(time.Hour)
	s.step(t)
	if jobs := s.jobs(t); len(jobs) != 0 {
		t.Errorf("%d Jobs were created", len(jobs))
	}
	if s.inbox.Status.Pruning.NextRun != nil {
		t.Errorf("nextRun = %s, want none", s.inbox.Status.Pruning.NextRun)
	}
	if !meta.IsStatusConditionTrue(s.inbox.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("what the user asked for is no failure:\n%s", describe(s.inbox))
	}
}

func TestAScheduleThatCannotBeFollowedIsNamed(t *testing.T) {
	for name, bad := range map[string]struct{ spec, says string }{
		"it never fires":       {"pruning: {schedule: '0 0 30 2 *'}", "never fires"},
		"a field out of range": {"pruning: {schedule: '61 * * * *'}", "61 * * * *"},
		"an unknown time zone": {"pruning: {timeZone: Mars/Olympus}", "Mars/Olympus"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepped(t, bad.spec)
			result := s.step(t)
			healthy := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionPruningHealthy)
			if healthy.Status != metav1.ConditionFalse || healthy.Reason != v1alpha1.ReasonInvalidSchedule || !strings.Contains(healthy.Message, bad.says) {
				t.Errorf("PruningHealthy = %s (%s) %s", healthy.Status, healthy.Reason, healthy.Message)
			}
			if result.RequeueAfter != time.Minute {
				t.Errorf("looked at again in %s, want the slow recheck", result.RequeueAfter)
			}
		})
	}
}

func TestAnUnknownTimeZoneOfTheTableIsNamed(t *testing.T) {
	s := newStepped(t, "table: {timeZone: Mars/Olympus}")
	s.step(t)
	ready := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionSchemaReady)
	if ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonInvalidTimeZone || !strings.Contains(ready.Message, "Mars/Olympus") {
		t.Errorf("SchemaReady = %s (%s) %s", ready.Status, ready.Reason, ready.Message)
	}
}

func TestThreeHundredTransportsFitInOneResource(t *testing.T) {
	list := "transports:"
	for i := range 300 {
		list += fmt.Sprintf("\n  - {name: transport-%d, type: doctrine, outbox: transport-%d}", i, (i+1)%300)
	}
	s := newStepped(t, list)
	s.step(t)
	if !meta.IsStatusConditionTrue(s.inbox.Status.Conditions, v1alpha1.ConditionReady) || len(s.inbox.Status.Transports) != 300 {
		t.Errorf("%d transports in the status;\n%s", len(s.inbox.Status.Transports), describe(s.inbox))
	}
}

func TestEventsTellOfTransitionsOnly(t *testing.T) {
	s := newStepped(t, "retention: {period: 1h}")
	s.step(t)
	if first := drain(s.events); !containsText(first, "Warning TooShort") {
		t.Errorf("events = %q", first)
	}
	s.step(t)
	if second := drain(s.events); len(second) != 0 {
		t.Errorf("events without a transition: %q", second)
	}
}

func TestAJobThatTheNamespaceRejectsIsNamed(t *testing.T) {
	s := newStepped(t, "pruning: {schedule: '* * * * *'}")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.inbox.Namespace, Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}}}
	if err := kube.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}
	if err := kube.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(time.Minute)
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) { // the quota's admission has a cache
		s.step(t)
		healthy := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionPruningHealthy)
		if healthy.Reason == v1alpha1.ReasonJobRejected && strings.Contains(healthy.Message, "quota") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("PruningHealthy = %s (%s) %s", healthy.Status, healthy.Reason, healthy.Message)
		}
		s.now = s.now.Add(time.Minute)
	}
}

func drain(recorder *events.FakeRecorder) (all []string) {
	for {
		select {
		case one := <-recorder.Events:
			all = append(all, one)
		default:
			return all
		}
	}
}

func containsText(all []string, part string) bool {
	return slices.ContainsFunc(all, func(one string) bool { return strings.Contains(one, part) })
}
