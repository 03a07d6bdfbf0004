//go:build integration

package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

func TestPauseAndResumeChangeOneField(t *testing.T) {
	namespace := newNamespace(t)
	inbox := resource(t, namespace, "orders", "")
	runPlugin(t, "pause", "orders", "-n", namespace).must(t, exitDone, "messaginginbox.messaginginbox.dev/orders paused\n")
	paused := reread(t, inbox)
	if !paused.Spec.Suspend {
		t.Fatal("spec.suspend is false after pause")
	}
	runPlugin(t, "pause", "orders", "-n", namespace).must(t, exitDone, "orders was paused already")
	if again := reread(t, inbox); again.ResourceVersion != paused.ResourceVersion {
		t.Error("pausing what is paused wrote to the resource")
	}
	out := runPlugin(t, "resume", "orders", "-n", namespace).must(t, exitDone, "orders resumed\n")
	if strings.Contains(out.stderr, "Warning") {
		t.Errorf("nobody else manages the resource, yet: %s", out.stderr)
	}
	resumed := reread(t, inbox)
	resumed.Spec.Suspend = inbox.Spec.Suspend
	if before, after := encode(t, inbox.Spec), encode(t, resumed.Spec); before != after {
		t.Errorf("the spec was\n%s\nand is\n%s", before, after)
	}
	runPlugin(t, "resume", "orders", "-n", namespace).must(t, exitDone, "orders was not paused")
	runPlugin(t, "pause", "nothing", "-n", namespace).must(t, exitFailure, `reading nothing in namespace `+namespace, "not found")
}

