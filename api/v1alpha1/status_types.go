package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MessagingInboxStatus is what the operator observed and decided. Every part says
// what was true at the conditions' observedGeneration.
type MessagingInboxStatus struct {
	// observedGeneration is the newest generation of the spec that was reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready sums up; docs/runbook.md has an entry for each type and reason.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// retention compares the period with the required window.
	// +optional
	Retention *RetentionStatus `json:"retention,omitempty"`
	// transports shows each transport's window with every term that entered it.
	// +optional
	// +listType=map
	// +listMapKey=name
	Transports []TransportStatus `json:"transports,omitempty"`
	// schema is the observed table and the plan to bring it to the contract.
	// +optional
	Schema *SchemaStatus `json:"schema,omitempty"`
	// table holds the table's size and age.
	// +optional
	Table *TableStatus `json:"table,omitempty"`
	// pruning tells of the last and the next run.
	// +optional
	Pruning *PruningStatus `json:"pruning,omitempty"`
	// drill tells of the last drill.
	// +optional
	Drill *DrillStatus `json:"drill,omitempty"`
}

// RetentionStatus compares the period with the required window. A duration that is
// left out is unbounded.
type RetentionStatus struct {
	// required is the largest redelivery window of the covered transports.
	// +optional
	Required *metav1.Duration `json:"required,omitempty"`
	// requiredWithMargin is required plus marginPercent: what the period must reach.
	// +optional
	RequiredWithMargin *metav1.Duration `json:"requiredWithMargin,omitempty"`
	// effective is the shorter of period and applicationPeriod.
	// +optional
	Effective *metav1.Duration `json:"effective,omitempty"`
	// recommended is requiredWithMargin rounded up to whole hours.
	// +optional
	Recommended *metav1.Duration `json:"recommended,omitempty"`
	// decidingTransport is the transport whose window is the required one.
	// +optional
	DecidingTransport string `json:"decidingTransport,omitempty"`
}

