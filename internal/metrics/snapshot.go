package metrics

import "time"

// Snapshot is what the metrics tell of one resource. A pointer that is nil, or a time
// that is zero, is not known: it has no series.
type Snapshot struct {
	// Table is what was measured in the database; nil before the first look.
	Table *Table
	// Period is spec.retention.period, Effective the shorter of it and the application's.
	Period, Effective time.Duration
	// ApplicationPeriod is spec.retention.applicationPeriod.
	ApplicationPeriod *time.Duration
	// Required is the longest redelivery window of the covered transports.
	Required time.Duration
	// Unbounded says that nothing bounds the window: it and the margin are infinite.
	Unbounded bool
	// MaxTableBytes is spec.retention.maxTableSize.
	MaxTableBytes *int64
	// HeldProofs are the expired proofs that are kept because their message still waits.
	HeldProofs *int64
	// Pruning tells of the runs.
	Pruning Pruning
	// Conditions by their type: 1 True, 0 False, -1 Unknown.
	Conditions map[string]float64
	// Drill is the last one that ended.
	Drill Drill
	// Transports by name.
	Transports []Transport
}

// Table is what was measured in the database.
type Table struct {
	Bytes, IndexBytes, Rows, DeadRows   int64
	BloatBytes                          *int64
	Oldest, LastVacuum                  time.Time
	GrowthPerDay, GrowthBytesPerDay     *int64
	ProjectedBytes                      *int64
	ForeignDeletes, SkippedRedeliveries *int64
	// ObservedRetention is the age at which records vanish before their time.
	ObservedRetention *time.Duration
}

// Pruning tells of the pruning runs.
type Pruning struct {
	RowsDeleted      int64
	LastDuration     *time.Duration
	LastEnd, NextRun time.Time
}

// Drill tells of the last drill.
type Drill struct {
	LastEnd                time.Time
	LastDuration, LockWait *time.Duration
}

// Transport is what is known of one transport.
type Transport struct {
	Name string
	// Window in which a message can come back; nil: unbounded.
	Window *time.Duration
	// Outbox and Failure say what the transport is for others. MaxAge is the declared
	// longest stay in a failure transport.
	Outbox, Failure bool
	MaxAge          *time.Duration
	// Observed is whether the last look succeeded; nil: nobody is asked to look.
	Observed *bool
	// ProbeFailures counts the looks that failed since the manager began.
	ProbeFailures *int64
	// Messages by state; nil: not observed.
	Messages *Messages
	// OldestAge of the oldest message that waits.
	OldestAge *time.Duration
	// Redelivered messages that the broker tells of.
	Redelivered *int64
}

// Messages counts a transport's messages by state.
type Messages struct {
	Pending, Delayed, InFlight, Stuck int64
}
