//go:build integration

package controllers

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/manifest"
	"github.com/messaginginbox/operator/test/postgres"
)

// The suite has one real API server and one real PostgreSQL. A manager reconciles in
// all namespaces but those of tests that call Reconcile themselves, with a clock of
// their own.
var (
	apiserver *rest.Config
	kube      client.Client
)

const (
	patience    = 40 * time.Second // for what takes a second or two on a quiet machine
	slowRecheck = time.Second      // in the tests; a minute in production
)

func TestMain(m *testing.M) { os.Exit(runSuite(m)) }

func runSuite(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	restConfig, err := environment.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the API server (KUBEBUILDER_ASSETS names its directory; see make test-integration):", err)
		return 1
	}
	defer func() { _ = environment.Stop() }()
	apiserver = restConfig
	scheme := runtime.NewScheme()
	if err = clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	if err = v1alpha1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	if kube, err = client.New(restConfig, client.Options{Scheme: scheme}); err != nil {
		panic(err)
	}
	// An ANALYZE that comes whenever the server likes is news of the table.
	return postgres.Main(m, postgres.Options{Settings: map[string]string{"autovacuum": "off"}})
}

// startManager runs the operator for the namespaces of one test, as it runs in a cluster.
func startManager(t *testing.T, namespaces ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	skipNameValidation := true
	operator, err := ctrl.NewManager(apiserver, ctrl.Options{
		Scheme:  kube.Scheme(),
		Cache:   CacheOptions(namespaces...),
		Metrics: server.Options{BindAddress: "0"},
		Logger:  logr.Discard(),
		// One process runs a manager for each test, each with a controller of the same name.
		Controller: config.Controller{SkipNameValidation: &skipNameValidation},
	})
	if err != nil {
		t.Fatal(err)
	}
	pools := database.NewPools(database.PoolOptions{})
	reconciler := &Reconciler{
		Client: operator.GetClient(), Live: operator.GetAPIReader(), Events: operator.GetEventRecorder(ManagedBy),
		Pools: pools, Image: JobImage{Name: "localhost/inbox:test"}, Clock: time.Now, Recheck: 5 * time.Minute, SlowRecheck: slowRecheck,
	}
	if err := reconciler.SetupWithManager(ctx, operator, 4); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- operator.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		pools.Close()
	})
}

var namespaceNumber atomic.Int64

// newNamespace makes a namespace that enforces the restricted Pod Security Standard.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   fmt.Sprintf("test-%d", namespaceNumber.Add(1)),
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := kube.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// managed makes a namespace in which a manager reconciles.
func managed(t *testing.T) string {
	t.Helper()
	namespace := newNamespace(t)
	startManager(t, namespace)
	return namespace
}

// putSecret writes the Secret database.
func putSecret(t *testing.T, namespace, key, value string) {
	t.Helper()
	putSecretValues(t, namespace, "database", map[string]string{key: value})
}

func putSecretValues(t *testing.T, namespace, name string, values map[string]string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: values}
	err := kube.Create(t.Context(), secret)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		err = kube.Update(t.Context(), secret)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// orders is a resource whose retention covers its window; spec is more YAML of the spec.
func orders(t *testing.T, namespace, spec string) *v1alpha1.MessagingInbox {
	t.Helper()
	if !strings.Contains(spec, "transports:") {
		spec += "\n  transports: [{name: orders, type: amqp}]"
	}
	if !strings.Contains(spec, "database:") {
		spec += "\n  database: {urlSecretRef: {name: database}}"
	}
	inboxes, err := manifest.Parse("test", []byte("apiVersion: messaginginbox.dev/v1alpha1\nkind: MessagingInbox\nmetadata: {name: orders, namespace: "+namespace+"}\nspec:\n  "+spec))
	if err != nil {
		t.Fatal(err)
	}
	return inboxes[0]
}

func apply(t *testing.T, inbox *v1alpha1.MessagingInbox) {
	t.Helper()
	if err := kube.Create(t.Context(), inbox); err != nil {
		t.Fatal(err)
	}
}

// change edits the newest version of the resource.
func change(t *testing.T, inbox *v1alpha1.MessagingInbox, edit func(*v1alpha1.MessagingInboxSpec)) {
	t.Helper()
	newest := get(t, inbox)
	before := newest.DeepCopy()
	edit(&newest.Spec)
	if err := kube.Patch(t.Context(), newest, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, inbox *v1alpha1.MessagingInbox) *v1alpha1.MessagingInbox {
	t.Helper()
	newest := &v1alpha1.MessagingInbox{}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(inbox), newest); err != nil {
		t.Fatal(err)
	}
	return newest
}

// await waits until the condition of the newest generation has the status and reason and
// says all of the parts, and returns the resource.
func await(t *testing.T, inbox *v1alpha1.MessagingInbox, conditionType string, status metav1.ConditionStatus, reason string, says ...string) *v1alpha1.MessagingInbox {
	t.Helper()
	var newest *v1alpha1.MessagingInbox
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		newest = get(t, inbox)
		found := meta.FindStatusCondition(newest.Status.Conditions, conditionType)
		if found != nil && found.Status == status && found.Reason == reason && found.ObservedGeneration == newest.Generation &&
			!slices.ContainsFunc(says, func(part string) bool { return !strings.Contains(found.Message, part) }) {
			return newest
		}
	}
	t.Fatalf("%s did not become %s (%s) %q; the conditions are\n%s", conditionType, status, reason, says, describe(newest))
	return nil
}

func awaitReady(t *testing.T, inbox *v1alpha1.MessagingInbox) *v1alpha1.MessagingInbox {
	t.Helper()
	return await(t, inbox, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllChecksPassed)
}

func describe(inbox *v1alpha1.MessagingInbox) string {
	var text strings.Builder
	for _, condition := range inbox.Status.Conditions {
		fmt.Fprintf(&text, "  %s=%s (%s) %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return text.String()
}

// message returns what a condition says.
func message(t *testing.T, inbox *v1alpha1.MessagingInbox, conditionType string) string {
	t.Helper()
	found := meta.FindStatusCondition(inbox.Status.Conditions, conditionType)
	if found == nil {
		t.Fatalf("no condition %s in\n%s", conditionType, describe(inbox))
	}
	return found.Message
}

func mustSay(t *testing.T, inbox *v1alpha1.MessagingInbox, conditionType string, parts ...string) {
	t.Helper()
	text := message(t, inbox, conditionType)
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s says %q, which lacks %q", conditionType, text, part)
		}
	}
}

// quietLogger passes the reconciler's log to the test's own.
func quietLogger(t *testing.T) context.Context { return ctrl.LoggerInto(t.Context(), testr.New(t)) }
