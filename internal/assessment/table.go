package assessment

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/tablestats"
)

// EffectiveRetention is how long a record is meant to stay: the shorter of the period
// and the application's own.
func EffectiveRetention(spec *v1alpha1.MessagingInboxSpec) time.Duration {
	return effectivePeriod(spec.Retention)
}

// WatchRetention turns RetentionSafe False when records vanish before their time. A
// verdict that is False already stays what it is: its cause comes first.
func WatchRetention(verdict metav1.Condition, spec *v1alpha1.MessagingInboxSpec, history *tablestats.History) metav1.Condition {
	if history == nil || history.Vanished == nil || verdict.Status != metav1.ConditionTrue || history.Vanished.Age >= effectivePeriod(spec.Retention) {
		return verdict
	}
	return isFalse(v1alpha1.ConditionRetentionSafe, v1alpha1.ReasonForeignPurge,
		"%s is %s, but records of %s vanish when they are at most %s old, and the operator did not delete them%s. "+
			"The usual cause is the application's own purge (Symfony: after 168h). Raise its retention to %s, or declare it in spec.retention.applicationPeriod so that the window is judged by it.",
		effectiveField(spec.Retention), Human(effectivePeriod(spec.Retention)), tableName(spec), Human(history.Vanished.Age.Truncate(time.Minute)),
		foreignDeletes(history), Human(effectivePeriod(spec.Retention)))
}

func foreignDeletes(history *tablestats.History) string {
	if history.ForeignDeletes == 0 {
		return ""
	}
	return fmt.Sprintf(" (about %d deletions by others so far)", tablestats.Round(history.ForeignDeletes))
}

// WarnOfSize adds to PruningHealthy that the table will outgrow spec.retention.maxTableSize.
// It never changes the status: a table that is too large is no reason to lose a proof.
func WarnOfSize(verdict metav1.Condition, spec *v1alpha1.MessagingInboxSpec, table *v1alpha1.TableStatus) metav1.Condition {
	limit := spec.Retention.MaxTableSize
	if limit == nil || table == nil {
		return verdict
	}
	size, when := table.Bytes, "is"
	if projected := table.ProjectedBytes; projected != nil && *projected > size {
		size, when = *projected, "is on its way to"
	}
	if size <= limit.Value() {
		return verdict
	}
	reason := verdict.Reason
	if verdict.Status == metav1.ConditionTrue {
		reason = v1alpha1.ReasonTableGrows
	}
	return condition(verdict.Type, verdict.Status, reason, "%s %s %s %s with its indexes at a retention of %s; spec.retention.maxTableSize is %s. See the runbook for what shortens it safely.",
		verdict.Message, tableName(spec), when, binarySize(size), Human(effectivePeriod(spec.Retention)), limit)
}

// binarySize prints about so many bytes: 21Gi.
func binarySize(bytes int64) string {
	unit := int64(1)
	for bytes/unit >= 100*1024 {
		unit *= 1024
	}
	return resource.NewQuantity(bytes/unit*unit, resource.BinarySI).String()
}

// History is what the status saved of the table's past; nil: nothing.
func History(table *v1alpha1.TableStatus) *tablestats.History {
	if table == nil || table.Baseline == nil || table.LookedAt == nil {
		return nil
	}
	saved := table.Baseline
	history := &tablestats.History{
		Last: tablestats.Counters{
			Clock: table.LookedAt.Time, Table: uint32(saved.OID), Index: uint32(saved.IndexOID), //nolint:gosec // written from these types
			Inserted: saved.Inserted, Updated: saved.Updated, Deleted: saved.Deleted, Live: saved.Live,
			Recounts: saved.Recounts, IndexScans: saved.IndexScans, IndexReads: saved.IndexReads,
		},
		Pruned:         saved.Pruned,
		Retention:      saved.Retention.Duration,
		RolledBack:     saved.RolledBack,
		ForeignDeletes: table.ForeignDeletes,
		Skips:          table.SkippedRedeliveries,
		DayStart:       saved.DayStart.Time,
		Added:          saved.Added,
		GrowthPerDay:   table.GrowthPerDay,
		Extrapolated:   saved.Extrapolated,
	}
	if saved.StatsReset != nil {
		history.Last.StatsReset = &saved.StatsReset.Time
	}
	if saved.Oldest != nil {
		history.Oldest = &saved.Oldest.Time
	}
	if table.ObservedRetention != nil && saved.VanishedAt != nil {
		history.Vanished = &tablestats.Vanishing{Age: table.ObservedRetention.Duration, SeenAt: saved.VanishedAt.Time}
	}
	return history
}

// SaveHistory writes to the status what History reads from it.
func SaveHistory(table *v1alpha1.TableStatus, history *tablestats.History) {
	last := history.Last
	table.LookedAt = wholeSeconds(last.Clock)
	table.ForeignDeletes = history.ForeignDeletes
	table.SkippedRedeliveries = history.Skips
	table.GrowthPerDay = history.GrowthPerDay
	table.ObservedRetention = nil
	table.Baseline = &v1alpha1.TableBaseline{
		OID: int64(last.Table), IndexOID: int64(last.Index),
		Inserted: last.Inserted, Updated: last.Updated, Deleted: last.Deleted, Live: last.Live,
		Recounts: last.Recounts, IndexScans: last.IndexScans, IndexReads: last.IndexReads,
		Pruned:       history.Pruned,
		RolledBack:   history.RolledBack,
		Retention:    metav1.Duration{Duration: history.Retention},
		DayStart:     *wholeSeconds(history.DayStart),
		Added:        history.Added,
		Extrapolated: history.Extrapolated,
	}
	if last.StatsReset != nil {
		table.Baseline.StatsReset = &metav1.MicroTime{Time: *last.StatsReset}
	}
	if history.Oldest != nil {
		table.Baseline.Oldest = &metav1.MicroTime{Time: *history.Oldest}
	}
	if history.Vanished != nil {
		table.ObservedRetention = &metav1.Duration{Duration: history.Vanished.Age}
		table.Baseline.VanishedAt = wholeSeconds(history.Vanished.SeenAt)
	}
}

// wholeSeconds is the instant as the API stores it, so that reading it back is no change.
func wholeSeconds(instant time.Time) *metav1.Time {
	return &metav1.Time{Time: instant.Truncate(time.Second)}
}
