//go:build integration

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/manifest"
)

// apiServer is the one real API server of the tests, started when the first asks for it.
var apiServer struct {
	once        sync.Once
	environment *envtest.Environment
	kubeconfig  string
	kube        client.Client
	err         error
}

func startAPIServer() {
	s := &apiServer
	s.environment = &envtest.Environment{CRDDirectoryPaths: []string{"../../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	config, err := s.environment.Start()
	if err != nil {
		s.err = fmt.Errorf("starting the API server (KUBEBUILDER_ASSETS names its directory; see make test-integration): %w", err)
		return
	}
	directory, err := os.MkdirTemp("", "inbox-cli")
	if err != nil {
		s.err = err
		return
	}
	s.kubeconfig = filepath.Join(directory, "kubeconfig")
	if s.err = os.WriteFile(s.kubeconfig, s.environment.KubeConfig, 0o600); s.err != nil {
		return
	}
	scheme, err := newScheme()
	if err != nil {
		s.err = err
		return
	}
	s.kube, s.err = client.New(config, client.Options{Scheme: scheme})
}

func stopAPIServer() {
	if apiServer.environment == nil {
		return
	}
	if err := apiServer.environment.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API server:", err)
	}
	if apiServer.kubeconfig != "" {
		_ = os.RemoveAll(filepath.Dir(apiServer.kubeconfig)) // a file of the temporary directory
	}
}

// kubeClient is a client of the API server.
func kubeClient(t *testing.T) client.Client {
	t.Helper()
	apiServer.once.Do(startAPIServer)
	if apiServer.err != nil {
		t.Fatal(apiServer.err)
	}
	return apiServer.kube
}

var namespaceNumber atomic.Int64

func newNamespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("plugin-%d", namespaceNumber.Add(1))
	put(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return name
}

func put(t *testing.T, object client.Object) {
	t.Helper()
	if err := kubeClient(t).Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// resource creates a MessagingInbox; spec is more YAML of the spec.
func resource(t *testing.T, namespace, name, spec string) *v1alpha1.MessagingInbox {
	t.Helper()
	document := "apiVersion: messaginginbox.dev/v1alpha1\nkind: MessagingInbox\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec:\n" +
		"  database: {urlSecretRef: {name: database}}\n  transports: [{name: orders, type: amqp}]\n"
	if spec != "" {
		document += "  " + spec + "\n"
	}
	inboxes, err := manifest.Parse("test", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	put(t, inboxes[0])
	return inboxes[0]
}

// assessed writes the status that an operator would have written: every gate open, but
// for the changed conditions.
func assessed(t *testing.T, inbox *v1alpha1.MessagingInbox, changed ...metav1.Condition) {
	t.Helper()
	good := []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllChecksPassed, Message: "The inbox keeps its contract."},
		{Type: v1alpha1.ConditionRetentionSafe, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCoversWindow, Message: "It covers the window."},
		{Type: v1alpha1.ConditionDatabaseReachable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected, Message: "Connected."},
		{Type: v1alpha1.ConditionSchemaReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonContractMet, Message: "It meets the contract."},
	}
	for _, other := range changed {
		for i := range good {
			if good[i].Type == other.Type {
				good[i] = other
			}
		}
	}
	for i := range good {
		good[i].ObservedGeneration, good[i].LastTransitionTime = inbox.Generation, metav1.Now()
	}
	inbox.Status.ObservedGeneration, inbox.Status.Conditions = inbox.Generation, good
	inbox.Status.Retention = &v1alpha1.RetentionStatus{
		Effective: &metav1.Duration{Duration: 168 * time.Hour}, RequiredWithMargin: &metav1.Duration{Duration: 29 * time.Hour},
	}
	if err := kubeClient(t).Status().Update(t.Context(), inbox); err != nil {
		t.Fatal(err)
	}
}

func reread(t *testing.T, inbox *v1alpha1.MessagingInbox) *v1alpha1.MessagingInbox {
	t.Helper()
	newest := &v1alpha1.MessagingInbox{}
	if err := kubeClient(t).Get(t.Context(), client.ObjectKeyFromObject(inbox), newest); err != nil {
		t.Fatal(err)
	}
	return newest
}

func jobsIn(t *testing.T, namespace string) []batchv1.Job {
	t.Helper()
	var list batchv1.JobList
	if err := kubeClient(t).List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// endJob ends a Job as the kubelet and the Job controller would, with what its pod reported.
func endJob(t *testing.T, job *batchv1.Job, exitCode int32, report string) {
	t.Helper()
	kube := kubeClient(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name + "-x", Labels: map[string]string{batchv1.JobNameLabel: job.Name}}, Spec: job.Spec.Template.Spec}
	put(t, pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "inbox", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Message: report, FinishedAt: metav1.Now()},
	}}}
	if err := kube.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	job.Status.StartTime = &now
	before, final, reason := batchv1.JobFailureTarget, batchv1.JobFailed, "BackoffLimitExceeded"
	if exitCode == 0 {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		before, final, reason = batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, "CompletionsReached"
	}
	for _, conditionType := range []batchv1.JobConditionType{before, final} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: conditionType, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: now})
	}
	if err := kube.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
}

// plugin runs "kubectl inbox" as kubectl would: as a process of that name.
func plugin(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	kubeClient(t)
	c := exec.Command(os.Args[0], arguments...) // #nosec G204 -- this test binary
	c.Args[0] = pluginProgram
	c.Env = append(os.Environ(), runAsCommand+"=1", "KUBECONFIG="+apiServer.kubeconfig)
	return c
}

func runPlugin(t *testing.T, arguments ...string) outcome {
	t.Helper()
	return finish(t, plugin(t, arguments...), nil)
}

// must checks the exit code, and what the output says.
func (o outcome) must(t *testing.T, code int, says ...string) outcome {
	t.Helper()
	if o.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", o.code, code, o.stdout, o.stderr)
	}
	for _, part := range says {
		if !strings.Contains(o.stdout+o.stderr, part) {
			t.Errorf("the output lacks %q:\n%s%s", part, o.stdout, o.stderr)
		}
	}
	return o
}
