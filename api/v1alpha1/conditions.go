package v1alpha1

// Condition types of a MessagingInbox. Ready sums up the others; Reconciling and
// Stalled follow kstatus: they are present with status True, or absent.
const (
	ConditionReady                = "Ready"
	ConditionReconciling          = "Reconciling"
	ConditionStalled              = "Stalled"
	ConditionDatabaseReachable    = "DatabaseReachable"
	ConditionSchemaReady          = "SchemaReady"
	ConditionRetentionSafe        = "RetentionSafe"
	ConditionCoverageComplete     = "CoverageComplete"
	ConditionTransactionShared    = "TransactionShared"
	ConditionBusinessKeysEnforced = "BusinessKeysEnforced"
	ConditionContractProven       = "ContractProven"
	ConditionTransportsObserved   = "TransportsObserved"
	ConditionPruningHealthy       = "PruningHealthy"
)

// Reasons of the conditions. docs/runbook.md has an entry for each.
const (
	// Shared by several conditions.
	ReasonNotInspected     = "NotInspected"     // the database was not looked at
	ReasonNotDeclared      = "NotDeclared"      // the spec declares nothing to check
	ReasonSuspended        = "Suspended"        // spec.suspend or spec.pruning.suspend
	ReasonUnexpectedError  = "UnexpectedError"  // an error of no known class
	ReasonPermissionDenied = "PermissionDenied" // a GRANT is missing

	// Ready, Reconciling and Stalled.
	ReasonAllChecksPassed = "AllChecksPassed"
	ReasonProgressing     = "Progressing"

	// DatabaseReachable.
	ReasonConnected            = "Connected"
	ReasonSecretNotFound       = "SecretNotFound"
	ReasonSecretKeyMissing     = "SecretKeyMissing"
	ReasonInvalidURL           = "InvalidURL"
	ReasonUnsupportedDatabase  = "UnsupportedDatabase"
	ReasonUnreachable          = "Unreachable"
	ReasonTLSFailed            = "TLSFailed"
	ReasonAuthenticationFailed = "AuthenticationFailed"
	ReasonDatabaseNotFound     = "DatabaseNotFound"
	ReasonReadOnly             = "ReadOnly"
	ReasonTooManyConnections   = "TooManyConnections"
	ReasonUnsupportedServer    = "UnsupportedServer"
	ReasonStatementTimeout     = "StatementTimeout"
	ReasonLockTimeout          = "LockTimeout"

	// SchemaReady.
	ReasonContractMet        = "ContractMet"
	ReasonTableMissing       = "TableMissing"
	ReasonPlanPending        = "PlanPending"
	ReasonPlanApproval       = "PlanAwaitsApproval"
	ReasonApplying           = "Applying"
	ReasonForeignTable       = "ForeignTable"
	ReasonNotATable          = "NotATable"
	ReasonColumnMissing      = "ColumnMissing"
	ReasonColumnType         = "ColumnTypeMismatch"
	ReasonColumnNullable     = "ColumnNullable"
	ReasonUniqueKeyMissing   = "UniqueKeyMissing"
	ReasonDuplicateRecords   = "DuplicateRecords"
	ReasonSchemaNotFound     = "SchemaNotFound"
	ReasonIndexNameTaken     = "IndexNameTaken"
	ReasonUniqueKeyTooNarrow = "UniqueKeyTooNarrow"
	ReasonUnloggedTable      = "UnloggedTable"
	ReasonReferencedTable    = "ReferencedTable"
	ReasonMigratesElsewhere  = "MigratesElsewhere"
	ReasonMigrationFailed    = "MigrationFailed"
	ReasonInvalidTimeZone    = "InvalidTimeZone"

	// Remarks in the message of SchemaReady; they never decide it.
	ReasonTimestampIndexMissing = "TimestampIndexMissing"
	ReasonTriggersOrRules       = "TriggersOrRules"

	// RetentionSafe.
	ReasonCoversWindow   = "CoversWindow"
	ReasonTooShort       = "TooShort"
	ReasonUnbounded      = "Unbounded"
	ReasonRetentionZero  = "RetentionZero"
	ReasonMaxAgeExceeded = "MaxAgeExceeded"
	ReasonForeignPurge   = "ForeignPurge" // records vanish younger than the retention

	// TransportsObserved.
	ReasonObserved       = "Observed"
	ReasonPartlyObserved = "PartlyObserved"
	ReasonNotLookedYet   = "NotLookedYet"
	ReasonProbeFailed    = "ProbeFailed"

	// CoverageComplete.
	ReasonAllCovered    = "AllCovered"
	ReasonNotAllCovered = "NotAllCovered"
	// The same, when spec.requireFullCoverage makes it count.
	ReasonFullCoverageRequired = "FullCoverageRequired"

	// TransactionShared.
	ReasonSharedTransaction = "SharedTransaction"
	ReasonReplica           = "Replica"
	ReasonOtherServer       = "OtherServer"
	ReasonOtherDatabase     = "OtherDatabase"
	ReasonClone             = "Clone"
	ReasonOtherTable        = "OtherTable"
	ReasonNoAnswer          = "NoAnswer"

	// BusinessKeysEnforced.
	ReasonKeysEnforced       = "KeysEnforced"
	ReasonBusinessKeyMissing = "BusinessKeyMissing"

	// ContractProven.
	ReasonProven         = "Proven"
	ReasonContractBroken = "ContractBroken"
	ReasonDrillNotTried  = "DrillNotTried"

	// PruningHealthy.
	ReasonRunSucceeded      = "RunSucceeded"
	ReasonAwaitingRun       = "AwaitingFirstRun"
	ReasonWorkLeft          = "WorkLeft"
	ReasonRunFailed         = "RunFailed"
	ReasonRunRefused        = "RunRefused"
	ReasonNotSafe           = "NotSafe"
	ReasonInvalidSchedule   = "InvalidSchedule"
	ReasonInvalidJob        = "InvalidJob"
	ReasonJobRejected       = "JobRejected"
	ReasonPruningElsewhere  = "PruningElsewhere"
	ReasonRunOverdue        = "RunOverdue"
	ReasonTooShortForOthers = "TooShortForOthers"
	ReasonTableGrows        = "TableGrowsTooLarge" // a warning: the condition stays True
)