func encode(t *testing.T, value any) string {
	t.Helper()
	document, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

func TestPauseWarnsOfWhoeverAppliesTheField(t *testing.T) {
	namespace := newNamespace(t)
	inbox := resource(t, namespace, "orders", "")
	applied := &v1alpha1.MessagingInbox{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: namespace, Labels: map[string]string{"argocd.argoproj.io/instance": "shop"}}, Spec: inbox.Spec}
	identify(applied)
	document := encode(t, applied)
	if err := kubeClient(t).Patch(t.Context(), applied, client.RawPatch("application/apply-patch+yaml", []byte(document)), client.FieldOwner("deploy-bot"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	runPlugin(t, "pause", "orders", "-n", namespace).must(t, exitDone,
		"Warning: Argo CD (argocd.argoproj.io/instance=shop) and whoever applies spec.suspend as field manager deploy-bot manages this resource and may revert the change",
		"set spec.suspend: true where the manifest is kept")
	if !reread(t, inbox).Spec.Suspend {
		t.Error("it was warned of, and not done")
	}
}

func TestPruneIsRefusedByTheGatesOfTheSchedule(t *testing.T) {
	namespace := newNamespace(t)
	prune := func(name string) outcome {
		return runPlugin(t, "prune", name, "--now", "--wait=false", "--image", "inbox:test", "-n", namespace)
	}
	resource(t, namespace, "new", "")
	prune("new").must(t, exitRefused, "refused: DatabaseReachable is Unknown (NotInspected). It was not assessed.")

	short := resource(t, namespace, "short", "")
	assessed(t, short, metav1.Condition{Type: v1alpha1.ConditionRetentionSafe, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTooShort, Message: "Set spec.retention.period to 402h or more."})
	prune("short").must(t, exitRefused, "refused: RetentionSafe is False (TooShort). Set spec.retention.period to 402h or more.")
	runPlugin(t, "prune", "short", "--dry-run", "--wait=false", "--image", "inbox:test", "-n", namespace).must(t, exitRefused, "TooShort")

	suspended := resource(t, namespace, "suspended", "pruning: {suspend: true}")
	assessed(t, suspended)
	prune("suspended").must(t, exitRefused, "refused: spec.pruning.suspend is true")

	changed := resource(t, namespace, "changed", "")
	assessed(t, changed)
	changed.Spec.Retention.MarginPercent = 500
	if err := kubeClient(t).Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	prune("changed").must(t, exitRefused, "DatabaseReachable is known for generation 1, and the spec is at generation 2")

	if jobs := jobsIn(t, namespace); len(jobs) != 0 {
		t.Errorf("%d Jobs were created, such as %s", len(jobs), jobs[0].Name)
	}
}

func TestPruneNowCreatesTheSchedulesJobAndShowsItsResult(t *testing.T) {
	namespace := newNamespace(t)
	inbox := resource(t, namespace, "orders", "")
	assessed(t, inbox)
	const report = `{"result":"Done","rowsDeleted":1833,"durationSeconds":0.412}`
	out := finish(t, plugin(t, "prune", "orders", "--now", "--image", "inbox:test", "-n", namespace), func(*os.Process) {
		job := awaitJob(t, namespace)
		checkPruningJob(t, inbox, job)
		runPlugin(t, "prune", "orders", "--now", "-n", namespace).must(t, exitRefused, "refused: Job "+job.Name+" is at work.")
		endJob(t, job, 0, report)
	}).must(t, exitDone, " created\n", "Done, 1,833 rows deleted in 412ms\n")
	if out.stderr != "" {
		t.Errorf("standard error has %q", out.stderr)
	}

	// The image is now that of the newest Job, and the next Job has a name of its own.
	out = runPlugin(t, "prune", "orders", "--dry-run", "--wait=false", "-o", "json", "-n", namespace).must(t, exitDone)
	var job batchv1.Job
	if err := json.Unmarshal([]byte(out.stdout), &job); err != nil || job.Kind != "Job" {
		t.Fatalf("%v: %s", err, out.stdout)
	}
	container := job.Spec.Template.Spec.Containers[0]
	if container.Image != "inbox:test" || !slices.Contains(container.Args, "--dry-run=true") {
		t.Errorf("the image is %s and the arguments are %q", container.Image, container.Args)
	}
}

func awaitJob(t *testing.T, namespace string) *batchv1.Job {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if jobs := jobsIn(t, namespace); len(jobs) > 0 {
			return &jobs[0]
		}
	}
	t.Fatal("no Job was created within a minute")
	return nil
}

func checkPruningJob(t *testing.T, inbox *v1alpha1.MessagingInbox, job *batchv1.Job) {
	t.Helper()
	container := job.Spec.Template.Spec.Containers[0]
	for _, argument := range []string{"prune", "--retention=168h0m0s", "--required-window=29h0m0s", "--dry-run=false"} {
		if !slices.Contains(container.Args, argument) {
			t.Errorf("the arguments %q lack %s", container.Args, argument)
		}
	}
	if !metav1.IsControlledBy(job, inbox) {
		t.Errorf("the owners are %+v", job.OwnerReferences)
	}
	// Without a tick it counts by its creation: the API server's clock, not this machine's.
	if tick, has := job.Annotations["messaginginbox.dev/tick"]; has {
		t.Errorf("the Job has the tick %s", tick)
	}
	if job.Annotations["messaginginbox.dev/generation"] != "1" {
		t.Errorf("the annotations are %v", job.Annotations)
	}
}

func TestWhatARunCameToIsTheExitCode(t *testing.T) {
	for name, test := range map[string]struct {
		podCode int32
		report  string
		want    int
		says    string
	}{
		"work is left":         {0, `{"result":"TimeLimit","rowsDeleted":5}`, exitTimeLimit, "expired records are left for the next one"},
		"the pruner refused":   {4, `{"result":"Refused","message":"the table changed"}`, exitRefused, "the pruner refused: the table changed"},
		"the pod failed":       {1, `{"result":"Failed","message":"the database restarts"}`, exitFailure, "the database restarts"},
		"the pod said nothing": {137, ``, exitFailure, "left no report"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			assessed(t, resource(t, namespace, "orders", ""))
			finish(t, plugin(t, "prune", "orders", "--now", "--image", "inbox:test", "-n", namespace), func(*os.Process) {
				endJob(t, awaitJob(t, namespace), test.podCode, test.report)
			}).must(t, test.want, test.says)
		})
	}
}

