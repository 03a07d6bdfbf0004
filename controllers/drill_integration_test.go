//go:build integration

package controllers

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/drill"
)

func (s *stepped) drills(t *testing.T) []batchv1.Job {
	t.Helper()
	jobs, err := jobsOf(t.Context(), kube, s.inbox, purposeDrill)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// target is the URL of the resource's database.
func (s *stepped) target(t *testing.T) string {
	t.Helper()
	value, failure := s.secretValue(t.Context(), s.inbox.Namespace, s.inbox.Spec.Database.URLSecretRef)
	if failure != nil {
		t.Fatal(failure.Message)
	}
	return string(value)
}

// runDrill does what the Job's pod would: it drills the real table, and ends the Job.
func (s *stepped) runDrill(t *testing.T, job *batchv1.Job) drill.Report {
	t.Helper()
	config, err := database.Parse(s.target(t))
	if err != nil {
		t.Fatal(err)
	}
	report := drill.Run(t.Context(), drill.Options{Contract: assessment.Contract(&s.inbox.Spec), Inbox: config, Handlers: []*database.Config{config}})
	encoded, err := report.JSON()
	if err != nil {
		t.Fatal(err)
	}
	exitCode := map[string]int32{drill.ResultProven: 0, drill.ResultBroken: 4, drill.ResultNotTried: 3}[report.Result]
	s.endWith(t, job, exitCode, string(encoded))
	return report
}

// theOneDrill is the Job that is not ended, of which there must be one.
func (s *stepped) theOneDrill(t *testing.T) *batchv1.Job {
	t.Helper()
	open := slices.DeleteFunc(s.drills(t), func(job batchv1.Job) bool { return finished(&job) })
	if len(open) != 1 {
		t.Fatalf("%d drills are under way", len(open))
	}
	return &open[0]
}

func (s *stepped) proven(t *testing.T, status metav1.ConditionStatus, reason string) {
	t.Helper()
	found := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionContractProven)
	if found == nil || found.Status != status || found.Reason != reason {
		t.Fatalf("ContractProven is %+v, want %s (%s)", found, status, reason)
	}
}

func (s *stepped) ready() metav1.ConditionStatus {
	return meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionReady).Status
}

func TestADrillAtOnceAtEachTickAndAfterEachChangeOfTheTable(t *testing.T) {
	s := newStepped(t, `pruning: {suspend: true}
  drill: {schedule: '0 3 * * *'}
  database: {urlSecretRef: {name: database}, handlerURLSecretRefs: [{name: database}]}`)
	s.step(t) // makes the table, so a drill is due
	s.proven(t, metav1.ConditionUnknown, v1alpha1.ReasonAwaitingRun)
	s.step(t) // a second look, and a second leader, make no second Job
	job := s.theOneDrill(t)
	container := job.Spec.Template.Spec.Containers[0]
	if container.Args[0] != "drill" || !slices.Contains(container.Args, "--table=messenger_inbox") {
		t.Errorf("the arguments are %q", container.Args)
	}
	if env := container.Env; len(env) != 3 || env[1].Name != "INBOX_DATABASE_URL" || env[2].Name != "INBOX_HANDLER_URL_0" || env[2].ValueFrom.SecretKeyRef.Name != "database" {
		t.Errorf("the environment is %+v", env)
	}

	report := s.runDrill(t, job)
	s.step(t)
	s.proven(t, metav1.ConditionTrue, v1alpha1.ReasonProven)
	status := s.inbox.Status.Drill
	if status.Result != v1alpha1.DrillProven || len(status.Checks) != len(report.Checks) || status.LockWait.Duration < 50*time.Millisecond || status.Job != job.Name {
		t.Errorf("the status is %+v", status)
	}
	s.step(t)
	if jobs := s.drills(t); len(jobs) != 1 {
		t.Fatalf("%d drills before the next tick", len(jobs))
	}

	// The tick. Its Job ends on a trigger that came meanwhile, which is itself a change.
	s.now = s.now.Add(24 * time.Hour)
	s.step(t)
	job = s.theOneDrill(t)
	execute(t, s.target(t), `CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`)
	execute(t, s.target(t), `CREATE TRIGGER swallow BEFORE INSERT ON messenger_inbox FOR EACH ROW EXECUTE FUNCTION swallow()`)
	s.runDrill(t, job)
	s.step(t)
	s.proven(t, metav1.ConditionFalse, v1alpha1.ReasonContractBroken)
	mustSay(t, s.inbox, v1alpha1.ConditionReady, "InsertSwallowed", `trigger "swallow"`)
	if s.ready() != metav1.ConditionFalse {
		t.Errorf("Ready is %s", s.ready())
	}
	s.runDrill(t, s.theOneDrill(t)) // of the table with the trigger
	s.step(t)

	// Mended, the table is the first one again, and is drilled anew.
	execute(t, s.target(t), `DROP TRIGGER swallow ON messenger_inbox`)
	s.step(t)
	s.proven(t, metav1.ConditionFalse, v1alpha1.ReasonContractBroken)
	s.runDrill(t, s.theOneDrill(t))
	s.step(t)
	s.proven(t, metav1.ConditionTrue, v1alpha1.ReasonProven)
	if s.ready() != metav1.ConditionTrue {
		t.Errorf("Ready is %s:\n%s", s.ready(), describe(s.inbox))
	}
	if jobs := s.drills(t); len(jobs) > finishedJobsKept {
		t.Errorf("%d ended drills are kept", len(jobs))
	}
}

