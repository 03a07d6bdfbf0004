package dbschema

// Reasons of findings. They are those of the condition SchemaReady.
const (
	ReasonSchemaNotFound     = "SchemaNotFound"
	ReasonTableMissing       = "TableMissing"
	ReasonNotATable          = "NotATable"
	ReasonForeignTable       = "ForeignTable"
	ReasonColumnMissing      = "ColumnMissing"
	ReasonColumnTypeMismatch = "ColumnTypeMismatch"
	ReasonColumnNullable     = "ColumnNullable"
	ReasonInvalidTimeZone    = "InvalidTimeZone"
	ReasonUniqueKeyMissing   = "UniqueKeyMissing"
	ReasonUniqueKeyTooNarrow = "UniqueKeyTooNarrow"
	ReasonDuplicateRecords   = "DuplicateRecords"
	ReasonIndexNameTaken     = "IndexNameTaken"
	ReasonUnloggedTable      = "UnloggedTable"
	ReasonReferencedTable    = "ReferencedTable"
	// Never blocking.
	ReasonTimestampIndexMissing = "TimestampIndexMissing"
	ReasonTriggersOrRules       = "TriggersOrRules"
)

// Finding is one difference between the table and the contract.
type Finding struct {
	// Reason is one of the Reason constants.
	Reason string
	// Message names the object, the numbers and the next step, in whole sentences.
	Message string
	// Blocking findings break the contract; the others are only worth knowing.
	Blocking bool
}

// Verdict is the outcome of a comparison.
type Verdict struct {
	// Findings, the one to mend first in front.
	Findings []Finding
	// Plan is what the operator may do about them. It is empty while a blocking finding
	// remains that only a person can mend.
	Plan Plan
}

// Met says whether the contract holds: no finding is blocking.
func (v Verdict) Met() bool {
	return !anyBlocking(v.Findings)
}

func anyBlocking(findings []Finding) bool {
	for _, finding := range findings {
		if finding.Blocking {
			return true
		}
	}
	return false
}
