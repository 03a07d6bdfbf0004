package controllers

import (
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/metrics"
	"github.com/messaginginbox/operator/internal/probe"
)

func TestMetricsTellOnlyWhatTheNewestLookSaw(t *testing.T) {
	now := time.Now()
	entered := now.Add(-90 * time.Second)
	seen := &probe.Observation{Pending: 3, Stuck: 1, Oldest: &entered}
	for name, test := range map[string]struct {
		result   probe.Result
		observed string
		pending  int64 // -1: no series
		oldest   time.Duration
	}{
		"nobody looked yet":          {probe.Result{}, "not known", -1, -1},
		"a look that succeeded":      {probe.Result{At: now, Seen: seen}, "yes", 3, 90 * time.Second},
		"an empty transport":         {probe.Result{At: now, Seen: &probe.Observation{}}, "yes", 0, 0},
		"a look that failed":         {probe.Result{At: now, Failure: &probe.Failure{}, Failures: 4}, "no", -1, -1},
		"a failure after a success":  {probe.Result{At: now, Seen: seen, Failure: &probe.Failure{}, Failures: 4}, "no", -1, -1},
		"a Secret that is not there": {probe.Result{Failure: &probe.Failure{}}, "no", -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var snapshot metrics.Transport
			addLook(&snapshot, test.result, now)
			observed, pending, oldest := "not known", int64(-1), time.Duration(-1)
			if snapshot.Observed != nil {
				observed = map[bool]string{true: "yes", false: "no"}[*snapshot.Observed]
			}
			if snapshot.Messages != nil {
				pending = snapshot.Messages.Pending
			}
			if snapshot.OldestAge != nil {
				oldest = *snapshot.OldestAge
			}
			if observed != test.observed || pending != test.pending || oldest != test.oldest || *snapshot.ProbeFailures != test.result.Failures {
				t.Errorf("observed %s, %d pending, oldest %s, %d failures", observed, pending, oldest, *snapshot.ProbeFailures)
			}
		})
	}
}
