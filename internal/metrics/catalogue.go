package metrics

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// prefix of every name.
const prefix = "messaginginbox_"

// metric is one family of series. Its value function returns false where a resource, or
// a transport, has no such series.
type metric[subject any] struct {
	name string
	kind prometheus.ValueType
	help string
	read func(*subject) (float64, bool)
	desc *prometheus.Desc
}

// resourceMetrics have the labels namespace and name: one series per resource.
var resourceMetrics = described([]metric[Snapshot]{
	{name: "table_size_bytes", kind: gauge, help: "Size of the inbox table with its indexes.", read: ofTable(func(t *Table) (float64, bool) { return number(t.Bytes) })},
	{name: "table_index_size_bytes", kind: gauge, help: "Size of the table's indexes.", read: ofTable(func(t *Table) (float64, bool) { return number(t.IndexBytes) })},
	{name: "table_bloat_bytes", kind: gauge, help: "Estimate of the table's space, without its indexes, that holds no record.", read: ofTable(func(t *Table) (float64, bool) { return maybe(t.BloatBytes) })},
	{name: "table_rows", kind: gauge, help: "Records in the table, by PostgreSQL's estimate.", read: ofTable(func(t *Table) (float64, bool) { return number(t.Rows) })},
	{name: "table_dead_rows", kind: gauge, help: "Dead rows that wait for a vacuum.", read: ofTable(func(t *Table) (float64, bool) { return number(t.DeadRows) })},
	{name: "table_last_vacuum_timestamp_seconds", kind: gauge, help: "End of the table's last vacuum.", read: ofTable(func(t *Table) (float64, bool) { return instant(t.LastVacuum) })},
	{name: "table_oldest_record_timestamp_seconds", kind: gauge, help: "Time of the oldest record.", read: ofTable(func(t *Table) (float64, bool) { return instant(t.Oldest) })},
	{name: "table_daily_growth_rows", kind: gauge, help: "Records added in the last whole day, rounded; in the first day an extrapolation.", read: ofTable(func(t *Table) (float64, bool) { return maybe(t.GrowthPerDay) })},
	{name: "table_daily_growth_bytes", kind: gauge, help: "Bytes that these records take, at the present size of a record with its indexes and bloat.", read: ofTable(func(t *Table) (float64, bool) { return maybe(t.GrowthBytesPerDay) })},
	{name: "table_projected_size_bytes", kind: gauge, help: "Size that the table with its indexes reaches at the current growth and retention, rounded.", read: ofTable(func(t *Table) (float64, bool) { return maybe(t.ProjectedBytes) })},
	{name: "table_max_size_bytes", kind: gauge, help: "spec.retention.maxTableSize.", read: func(s *Snapshot) (float64, bool) { return maybe(s.MaxTableBytes) }},
	{name: "foreign_deleted_rows_total", kind: counter, help: "Records that others than the operator deleted, since it first looked.", read: ofTable(func(t *Table) (float64, bool) { return maybe(t.ForeignDeletes) })},
	{name: "observed_retention_seconds", kind: gauge, help: "Age at which records were seen to vanish before their time, at most; no series while none do.", read: ofTable(func(t *Table) (float64, bool) { return seconds(t.ObservedRetention) })},
	{name: "skipped_redeliveries_total", kind: counter, help: "Estimate of the redeliveries that found their proof and were skipped, since the operator first looked.", read: ofTable(func(t *Table) (float64, bool) { return maybe(t.SkippedRedeliveries) })},
	{name: "retention_period_seconds", kind: gauge, help: "spec.retention.period: the operator prunes records that are older.", read: func(s *Snapshot) (float64, bool) { return seconds(&s.Period) }},
	{name: "retention_application_seconds", kind: gauge, help: "spec.retention.applicationPeriod; no series when the application is not declared to prune.", read: func(s *Snapshot) (float64, bool) { return seconds(s.ApplicationPeriod) }},
	{name: "retention_effective_seconds", kind: gauge, help: "The shorter of spec.retention.period and applicationPeriod.", read: func(s *Snapshot) (float64, bool) { return seconds(&s.Effective) }},
	{name: "required_window_seconds", kind: gauge, help: "Longest time after which a message can come back; +Inf when nothing bounds it.", read: (*Snapshot).window},
	{name: "retention_margin_seconds", kind: gauge, help: "Effective retention minus required window: below 0 a proof can die before its message; -Inf when nothing bounds the window.", read: (*Snapshot).margin},
	{name: "held_proofs", kind: gauge, help: "Expired proofs that are kept because their message still waits in a failure transport or an outbox.", read: func(s *Snapshot) (float64, bool) { return maybe(s.HeldProofs) }},
	{name: "pruned_rows_total", kind: counter, help: "Records that the operator has pruned since the resource was created.", read: func(s *Snapshot) (float64, bool) { return number(s.Pruning.RowsDeleted) }},
	{name: "prune_last_duration_seconds", kind: gauge, help: "Duration of the last pruning run.", read: func(s *Snapshot) (float64, bool) { return seconds(s.Pruning.LastDuration) }},
	{name: "prune_last_end_timestamp_seconds", kind: gauge, help: "End of the last pruning run, successful or not.", read: func(s *Snapshot) (float64, bool) { return instant(s.Pruning.LastEnd) }},
	{name: "prune_next_run_timestamp_seconds", kind: gauge, help: "Next tick of the pruning schedule; no series while pruning is off.", read: func(s *Snapshot) (float64, bool) { return instant(s.Pruning.NextRun) }},
	{name: "drill_last_end_timestamp_seconds", kind: gauge, help: "End of the last drill, whatever it found.", read: func(s *Snapshot) (float64, bool) { return instant(s.Drill.LastEnd) }},
	{name: "drill_last_duration_seconds", kind: gauge, help: "Duration of the last drill.", read: func(s *Snapshot) (float64, bool) { return seconds(s.Drill.LastDuration) }},
	{name: "drill_lock_wait_seconds", kind: gauge, help: "Longest time that a second session waited for the first in the last drill.", read: func(s *Snapshot) (float64, bool) { return seconds(s.Drill.LockWait) }},
}, "namespace", "name")

