package assessment

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/tablestats"
)

func TestRecordsThatVanishMakeTheRetentionUnsafe(t *testing.T) {
	spec := declared(t, "retention: {period: 336h}\n  transports: [{name: orders, type: amqp}]")
	verdict := RetentionSafe(spec, Requirement(spec))
	if watched := WatchRetention(verdict, spec, &tablestats.History{ForeignDeletes: 12_345}); !reflect.DeepEqual(watched, verdict) {
		t.Errorf("deletions of expired records are no harm, yet RetentionSafe = %s (%s)", watched.Status, watched.Reason)
	}
	history := &tablestats.History{ForeignDeletes: 12_345, Vanished: &tablestats.Vanishing{Age: 168*time.Hour + 5*time.Minute + 7*time.Second}}
	watched := WatchRetention(verdict, spec, history)
	if watched.Status != metav1.ConditionFalse || watched.Reason != v1alpha1.ReasonForeignPurge {
		t.Errorf("RetentionSafe = %s (%s)", watched.Status, watched.Reason)
	}
	for _, part := range []string{"spec.retention.period is 336h", "at most 168h5m old", "about 12000 deletions by others", "spec.retention.applicationPeriod", "public.messenger_inbox"} {
		if !strings.Contains(watched.Message, part) {
			t.Errorf("the message %q lacks %q", watched.Message, part)
		}
	}
	short := declared(t, "retention: {period: 1h}\n  transports: [{name: orders, type: amqp}]")
	if first := WatchRetention(RetentionSafe(short, Requirement(short)), short, history); first.Reason != v1alpha1.ReasonTooShort {
		t.Errorf("the first cause is lost: %s", first.Reason)
	}
}

func TestATableThatOutgrowsItsLimitIsAWarning(t *testing.T) {
	const healthy = "Job a: 5 expired records deleted."
	projected := int64(21 << 30)
	for name, test := range map[string]struct {
		limit   string
		table   *v1alpha1.TableStatus
		verdict metav1.Condition
		reason  string
		says    string
	}{
		"no limit":       {"", &v1alpha1.TableStatus{Bytes: 1 << 40}, isTrue(v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonRunSucceeded, healthy), v1alpha1.ReasonRunSucceeded, ""},
		"within it":      {"20Gi", &v1alpha1.TableStatus{Bytes: 20 << 30}, isTrue(v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonRunSucceeded, healthy), v1alpha1.ReasonRunSucceeded, ""},
		"beyond it":      {"20Gi", &v1alpha1.TableStatus{Bytes: 20<<30 + 1<<29}, isTrue(v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonRunSucceeded, healthy), v1alpha1.ReasonTableGrows, "is 20992Mi with its indexes"},
		"on its way":     {"20Gi", &v1alpha1.TableStatus{Bytes: 1 << 30, ProjectedBytes: &projected}, isTrue(v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonRunSucceeded, healthy), v1alpha1.ReasonTableGrows, "is on its way to 21Gi with its indexes at a retention of 168h; spec.retention.maxTableSize is 20Gi"},
		"and not pruned": {"20Gi", &v1alpha1.TableStatus{Bytes: 21 << 30}, isFalse(v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonRunFailed, "Job a failed."), v1alpha1.ReasonRunFailed, "Job a failed. public.messenger_inbox is 21Gi"},
		"nobody looked":  {"20Gi", nil, isTrue(v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonRunSucceeded, healthy), v1alpha1.ReasonRunSucceeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			retention := "retention: {}"
			if test.limit != "" {
				retention = "retention: {maxTableSize: " + test.limit + "}"
			}
			warned := WarnOfSize(test.verdict, declared(t, retention+"\n  transports: [{name: orders, type: amqp}]"), test.table)
			if warned.Status != test.verdict.Status || warned.Reason != test.reason || !strings.Contains(warned.Message, test.says) {
				t.Errorf("PruningHealthy = %s (%s) %s", warned.Status, warned.Reason, warned.Message)
			}
			summary := Summarize([]metav1.Condition{warned})[0]
			if wantReady := test.verdict.Status; summary.Status != wantReady || (test.reason == v1alpha1.ReasonTableGrows && !strings.Contains(summary.Message, test.says)) {
				t.Errorf("Ready = %s: %s", summary.Status, summary.Message)
			}
		})
	}
}

// What is read back must be what was saved, or a restart would find records vanished.
func TestTheHistorySurvivesTheStatus(t *testing.T) {
	instant := time.Date(2026, 5, 4, 12, 0, 0, 123_456_000, time.UTC)
	whole, growth := instant.Truncate(time.Second), int64(250)
	history := &tablestats.History{
		Last: tablestats.Counters{Clock: whole, Table: 1, Index: 2, StatsReset: &instant, Inserted: 3, Updated: 4, Deleted: 5, Live: 6,
			Recounts: 7, IndexScans: 8, IndexReads: 9},
		Oldest: &instant, Pruned: 10, Retention: time.Hour, RolledBack: 11, ForeignDeletes: 12, Skips: 13, DayStart: whole, Added: 14,
		GrowthPerDay: &growth, Extrapolated: true, Vanished: &tablestats.Vanishing{Age: time.Minute, SeenAt: whole},
	}
	var saved, restored v1alpha1.TableStatus
	SaveHistory(&saved, history)
	encoded, err := json.Marshal(saved)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &restored); err != nil {
		t.Fatal(err)
	}
	got := History(&restored)
	for _, instant := range []*time.Time{&got.Last.Clock, got.Last.StatsReset, got.Oldest, &got.DayStart, &got.Vanished.SeenAt} {
		*instant = instant.UTC()
	}
	if !reflect.DeepEqual(got, history) {
		t.Errorf("saved %+v, read %+v", history, got)
	}
	value := reflect.ValueOf(*history)
	for i := range value.NumField() {
		if value.Field(i).IsZero() {
			t.Errorf("the test does not set %s", value.Type().Field(i).Name)
		}
	}
	if History(nil) != nil || History(&v1alpha1.TableStatus{}) != nil {
		t.Error("a status without a baseline has a history")
	}
}