// TransportStatus shows one transport's redelivery window.
type TransportStatus struct {
	// name of the transport.
	Name string `json:"name"`
	// covered says whether the inbox records this transport's messages.
	Covered bool `json:"covered"`
	// window is the sum of the terms; left out when it is unbounded.
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`
	// terms are the parts of the window. One term is one duration that was added.
	// +optional
	// +listType=atomic
	Terms []WindowTerm `json:"terms,omitempty"`
	// undeclared are the fields that must be declared before the window is bounded.
	// +optional
	// +listType=atomic
	Undeclared []string `json:"undeclared,omitempty"`
	// messages by state, as observed.
	// +optional
	Messages *MessageCounts `json:"messages,omitempty"`
	// oldestAge is the age of the oldest message that is due in the transport, at the last
	// look: in whole minutes under an hour, in tens of minutes under a day, in hours above.
	// +optional
	OldestAge *metav1.Duration `json:"oldestAge,omitempty"`
	// oldestSince is when the oldest message that is due entered the transport, as last
	// seen; left out under a minute. It stays, and counts, while a look cannot tell.
	// +optional
	OldestSince *metav1.Time `json:"oldestSince,omitempty"`
	// observed are the broker's own settings that decide the window, as last seen. They
	// stay when the broker is out of reach.
	// +optional
	Observed *ObservedSettings `json:"observed,omitempty"`
}

// ObservedSettings are a broker's own settings. The larger of what is declared and what
// is observed enters the window.
type ObservedSettings struct {
	// visibilityTimeout of the SQS queue.
	// +optional
	VisibilityTimeout *metav1.Duration `json:"visibilityTimeout,omitempty"`
	// consumerTimeout of the RabbitMQ queue, from its arguments or its policy.
	// +optional
	ConsumerTimeout *metav1.Duration `json:"consumerTimeout,omitempty"`
	// ttr of the jobs in the beanstalkd tube.
	// +optional
	TTR *metav1.Duration `json:"ttr,omitempty"`
	// pendingEntries of the redis consumer group, when they are more than maxPending.
	// +optional
	PendingEntries *int64 `json:"pendingEntries,omitempty"`
	// messageTTL is how long a message may stay in the RabbitMQ queue.
	// +optional
	MessageTTL *metav1.Duration `json:"messageTTL,omitempty"`
	// queueExpiry is how long the RabbitMQ queue stays when nobody uses it.
	// +optional
	QueueExpiry *metav1.Duration `json:"queueExpiry,omitempty"`
	// retention is how long SQS keeps a message.
	// +optional
	Retention *metav1.Duration `json:"retention,omitempty"`
	// deliveryLimit is how often the queue delivers a message.
	// +optional
	DeliveryLimit *int64 `json:"deliveryLimit,omitempty"`
	// redeliverTimeout, checkDelayedInterval, claimInterval and heartbeat come from the
	// transport's DSN.
	// +optional
	RedeliverTimeout *metav1.Duration `json:"redeliverTimeout,omitempty"`
	// checkDelayedInterval of the DSN.
	// +optional
	CheckDelayedInterval *metav1.Duration `json:"checkDelayedInterval,omitempty"`
	// claimInterval of the DSN.
	// +optional
	ClaimInterval *metav1.Duration `json:"claimInterval,omitempty"`
	// heartbeat of the DSN.
	// +optional
	Heartbeat *metav1.Duration `json:"heartbeat,omitempty"`
}

// WindowTerm is one duration that entered a window.
type WindowTerm struct {
	// name of the term.
	Name string `json:"name"`
	// value of the term.
	Value metav1.Duration `json:"value"`
	// origin of the value: default, declared, dsn or observed.
	// +kubebuilder:validation:Enum=default;declared;dsn;observed
	Origin string `json:"origin"`
}

// MessageCounts counts a transport's messages by state.
type MessageCounts struct {
	// pending messages are ready to be delivered.
	Pending int64 `json:"pending"`
	// delayed messages wait for their time.
	Delayed int64 `json:"delayed"`
	// inFlight messages are delivered and not yet acknowledged.
	InFlight int64 `json:"inFlight"`
	// stuck messages were delivered longer ago than their redelivery time-out.
	Stuck int64 `json:"stuck"`
}

// SchemaStatus is the observed table and the plan to bring it to the contract.
type SchemaStatus struct {
	// tableID tells one table from another: equal for two resources that name one table,
	// also through different hosts and roles.
	// +optional
	TableID string `json:"tableID,omitempty"`
	// columns of the table, in its order.
	// +optional
	// +listType=atomic
	Columns []ColumnStatus `json:"columns,omitempty"`
	// indexes of the table, by name.
	// +optional
	// +listType=atomic
	Indexes []IndexStatus `json:"indexes,omitempty"`
	// plan is what is left to do; left out when nothing is.
	// +optional
	Plan *PlanStatus `json:"plan,omitempty"`
}

// ColumnStatus is one observed column.
type ColumnStatus struct {
	// name of the column.
	Name string `json:"name"`
	// type of the column, as PostgreSQL formats it.
	Type string `json:"type"`
	// nullable columns accept NULL.
	Nullable bool `json:"nullable"`
}

// IndexStatus is one observed index.
type IndexStatus struct {
	// name of the index.
	Name string `json:"name"`
	// definition of the index, as PostgreSQL formats it.
	Definition string `json:"definition"`
	// valid is false while the index is being built, and when its build failed.
	Valid bool `json:"valid"`
}

// PlanStatus is what is left to do.
type PlanStatus struct {
	// digest of the steps, for spec.schema.approvedPlan.
	Digest string `json:"digest"`
	// steps in the order in which they are applied.
	// +listType=atomic
	Steps []PlanStep `json:"steps"`
}

// PlanStep is one statement of a plan.
type PlanStep struct {
	// description of the step in words.
	Description string `json:"description"`
	// sql of the step.
	SQL string `json:"sql"`
}

// TableStatus holds the table's size and age.
type TableStatus struct {
	// rows is PostgreSQL's own estimate of the number of records.
	// +optional
	Rows int64 `json:"rows"`
	// bytes of the table with its indexes.
	// +optional
	Bytes int64 `json:"bytes"`
	// oldestRecord is the earliest processedAt.
	// +optional
	OldestRecord *metav1.Time `json:"oldestRecord,omitempty"`
	// newestRecord is the latest processedAt.
	// +optional
	NewestRecord *metav1.Time `json:"newestRecord,omitempty"`
	// indexBytes of the table's indexes, within bytes.
	// +optional
	IndexBytes int64 `json:"indexBytes"`
	// indexes of the table and their sizes.
	// +optional
	// +listType=atomic
	Indexes []IndexSize `json:"indexes,omitempty"`
	// deadRows wait for a vacuum: deleted records, and inserts that were rolled back.
	// +optional
	DeadRows int64 `json:"deadRows"`
	// bloatBytes is an estimate of the table's space, without its indexes, that holds no
	// record; left out until the table was analyzed.
	// +optional
	BloatBytes *int64 `json:"bloatBytes,omitempty"`
	// lastVacuum is the end of the last vacuum, by hand or automatic.
	// +optional
	LastVacuum *metav1.Time `json:"lastVacuum,omitempty"`
	// growthPerDay is the number of records added in the last whole day, rounded to two
	// digits; an extrapolation in the first day, left out in the first hour.
	// +optional
	GrowthPerDay *int64 `json:"growthPerDay,omitempty"`
	// growthBytesPerDay is growthPerDay in bytes, at the present size of a record with its
	// indexes and bloat, rounded to two digits.
	// +optional
	GrowthBytesPerDay *int64 `json:"growthBytesPerDay,omitempty"`
	// projectedBytes is the size that the table with its indexes reaches at the current
	// retention, growth and size of a record, rounded to two digits.
	// +optional
	ProjectedBytes *int64 `json:"projectedBytes,omitempty"`
	// foreignDeletes is how many records others than the operator deleted since it first
	// looked; as of lookedAt.
	// +optional
	ForeignDeletes int64 `json:"foreignDeletes"`
	// skippedRedeliveries is an estimate of how many redeliveries found their proof and
	// were skipped since the operator first looked; as of lookedAt. docs/metrics.md has
	// its limits.
	// +optional
	SkippedRedeliveries int64 `json:"skippedRedeliveries"`
	// observedRetention is the smallest age, as an upper bound, at which records were seen
	// to vanish before their time; left out while none do.
	// +optional
	ObservedRetention *metav1.Duration `json:"observedRetention,omitempty"`
	// lookedAt is when the numbers that need two looks were last written here: hourly
	// while the table changes. The metrics have them as of the last look.
	// +optional
	LookedAt *metav1.Time `json:"lookedAt,omitempty"`
	// baseline is the look that the next one is compared with after a restart of the
	// manager. It is of no use to anybody else.
	// +optional
	Baseline *TableBaseline `json:"baseline,omitempty"`
}

// IndexSize is the size of one index.
type IndexSize struct {
	// name of the index.
	Name string `json:"name"`
	// bytes of the index, its partitions summed up.
	Bytes int64 `json:"bytes"`
}

// TableBaseline holds PostgreSQL's cumulative statistics of the table at one look.
type TableBaseline struct {
	// oid of the table.
	OID int64 `json:"oid"`
	// indexOID of its unique index.
	IndexOID int64 `json:"indexOID"`
	// statsReset is when the statistics were last reset.
	// +optional
	StatsReset *metav1.MicroTime `json:"statsReset,omitempty"`
	// inserted rows.
	Inserted int64 `json:"inserted"`
	// updated rows.
	Updated int64 `json:"updated"`
	// deleted rows.
	Deleted int64 `json:"deleted"`
	// live rows.
	Live int64 `json:"live"`
	// recounts by vacuum and analyze.
	Recounts int64 `json:"recounts"`
	// indexScans of the unique index.
	IndexScans int64 `json:"indexScans"`
	// indexReads are the entries that the scans found.
	IndexReads int64 `json:"indexReads"`
	// pruned rows, by the operator, since the resource was created.
	Pruned int64 `json:"pruned"`
	// rolledBack inserts whose retries may yet come.
	RolledBack int64 `json:"rolledBack"`
	// oldest record.
	// +optional
	Oldest *metav1.MicroTime `json:"oldest,omitempty"`
	// retention that was in force.
	Retention metav1.Duration `json:"retention"`
	// dayStart is the start of the day whose growth is being measured.
	DayStart metav1.Time `json:"dayStart"`
	// added rows since dayStart.
	Added int64 `json:"added"`
	// extrapolated says that growthPerDay is of less than a day.
	Extrapolated bool `json:"extrapolated"`
	// vanishedAt is when records were last seen to vanish before their time.
	// +optional
	VanishedAt *metav1.Time `json:"vanishedAt,omitempty"`
}

// PruningStatus tells of the last and the next run.
type PruningStatus struct {
	// nextRun is the next tick of the schedule; left out while pruning is off.
	// +optional
	NextRun *metav1.Time `json:"nextRun,omitempty"`
	// lastRun is the newest run that ended.
	// +optional
	LastRun *PruningRun `json:"lastRun,omitempty"`
	// rowsDeleted by all runs since the resource was created.
	// +optional
	RowsDeleted int64 `json:"rowsDeleted"`
}

// RunResult says how a run ended.
//
// +kubebuilder:validation:Enum=Done;TimeLimit;Refused;Failed
type RunResult string

const (
	// RunDone means that no expired record is left.
	RunDone RunResult = "Done"
	// RunTimeLimit means that expired records were left for the next run.
	RunTimeLimit RunResult = "TimeLimit"
	// RunRefused means that the pruner found a reason not to delete anything.
	RunRefused RunResult = "Refused"
	// RunFailed means that the run ended in an error.
	RunFailed RunResult = "Failed"
)

// PruningRun is one run that ended.
type PruningRun struct {
	// tick of the schedule that the run was for.
	Tick metav1.Time `json:"tick"`
	// job is the name of the run's Job.
	Job string `json:"job"`
	// result of the run.
	Result RunResult `json:"result"`
	// message says what happened, in words.
	// +optional
	Message string `json:"message,omitempty"`
	// completedAt is when the run ended.
	CompletedAt metav1.Time `json:"completedAt"`
	// duration of the run.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
	// dryRun runs delete nothing.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
	// rowsDeleted by the run; under dryRun, the rows that it would have deleted.
	// +optional
	RowsDeleted int64 `json:"rowsDeleted"`
	// cutoff: records older than this were expired.
	// +optional
	Cutoff *metav1.Time `json:"cutoff,omitempty"`
	// held is the number of expired records that were kept because their messages still
	// wait in a failure transport or an outbox. Unset when no such queue is observed, and
	// when the run ended before it had compared them.
	// +optional
	Held *int64 `json:"held,omitempty"`
	// heldSince is the time of the oldest of them.
	// +optional
	HeldSince *metav1.Time `json:"heldSince,omitempty"`
}

// DrillResult says how a drill ended.
//
// +kubebuilder:validation:Enum=Proven;Broken;NotTried;Failed
type DrillResult string

const (
	// DrillProven means that every check passed.
	DrillProven DrillResult = "Proven"
	// DrillBroken means that a check failed: the contract does not hold.
	DrillBroken DrillResult = "Broken"
	// DrillNotTried means that something beside the contract kept the drill from its end.
	DrillNotTried DrillResult = "NotTried"
	// DrillFailed means that the drill ended in an error, or left no report.
	DrillFailed DrillResult = "Failed"
)

// DrillStatus tells of the last and the next drill.
type DrillStatus struct {
	// nextRun is the next tick of drill.schedule; left out while no drill is made.
	// +optional
	NextRun *metav1.Time `json:"nextRun,omitempty"`
	// lastRun is when the last drill ended.
	// +optional
	LastRun *metav1.Time `json:"lastRun,omitempty"`
	// tick of the schedule that the last drill was for, or when a change of the table
	// called for it.
	// +optional
	Tick *metav1.Time `json:"tick,omitempty"`
	// job is the name of the last drill's Job.
	// +optional
	Job string `json:"job,omitempty"`
	// subject is a digest of what the last drill was about: the table, and the
	// connections that it was drilled through. Another one calls for a drill at once.
	// +optional
	Subject string `json:"subject,omitempty"`
	// result of the last drill.
	// +optional
	Result DrillResult `json:"result,omitempty"`
	// reason is one word for the result, such as DuplicateAccepted.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says what happened, in words.
	// +optional
	Message string `json:"message,omitempty"`
	// duration of the last drill.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
	// lockWait is how long a second session waited for the first, which held on for 50 ms.
	// +optional
	LockWait *metav1.Duration `json:"lockWait,omitempty"`
	// checks of the last drill.
	// +optional
	// +listType=atomic
	Checks []DrillCheck `json:"checks,omitempty"`
}

// DrillCheck is one claim of the contract on one connection.
type DrillCheck struct {
	// name of the check.
	Name string `json:"name"`
	// connection is "inbox", or "handler N": the handlerURLSecretRefs, counted from 0.
	Connection string `json:"connection"`
	// passed says whether the claim held.
	Passed bool `json:"passed"`
	// duration of the check.
	Duration metav1.Duration `json:"duration"`
	// reason of a failed check, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// expected is the claim of a failed check.
	// +optional
	Expected string `json:"expected,omitempty"`
	// happened is what was seen in a failed check.
	// +optional
	Happened string `json:"happened,omitempty"`
}