// transportMetrics have the labels namespace, name and transport: one series per transport.
var transportMetrics = described([]metric[Transport]{
	{name: "transport_window_seconds", kind: gauge, help: "Time after which a message of the transport can come back; +Inf when nothing bounds it.", read: (*Transport).window},
	{name: "transport_observed", kind: gauge, help: "Whether the last look at the transport succeeded; no series without spec.transports[].observe.", read: (*Transport).observed},
	{name: "transport_probe_failures_total", kind: counter, help: "Looks at the transport that failed, since the manager began.", read: func(t *Transport) (float64, bool) { return maybe(t.ProbeFailures) }},
	{name: "transport_pending_messages", kind: gauge, help: "Messages that are ready to be delivered.", read: ofMessages(func(m *Messages) int64 { return m.Pending })},
	{name: "transport_delayed_messages", kind: gauge, help: "Messages that wait for their time.", read: ofMessages(func(m *Messages) int64 { return m.Delayed })},
	{name: "transport_in_flight_messages", kind: gauge, help: "Messages that are delivered and not yet acknowledged.", read: ofMessages(func(m *Messages) int64 { return m.InFlight })},
	{name: "transport_stuck_messages", kind: gauge, help: "Messages that were delivered longer ago than their redelivery time-out.", read: ofMessages(func(m *Messages) int64 { return m.Stuck })},
	{name: "transport_oldest_message_age_seconds", kind: gauge, help: "Age of the oldest message that waits in the transport, at the last look.", read: func(t *Transport) (float64, bool) { return seconds(t.OldestAge) }},
	{name: "transport_redelivered_messages", kind: gauge, help: "Redeliveries that the broker tells of: with RabbitMQ since its node started, with redis of the entries that are pending now.", read: func(t *Transport) (float64, bool) { return maybe(t.Redelivered) }},
	{name: "outbox_pending_messages", kind: gauge, help: "Messages that wait in an outbox to be published.", read: ofOutbox(func(t *Transport) (float64, bool) { return ofMessages(func(m *Messages) int64 { return m.Pending })(t) })},
	{name: "outbox_stuck_messages", kind: gauge, help: "Messages that a relay took from an outbox and did not finish in time.", read: ofOutbox(func(t *Transport) (float64, bool) { return ofMessages(func(m *Messages) int64 { return m.Stuck })(t) })},
	{name: "outbox_oldest_message_age_seconds", kind: gauge, help: "Age of the oldest message in an outbox, at the last look.", read: ofOutbox(func(t *Transport) (float64, bool) { return seconds(t.OldestAge) })},
	{name: "failure_oldest_message_age_seconds", kind: gauge, help: "Age of the oldest message in a failure transport, at the last look.", read: ofFailure(func(t *Transport) (float64, bool) { return seconds(t.OldestAge) })},
	{name: "failure_max_age_seconds", kind: gauge, help: "Declared longest stay in a failure transport: its window, else its maxAge.", read: ofFailure(func(t *Transport) (float64, bool) { return seconds(t.MaxAge) })},
}, "namespace", "name", "transport")

