package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/metrics"
	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/tablestats"
)

// publish hands the metrics what this reconcile found.
func (r *Reconciler) publish(s *scope) {
	r.Metrics.Set(s.inbox.Namespace, s.inbox.Name, snapshotOf(s.inbox, s.history, s.observations, s.now))
}

// snapshotOf makes a snapshot of the status, and of the table's history and the looks at
// the transports where they are finer.
func snapshotOf(inbox *v1alpha1.MessagingInbox, history *tablestats.History, observations assessment.Observations, now time.Time) *metrics.Snapshot {
	retention, status := inbox.Spec.Retention, &inbox.Status
	snapshot := &metrics.Snapshot{
		Period:     retention.Period.Duration.Duration,
		Table:      tableSnapshot(status.Table, history),
		Conditions: map[string]float64{},
		Transports: transportSnapshots(inbox, observations, now),
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
			snapshot.HeldProofs = run.Held
		}
	}
	if drill := status.Drill; drill != nil {
		snapshot.Drill = metrics.Drill{LastEnd: instant(drill.LastRun), LastDuration: duration(drill.Duration), LockWait: duration(drill.LockWait)}
	}
	return snapshot
}

func tableSnapshot(table *v1alpha1.TableStatus, history *tablestats.History) *metrics.Table {
	if table == nil {
		return nil
	}
	snapshot := &metrics.Table{
		Bytes: table.Bytes, IndexBytes: table.IndexBytes, Rows: table.Rows, DeadRows: table.DeadRows, BloatBytes: table.BloatBytes,
		Oldest: instant(table.OldestRecord), LastVacuum: instant(table.LastVacuum),
		GrowthBytesPerDay: table.GrowthBytesPerDay, ProjectedBytes: table.ProjectedBytes,
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

func transportSnapshots(inbox *v1alpha1.MessagingInbox, observations assessment.Observations, now time.Time) []metrics.Transport {
	outboxes, failures := map[v1alpha1.TransportName]bool{}, map[v1alpha1.TransportName]bool{}
	maxAges := map[v1alpha1.TransportName]*time.Duration{}
	for i := range inbox.Spec.Transports {
		declared := &inbox.Spec.Transports[i]
		outboxes[declared.Outbox], failures[declared.FailureTransport] = true, true
		if _, longest := assessment.LongestStay(declared); longest != nil {
			maxAges[declared.Name] = &longest.Duration.Duration
		}
	}
	snapshots := make([]metrics.Transport, 0, len(inbox.Status.Transports))
	for i := range inbox.Status.Transports {
		status := &inbox.Status.Transports[i]
		name := v1alpha1.TransportName(status.Name)
		snapshot := metrics.Transport{
			Name: status.Name, Window: duration(status.Window),
			Outbox: outboxes[name], Failure: failures[name], MaxAge: maxAges[name],
		}
		if result, asked := observations.Results[status.Name]; asked {
			addLook(&snapshot, result, now)
		}
		snapshots = append(snapshots, snapshot)
	}
	return snapshots
}

// addLook adds the newest look at a transport. What was seen before its broker was out of
// reach is not told as if it were so now.
func addLook(snapshot *metrics.Transport, result probe.Result, now time.Time) {
	snapshot.ProbeFailures = &result.Failures
	if result.Failure == nil && result.At.IsZero() {
		return // nobody looked yet
	}
	succeeded := result.Failure == nil
	snapshot.Observed = &succeeded
	if !succeeded || result.Seen == nil {
		return
	}
	seen := result.Seen
	snapshot.Messages = &metrics.Messages{Pending: seen.Pending, Delayed: seen.Delayed, InFlight: seen.InFlight, Stuck: seen.Stuck}
	snapshot.Redelivered = seen.Redelivered
	if seen.AgeUnknown && seen.Oldest == nil {
		return
	}
	age := time.Duration(0) // an empty transport
	if seen.Oldest != nil {
		age = max(0, now.Sub(*seen.Oldest))
	}
	snapshot.OldestAge = &age
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
