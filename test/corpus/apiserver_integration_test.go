//go:build integration

package corpus

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/cli"
	"github.com/messaginginbox/operator/internal/importer"
	"github.com/messaginginbox/operator/internal/manifest"
)

// Every manifest of the corpus is created in a real API server; what is stored is what
// the command line reads from the file, and inbox check judges it.
func TestImportedManifestsAreAcceptedAndEvaluated(t *testing.T) {
	kube := startAPIServer(t)
	scripts := archives(t)
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		t.Run(name, func(t *testing.T) {
			imported := section(t, scripts[name], "inbox.yaml")
			local, err := manifest.Parse(name, []byte(imported))
			if err != nil || len(local) != 1 {
				t.Fatalf("%d resources, %v", len(local), err)
			}
			stored := &v1alpha1.MessagingInbox{}
			// Not the typed local object: its defaults are already filled in.
			if err := kube.Create(t.Context(), unstructuredOf(t, imported, name)); err != nil {
				t.Fatalf("the API server refuses it: %v", err)
			}
			if err := kube.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, stored); err != nil {
				t.Fatal(err)
			}
			if !equality.Semantic.DeepEqual(stored.Spec, local[0].Spec) {
				t.Errorf("the API server stored\n%+v\nthe command line reads\n%+v", stored.Spec, local[0].Spec)
			}

			condition := retentionSafe(t, imported)
			unbounded := slices.ContainsFunc(stored.Spec.Transports, func(transport v1alpha1.Transport) bool {
				return transport.Inbox && transport.Redelivery != nil && transport.Redelivery.Window != nil &&
					transport.Redelivery.Window.Duration.Duration == importer.UnboundedDuration
			})
			switch {
			case condition.Status == metav1.ConditionUnknown:
				t.Errorf("check gives no answer: %s", condition.Message)
			case unbounded && condition.Status == metav1.ConditionTrue:
				t.Errorf("a window that is not known counts as safe: %s", condition.Message)
			}
		})
	}
}

func startAPIServer(t *testing.T) client.Client {
	t.Helper()
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"../../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	restConfig, err := environment.Start()
	if err != nil {
		t.Fatalf("starting the API server (KUBEBUILDER_ASSETS names its directory; see make test-integration): %v", err)
	}
	t.Cleanup(func() {
		if stopErr := environment.Stop(); stopErr != nil {
			t.Error(stopErr)
		}
	})
	scheme := runtime.NewScheme()
	if err = v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kube, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// retentionSafe is the condition that inbox check prints for the manifest.
func retentionSafe(t *testing.T, content string) metav1.Condition {
	t.Helper()
	file := filepath.Join(t.TempDir(), "inbox.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	command := cli.NewRootCommand()
	command.SetArgs([]string{"check", "-f", file, "-o", "json"})
	command.SetOut(&out)
	if err := command.Execute(); err != nil && !strings.Contains(err.Error(), "Ready would not be True") {
		t.Fatal(err)
	}
	var answer struct {
		Inboxes []struct{ Conditions []metav1.Condition }
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || len(answer.Inboxes) != 1 {
		t.Fatalf("%v in %s", err, out.String())
	}
	condition := meta.FindStatusCondition(answer.Inboxes[0].Conditions, v1alpha1.ConditionRetentionSafe)
	if condition == nil {
		t.Fatalf("no condition RetentionSafe in %s", out.String())
	}
	return *condition
}

func unstructuredOf(t *testing.T, content, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(content), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace("default")
	object.SetName(name)
	return object
}
