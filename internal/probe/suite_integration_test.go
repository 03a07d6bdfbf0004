//go:build integration

package probe_test

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m, postgres.Options{})) }

func target(t testing.TB, transportType redelivery.Type, url string, place probe.Place) probe.Target {
	t.Helper()
	made, err := probe.NewTarget("orders", transportType, url, place)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func look(t testing.TB, target probe.Target) probe.Observation {
	t.Helper()
	seen, err := probe.Probe(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// mustFail expects a failure of the reason whose message has all of the words.
func mustFail(t testing.TB, target probe.Target, reason string, words ...string) {
	t.Helper()
	seen, err := probe.Probe(t.Context(), target)
	var failure *probe.Failure
	if !errors.As(err, &failure) {
		t.Fatalf("the probe saw %s and failed with %v, want a failure %s", shown(seen), err, reason)
	}
	if failure.Reason != reason {
		t.Errorf("reason %s (%s), want %s", failure.Reason, failure.Message, reason)
	}
	for _, word := range words {
		if !strings.Contains(failure.Message, word) {
			t.Errorf("the message does not say %q: %s", word, failure.Message)
		}
	}
	if strings.Contains(failure.Message, "hunter2") {
		t.Errorf("a password is in the message: %s", failure.Message)
	}
}

// mustSee compares everything that was seen.
func mustSee(t testing.TB, seen, want probe.Observation) {
	t.Helper()
	if got, expected := shown(seen), shown(want); got != expected {
		t.Errorf("seen %s\nwant %s", got, expected)
	}
}

func shown(seen probe.Observation) string {
	text, err := json.MarshalIndent(seen, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func of[T any](value T) *T { return &value }

// measured looks once and expects that to take under a second, and under 20 MB of memory
// even if none of it were ever freed.
func measured(t testing.TB, target probe.Target) probe.Observation {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	started := time.Now()
	seen := look(t, target)
	took := time.Since(started)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; took > time.Second || used > 20<<20 {
		t.Errorf("took %s and %d bytes, want under 1 s and 20 MB", took, used)
	}
	return seen
}

// eventually looks until the counts are the wanted ones: a broker's statistics lag.
func eventually(t testing.TB, target probe.Target, want probe.Observation) {
	t.Helper()
	var seen probe.Observation
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if seen = look(t, target); shown(seen) == shown(want) {
			return
		}
	}
	mustSee(t, seen, want)
}

func sharedDatabase(t testing.TB) string {
	t.Helper()
	return postgres.Shared(t).NewDatabase(t)
}

// trusting is the target that trusts the authority; nil is none.
func trusting(t testing.TB, target probe.Target, authority []byte) probe.Target {
	t.Helper()
	if authority == nil {
		return target
	}
	made, err := target.WithAuthorities(authority)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const (
	untrusted = "an authority that is not trusted"
	nextStep  = "observe.caSecretRef"
)
