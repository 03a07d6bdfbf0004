package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/metrics"
	"github.com/messaginginbox/operator/internal/tablestats"
)

// publish hands the metrics what this reconcile found.
func (r *Reconciler) publish(s *scope) {
	r.Metrics.Set(s.inbox.Namespace, s.inbox.Name, snapshotOf(s.inbox, s.history))
}

// snapshotOf makes a snapshot of the status, and of the history where it is newer.
func snapshotOf(inbox *v1alpha1.MessagingInbox, history *tablestats.History) *metrics.Snapshot {
	retention, status := inbox.Spec.Retention, &inbox.Status
	snapshot := &metrics.Snapshot{
		Period:     retention.Period.Duration.Duration,
		Table:      tableSnapshot(status.Table, history),
		Conditions: map[string]float64{},
		Transports: transportSnapshots(inbox),
	}
	if declared := retention.ApplicationPeriod; declared != nil {
		snapshot.ApplicationPeriod = &declared.Duration.Duration
	}
	if limit := retention.MaxTableSize; limit != nil {
		bytes := limit.Value()
		snapshot.MaxTableBytes = &bytes
	}
	if judged := status.Retention; judged != nil {
		snapshot.Unbounded = judged.Required == nil
		snapshot.Required = value(judged.Required)
		snapshot.Effective = value(judged.Effective)
	}
	for i := range status.Conditions {
		snapshot.Conditions[status.Conditions[i].Type] = statusNumber(status.Conditions[i].Status)
	}
	if pruning := status.Pruning; pruning != nil {
		snapshot.Pruning = metrics.Pruning{RowsDeleted: pruning.RowsDeleted, NextRun: instant(pruning.NextRun)}
		if run := pruning.LastRun; run != nil {
			snapshot.Pruning.LastEnd = run.CompletedAt.Time
			snapshot.Pruning.LastDuration = duration(run.Duration)
		}
	}
	return snapshot
}

func tableSnapshot(table *v1alpha1.TableStatus, history *tablestats.History) *metrics.Table {
	if table == nil {
		return nil
	}
	snapshot := &metrics.Table{
		Bytes: table.Bytes, IndexBytes: table.IndexBytes, Rows: table.Rows, DeadRows: table.DeadRows, BloatBytes: table.BloatBytes,
		Oldest: instant(table.OldestRecord), LastVacuum: instant(table.LastVacuum), ProjectedBytes: table.ProjectedBytes,
	}
	if history != nil {
		snapshot.GrowthPerDay = history.GrowthPerDay
		snapshot.ForeignDeletes, snapshot.SkippedRedeliveries = &history.ForeignDeletes, &history.Skips
		if history.Vanished != nil {
			snapshot.ObservedRetention = &history.Vanished.Age
		}
	}
	return snapshot
}

func transportSnapshots(inbox *v1alpha1.MessagingInbox) []metrics.Transport {
	outboxes, failures := map[v1alpha1.TransportName]bool{}, map[v1alpha1.TransportName]bool{}
	maxAges := map[v1alpha1.TransportName]*time.Duration{}
	for i := range inbox.Spec.Transports {
		declared := &inbox.Spec.Transports[i]
		outboxes[declared.Outbox], failures[declared.FailureTransport] = true, true
		if declared.Redelivery != nil && declared.Redelivery.MaxAge != nil {
			maxAges[declared.Name] = &declared.Redelivery.MaxAge.Duration.Duration
		}
	}
	snapshots := make([]metrics.Transport, 0, len(inbox.Status.Transports))
	for i := range inbox.Status.Transports {
		status := &inbox.Status.Transports[i]
		name := v1alpha1.TransportName(status.Name)
		snapshot := metrics.Transport{
			Name: status.Name, Window: duration(status.Window), OldestAge: duration(status.OldestAge),
			Outbox: outboxes[name], Failure: failures[name], MaxAge: maxAges[name],
		}
		if messages := status.Messages; messages != nil {
			snapshot.Messages = &metrics.Messages{Pending: messages.Pending, Delayed: messages.Delayed, InFlight: messages.InFlight, Stuck: messages.Stuck}
		}
		snapshots = append(snapshots, snapshot)
	}
	return snapshots
}

func statusNumber(status metav1.ConditionStatus) float64 {
	switch status {
	case metav1.ConditionTrue:
		return 1
	case metav1.ConditionFalse:
		return 0
	default:
		return -1
	}
}

func instant(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func value(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

func duration(d *metav1.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	return &d.Duration
}