func TestAWaitEnds(t *testing.T) {
	namespace := newNamespace(t)
	assessed(t, resource(t, namespace, "orders", ""))
	runPlugin(t, "prune", "orders", "--now", "--image", "inbox:test", "--timeout", "2s", "-n", namespace).must(t, exitTimeLimit, "has not ended after 2s; it goes on")

	other := newNamespace(t)
	assessed(t, resource(t, other, "orders", ""))
	finish(t, plugin(t, "prune", "orders", "--now", "--image", "inbox:test", "-n", other), func(*os.Process) {
		if err := kubeClient(t).Delete(t.Context(), awaitJob(t, other), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
	}).must(t, exitFailure, "was removed before its end")
}

func TestWithoutAJobOrAnOperatorTheImageMustBeNamed(t *testing.T) {
	namespace := newNamespace(t)
	assessed(t, resource(t, namespace, "orders", ""))
	runPlugin(t, "prune", "orders", "--now", "-n", namespace).must(t, exitFailure, "name the image with --image")
}

func TestDrillNow(t *testing.T) {
	namespace := newNamespace(t)
	inbox := resource(t, namespace, "orders", "")
	assessed(t, inbox)
	finish(t, plugin(t, "drill", "orders", "--image", "inbox:test", "-n", namespace), func(*os.Process) {
		job := awaitJob(t, namespace)
		if container := job.Spec.Template.Spec.Containers[0]; container.Args[0] != "drill" {
			t.Errorf("the arguments are %q", container.Args)
		}
		endJob(t, job, 4, `{"result":"Broken","reason":"DuplicateAccepted","message":"A second record was accepted.","checks":[
			{"name":"redelivery","connection":"inbox","passed":false,"reason":"DuplicateAccepted","expected":"a refusal","happened":"it was accepted","seconds":0.004},
			{"name":"rollback","connection":"inbox","passed":true,"seconds":0.003}]}`)
	}).must(t, exitBroken, "no  inbox       redelivery", "Broken (DuplicateAccepted), 1 of 2 checks passed", "the contract is broken (DuplicateAccepted): A second record was accepted.")

	assessed(t, resource(t, namespace, "away", ""), metav1.Condition{Type: v1alpha1.ConditionDatabaseReachable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable, Message: "The host does not answer."})
	runPlugin(t, "drill", "away", "--image", "inbox:test", "-n", namespace).must(t, exitNotTried, "refused: DatabaseReachable is False (Unreachable). The host does not answer.")
}

// The rights that docs/kubectl-plugin.md names are all that a member of a team needs.
func TestAMemberOfATeamNeedsRightsInOneNamespaceOnly(t *testing.T) {
	namespace := newNamespace(t)
	assessed(t, resource(t, namespace, "orders", ""))
	put(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "member", Namespace: namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"messaginginboxes"}, Verbs: []string{"get", "list", "patch"}},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "create"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}})
	put(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "member", Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "member"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: namespace}},
	})
	member := func(arguments ...string) []string { return append(arguments, "-n", namespace, "--as", namespace) }
	runPlugin(t, member("status")...).must(t, exitDone, "READY")
	runPlugin(t, "status", "-A", "--as", namespace).must(t, exitFailure, "listing the resources of all namespaces", "forbidden")
	runPlugin(t, member("prune", "orders", "--now")...).must(t, exitFailure, "name the image with --image", "forbidden")
	finish(t, plugin(t, member("prune", "orders", "--now", "--image", "inbox:test")...), func(*os.Process) {
		endJob(t, awaitJob(t, namespace), 0, `{"result":"Done","rowsDeleted":0}`)
	}).must(t, exitDone, "Done, 0 rows deleted")
	runPlugin(t, member("drill", "orders", "--wait=false", "-o", "name")...).must(t, exitDone, "job.batch/orders-drill-now-")
	runPlugin(t, member("pause", "orders")...).must(t, exitDone, "orders paused")
}

