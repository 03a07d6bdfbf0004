//go:build e2e

// Package e2e tests the operator as it runs in production: as a Deployment from its own
// image, installed from config/default with its own ServiceAccount, on a real node, with
// real Job pods and a real PostgreSQL. A missing right in its role fails these tests.
package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/test/environment"
)

// patience bounds every wait: a tick of the schedule is a minute away at most, and a pod
// of a busy machine can take as long to start.
const patience = 4 * time.Minute

var (
	env  *environment.Environment
	kube client.Client
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctrl.SetLogger(logr.Discard())
	ctx := context.Background()
	var err error
	if env, err = environment.Up(ctx, "e2e", os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if downErr := env.Down(ctx); downErr != nil {
			fmt.Fprintln(os.Stderr, downErr)
			code = 1
		}
	}()
	if kube, err = newClient(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func newClient() (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", env.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering Kubernetes' types: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering our types: %w", err)
	}
	return client.New(config, client.Options{Scheme: scheme})
}

var number atomic.Int64

// team is a namespace under the restricted Pod Security Standard, with a database of
// its own whose URL is in the Secret database.
type team struct {
	namespace string
	url       string
}

func newTeam(t *testing.T) team {
	t.Helper()
	name := fmt.Sprintf("team-%d", number.Add(1))
	kubectl(t, "create", "namespace", name)
	kubectl(t, "label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
	if err := env.Postgres.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	made := team{namespace: name, url: env.Postgres.URL(name)}
	made.putSecret(t, "database", made.url)
	return made
}

func (made team) putSecret(t *testing.T, name, value string) {
	t.Helper()
	if err := env.PutSecret(t.Context(), made.namespace, name, "url", value); err != nil {
		t.Fatal(err)
	}
}

// apply applies a MessagingInbox named orders; spec is the YAML below spec.
func (made team) apply(t *testing.T, spec string) {
	t.Helper()
	if !strings.Contains(spec, "database:") {
		spec += "\ndatabase: {urlSecretRef: {name: database}}"
	}
	indented := "  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")
	if err := env.Apply(t.Context(), made.namespace, "apiVersion: messaginginbox.dev/v1alpha1\nkind: MessagingInbox\nmetadata: {name: orders}\nspec:\n"+indented+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (made team) inbox(t *testing.T) *v1alpha1.MessagingInbox {
	t.Helper()
	inbox := &v1alpha1.MessagingInbox{}
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: made.namespace, Name: "orders"}, inbox); err != nil {
		t.Fatal(err)
	}
	return inbox
}

// await waits until the resource is as wanted.
func (made team) await(t *testing.T, what string, wanted func(*v1alpha1.MessagingInbox) bool) *v1alpha1.MessagingInbox {
	t.Helper()
	var inbox *v1alpha1.MessagingInbox
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if inbox = made.inbox(t); wanted(inbox) {
			return inbox
		}
	}
	described, _ := env.Kubectl(context.Background(), "-n", made.namespace, "describe", "messaginginbox,job,pod")
	logs, _ := env.Kubectl(context.Background(), "-n", environment.Namespace, "logs", "deployment/messaging-inbox-manager", "--tail=40")
	t.Fatalf("%s did not come about; the namespace:\n%s\nthe manager's log:\n%s", what, described, logs)
	return nil
}

func (made team) awaitCondition(t *testing.T, conditionType string, status metav1.ConditionStatus, reason string) *v1alpha1.MessagingInbox {
	t.Helper()
	return made.await(t, conditionType+"="+string(status)+" ("+reason+")", func(inbox *v1alpha1.MessagingInbox) bool {
		found := meta.FindStatusCondition(inbox.Status.Conditions, conditionType)
		return found != nil && found.Status == status && found.Reason == reason && found.ObservedGeneration == inbox.Generation
	})
}

func (made team) awaitReady(t *testing.T) {
	t.Helper()
	made.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllChecksPassed)
}

// awaitRun waits for a run that ended.
func (made team) awaitRun(t *testing.T) *v1alpha1.PruningRun {
	t.Helper()
	return made.await(t, "an ended run", func(inbox *v1alpha1.MessagingInbox) bool {
		return inbox.Status.Pruning != nil && inbox.Status.Pruning.LastRun != nil
	}).Status.Pruning.LastRun
}

func (made team) execute(t *testing.T, statement string, arguments ...any) {
	t.Helper()
	if err := env.Postgres.Exec(t.Context(), made.namespace, statement, arguments...); err != nil {
		t.Fatal(err)
	}
}

func (made team) count(t *testing.T, query string) int64 { return answer[int64](t, made, query) }
func (made team) text(t *testing.T, query string) string { return answer[string](t, made, query) }

// answer is the one value that a query returns.
func answer[T any](t *testing.T, made team, query string) (value T) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), made.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(context.Background()) }()
	if err := connection.QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// as is the database's URL for another role.
func (made team) as(user, password string) string {
	parsed, err := url.Parse(made.url)
	if err != nil {
		panic(err)
	}
	parsed.User = url.UserPassword(user, password)
	return parsed.String()
}

func kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := env.Kubectl(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}
