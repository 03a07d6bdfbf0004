//go:build bench

// Package bench measures the operator as it runs on a real node. "make bench" runs it;
// docs/benchmarks.md has the results.
package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/messaginginbox/operator/test/environment"
)

const namespace = "bench"

var env *environment.Environment

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctx := context.Background()
	var err error
	if env, err = environment.Up(ctx, "bench", os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if downErr := env.Down(ctx); downErr != nil {
			fmt.Fprintln(os.Stderr, downErr)
			code = 1
		}
	}()
	if _, err := env.Kubectl(ctx, "create", "namespace", namespace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// newInbox makes a database and its Secret, and returns the manifest of a resource of
// that name.
func newInbox(b *testing.B, name string) string {
	b.Helper()
	if err := env.Postgres.CreateDatabase(b.Context(), name); err != nil {
		b.Fatal(err)
	}
	putSecret(b, name, env.Postgres.URL(name))
	return fmt.Sprintf("apiVersion: messaginginbox.dev/v1alpha1\nkind: MessagingInbox\nmetadata: {name: %s}\nspec:\n  database: {urlSecretRef: {name: %s}}\n  pruning: {schedule: '@yearly'}\n  transports: [{name: orders, type: amqp}]\n", name, name)
}

func putSecret(b *testing.B, name, url string) {
	b.Helper()
	if err := env.PutSecret(b.Context(), namespace, name, "url", url); err != nil {
		b.Fatal(err)
	}
}

func apply(b *testing.B, manifest string) {
	b.Helper()
	if err := env.Apply(b.Context(), namespace, manifest); err != nil {
		b.Fatal(err)
	}
}

func await(b *testing.B, name, condition string) {
	b.Helper()
	if _, err := env.Kubectl(b.Context(), "-n", namespace, "wait", "--for=condition="+condition, "--timeout=60s", "inbox/"+name); err != nil {
		b.Fatal(err)
	}
}

// From the start of "kubectl apply" to the end of "kubectl wait --for=condition=Ready":
// the two processes are part of what a user waits for.
func BenchmarkApplyToReady(b *testing.B) {
	number := 0
	for b.Loop() {
		b.StopTimer()
		number++
		name := fmt.Sprintf("ready-%d-%d", time.Now().Unix(), number)
		manifest := newInbox(b, name)
		b.StartTimer()
		apply(b, manifest)
		await(b, name, "Ready")
	}
}

// From "kubectl apply" of a Secret with a new password until the operator has found the
// new one good, seen from a resource whose old password had stopped working.
func BenchmarkRotatedSecretToReady(b *testing.B) {
	name := fmt.Sprintf("rotated-%d", time.Now().Unix())
	apply(b, newInbox(b, name))
	await(b, name, "Ready")
	good := env.Postgres.URL(name)
	bad := strings.Replace(good, env.Postgres.Password(), "expired", 1)
	for b.Loop() {
		b.StopTimer()
		putSecret(b, name, bad)
		await(b, name, "Ready=false")
		b.StartTimer()
		putSecret(b, name, good)
		await(b, name, "Ready")
	}
}

// Ten resources and nothing that happens: the writes to the API, the changes of a
// resource and the manager's memory over ten minutes.
func BenchmarkTenResourcesInTenQuietMinutes(b *testing.B) {
	for i := range 10 {
		name := fmt.Sprintf("quiet-%d", i)
		apply(b, newInbox(b, name))
		await(b, name, "Ready")
	}
	time.Sleep(30 * time.Second) // the last events are written
	for b.Loop() {
		versions, writes := resourceVersions(b), writesToTheAPI(b)
		time.Sleep(10 * time.Minute)
		changed := 0.0
		if resourceVersions(b) != versions {
			changed = 1
		}
		b.ReportMetric(changed, "resources-changed")
		b.ReportMetric(writesToTheAPI(b)-writes, "API-writes")
		b.ReportMetric(metric(b, "process_resident_memory_bytes", "")/(1<<20), "MiB-resident")
	}
}

func resourceVersions(b *testing.B) string {
	b.Helper()
	versions, err := env.Kubectl(b.Context(), "-n", namespace, "get", "inbox", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
	if err != nil {
		b.Fatal(err)
	}
	return versions
}

// writesToTheAPI are the manager's requests that write. The renewal of its lease is not
// among them: that is a PUT, and nothing else is written so.
func writesToTheAPI(b *testing.B) float64 {
	b.Helper()
	writes := 0.0
	for _, method := range []string{"POST", "PATCH", "DELETE"} {
		writes += metric(b, "rest_client_requests_total", `method="`+method+`"`)
	}
	return writes
}

// metric sums the series of a metric of the manager that have the label.
func metric(b *testing.B, name, label string) float64 {
	b.Helper()
	pod, err := env.Kubectl(b.Context(), "-n", environment.Namespace, "get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
	if err != nil {
		b.Fatal(err)
	}
	text, err := env.Kubectl(b.Context(), "get", "--raw", "/api/v1/namespaces/"+environment.Namespace+"/pods/"+pod+":8080/proxy/metrics")
	if err != nil {
		b.Fatal(err)
	}
	sum := 0.0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if (strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ")) && strings.Contains(line, label) {
			value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += value
		}
	}
	return sum
}