func TestStatusOfOneAndOfAllNamespaces(t *testing.T) {
	here, there := newNamespace(t), newNamespace(t)
	assessed(t, resource(t, here, "orders", ""))
	runPlugin(t, "status", "-n", here).must(t, exitDone, here+"/orders  READY\n", "What to do\n  Nothing.\n") // the only one is shown whole
	unsafe := resource(t, there, "newsletter", "")
	message := metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTooShort, Message: "Set spec.retention.period to 402h or more."}
	ready, safe := message, message
	ready.Type, safe.Type = v1alpha1.ConditionReady, v1alpha1.ConditionRetentionSafe
	assessed(t, unsafe, ready, safe)

	out := runPlugin(t, "status", "newsletter", "-n", there).must(t, exitDone, there+"/newsletter  NOT READY\n", "1. RetentionSafe (TooShort): Set spec.retention.period to 402h or more.\n")
	if strings.Contains(out.stdout, "\x1b") {
		t.Error("there are colours, and no terminal")
	}
	all := runPlugin(t, "status", "-A").must(t, exitDone)
	for _, line := range [][]string{{here, "orders", "READY", v1alpha1.ReasonAllChecksPassed}, {there, "newsletter", "NOT", "READY", v1alpha1.ReasonTooShort}} {
		if !slices.ContainsFunc(strings.Split(all.stdout, "\n"), func(shown string) bool {
			return strings.HasPrefix(oneLine(shown), strings.Join(line, " ")+" ")
		}) {
			t.Errorf("no line begins with %v in\n%s", line, all.stdout)
		}
	}

	runPlugin(t, "status", "-n", here, "-o", "name").must(t, exitDone, "messaginginbox.messaginginbox.dev/orders\n")
	var list v1alpha1.MessagingInboxList
	out = runPlugin(t, "status", "-n", here, "-o", "json").must(t, exitDone)
	if err := json.Unmarshal([]byte(out.stdout), &list); err != nil || list.Kind != "MessagingInboxList" || len(list.Items) != 1 || list.Items[0].Kind != v1alpha1.Kind {
		t.Errorf("%v: %s", err, out.stdout)
	}
	runPlugin(t, "status", "orders", "-n", here, "-o", "yaml").must(t, exitDone, "\nkind: MessagingInbox\n", "\n  name: orders\n")
	runPlugin(t, "status", "-n", newNamespace(t)).must(t, exitDone, "No MessagingInbox found in namespace ")
	runPlugin(t, "status", "--context", "elsewhere").must(t, exitFailure, `context "elsewhere" does not exist`)
}

// TestScriptsOfACluster runs the scenarios of testdata/cluster, each with a resource orders
// that is ready.
func TestScriptsOfACluster(t *testing.T) {
	namespace := newNamespace(t)
	assessed(t, resource(t, namespace, "orders", ""))
	testscript.Run(t, testscript.Params{Dir: "testdata/cluster", Setup: func(script *testscript.Env) error {
		script.Setenv("KUBECONFIG", apiServer.kubeconfig)
		script.Setenv("NAMESPACE", namespace)
		return nil
	}})
}

func TestWindowAndCompletionReadTheCluster(t *testing.T) {
	namespace := newNamespace(t)
	resource(t, namespace, "orders", "")
	resource(t, namespace, "newsletter", "")
	runPlugin(t, "window", "orders", "-n", namespace).must(t, exitDone, namespace+"/orders\n", "RetentionSafe: True (CoversWindow)")
	observed := resource(t, namespace, "observed", "")
	observed.Spec.Transports = []v1alpha1.Transport{{
		Name: "orders", Type: v1alpha1.TransportSQS, Inbox: true,
		Observe: &v1alpha1.ObserveSpec{URLSecretRef: v1alpha1.SecretKeyReference{Name: "broker", Key: "url"}},
	}}
	if err := kubeClient(t).Update(t.Context(), observed); err != nil {
		t.Fatal(err)
	}
	observed.Status.Transports = []v1alpha1.TransportStatus{{Name: "orders", Covered: true, Observed: &v1alpha1.ObservedSettings{VisibilityTimeout: &metav1.Duration{Duration: 90 * time.Second}}}}
	assessed(t, observed, metav1.Condition{Type: v1alpha1.ConditionRetentionSafe, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMaxAgeExceeded, Message: "As the operator says."})
	runPlugin(t, "window", "observed", "-n", namespace).must(t, exitDone,
		"orders     redelivery after lost acknowledgements  1m30s       observed\n", "RetentionSafe: False (MaxAgeExceeded). As the operator says.")
	runPlugin(t, "window", "-n", namespace).must(t, exitDone, "\n\n"+namespace+"/observed\n", "\n\n"+namespace+"/orders\n")
	if err := kubeClient(t).Delete(t.Context(), observed); err != nil {
		t.Fatal(err)
	}
	out := runPlugin(t, "__complete", "status", "-n", namespace, "o").must(t, exitDone)
	if !strings.HasPrefix(out.stdout, "orders\n:4\n") {
		t.Errorf("the completions are\n%s", out.stdout)
	}
	runPlugin(t, "__complete", "pause", "-n", namespace, "").must(t, exitDone, "newsletter\norders\n:4\n")
}