func TestADrillThatCouldNotBeTriedLeavesReadyAlone(t *testing.T) {
	s := newStepped(t, `{pruning: {suspend: true}, drill: {schedule: '0 3 * * *'}, transports: [{name: orders, type: amqp}], database: {urlSecretRef: {name: database}}}`)
	s.step(t)
	release := holdLock(t, s.target(t), "messenger_inbox")
	s.runDrill(t, s.theOneDrill(t))
	release()
	s.step(t)
	s.proven(t, metav1.ConditionUnknown, v1alpha1.ReasonDrillNotTried)
	mustSay(t, s.inbox, v1alpha1.ConditionContractProven, "LockTimeout", "AccessExclusiveLock")
	if s.ready() != metav1.ConditionTrue {
		t.Errorf("Ready is %s", s.ready())
	}
	if jobs := s.drills(t); len(jobs) != 1 {
		t.Errorf("%d drills: it is tried again at the next tick, not at once", len(jobs))
	}
}

func TestADrillWithoutAReportSaysHowItEnded(t *testing.T) {
	s := newStepped(t, `{pruning: {suspend: true}, drill: {schedule: '0 3 * * *'}, transports: [{name: orders, type: amqp}], database: {urlSecretRef: {name: database}}}`)
	s.step(t)
	s.endWith(t, s.theOneDrill(t), 137, "")
	s.step(t)
	s.proven(t, metav1.ConditionUnknown, v1alpha1.ReasonRunFailed)
	mustSay(t, s.inbox, v1alpha1.ConditionContractProven, "exit code 137")
}

func TestNoDrillWithoutAScheduleOrATableOrWhileSuspended(t *testing.T) {
	for name, test := range map[string]struct {
		spec, reason string
	}{
		"no schedule":        {"pruning: {suspend: true}", v1alpha1.ReasonNotDeclared},
		"suspended":          {"suspend: true\n  drill: {schedule: '@daily'}", v1alpha1.ReasonSuspended},
		"no table":           {"schema: {policy: Observe}\n  drill: {schedule: '@daily'}", v1alpha1.ReasonAwaitingRun},
		"a day that is none": {"drill: {schedule: '0 0 31 2 *'}", v1alpha1.ReasonInvalidSchedule},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepped(t, test.spec)
			s.now = s.now.Add(48 * time.Hour)
			s.step(t)
			if jobs := s.drills(t); len(jobs) != 0 {
				t.Errorf("%d drills", len(jobs))
			}
			found := meta.FindStatusCondition(s.inbox.Status.Conditions, v1alpha1.ConditionContractProven)
			if found.Reason != test.reason {
				t.Errorf("ContractProven is %+v", found)
			}
		})
	}
}

func TestTheReservedTransportNameIsRefused(t *testing.T) {
	namespace := newNamespace(t)
	inbox := orders(t, namespace, "")
	inbox.Spec.Transports[0].Name = v1alpha1.ReservedTransportName
	if err := kube.Create(t.Context(), inbox); err == nil || !strings.Contains(err.Error(), "reserved for drills") {
		t.Errorf("the error is %v", err)
	}
}