// conditionMetric has one series per condition of a resource.
var conditionMetric = described([]metric[float64]{
	{name: "condition_status", kind: gauge, help: "Status of a condition: 1 True, 0 False, -1 Unknown.", read: func(status *float64) (float64, bool) { return *status, true }},
}, "namespace", "name", "condition")[0]

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

func described[subject any](metrics []metric[subject], labels ...string) []metric[subject] {
	for i := range metrics {
		metrics[i].desc = prometheus.NewDesc(prefix+metrics[i].name, metrics[i].help, labels, nil)
	}
	return metrics
}

func ofTable(read func(*Table) (float64, bool)) func(*Snapshot) (float64, bool) {
	return func(s *Snapshot) (float64, bool) {
		if s.Table == nil {
			return 0, false
		}
		return read(s.Table)
	}
}

func ofMessages(read func(*Messages) int64) func(*Transport) (float64, bool) {
	return func(t *Transport) (float64, bool) {
		if t.Messages == nil {
			return 0, false
		}
		return number(read(t.Messages))
	}
}

func ofOutbox(read func(*Transport) (float64, bool)) func(*Transport) (float64, bool) {
	return func(t *Transport) (float64, bool) {
		if !t.Outbox {
			return 0, false
		}
		return read(t)
	}
}

func ofFailure(read func(*Transport) (float64, bool)) func(*Transport) (float64, bool) {
	return func(t *Transport) (float64, bool) {
		if !t.Failure {
			return 0, false
		}
		return read(t)
	}
}

func (s *Snapshot) window() (float64, bool) {
	if s.Unbounded {
		return math.Inf(1), true
	}
	return s.Required.Seconds(), true
}

func (s *Snapshot) margin() (float64, bool) {
	if s.Unbounded {
		return math.Inf(-1), true
	}
	return (s.Effective - s.Required).Seconds(), true
}

func (t *Transport) window() (float64, bool) {
	if t.Window == nil {
		return math.Inf(1), true
	}
	return t.Window.Seconds(), true
}

func (t *Transport) observed() (float64, bool) {
	if t.Observed == nil {
		return 0, false
	}
	if *t.Observed {
		return 1, true
	}
	return 0, true
}

func number(n int64) (float64, bool) { return float64(n), true }

func maybe(n *int64) (float64, bool) {
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

func seconds(d *time.Duration) (float64, bool) {
	if d == nil {
		return 0, false
	}
	return d.Seconds(), true
}

func instant(t time.Time) (float64, bool) {
	if t.IsZero() {
		return 0, false
	}
	return float64(t.UnixMilli()) / 1000, true
}
