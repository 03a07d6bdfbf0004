package dbschema

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

func key() Index {
	return Index{Name: "inbox_pkey", Method: "btree", Columns: []string{"transport", "message_id"}, Unique: true, Primary: true, Valid: true, Ready: true, Immediate: true}
}

func timestampIndex() Index {
	return Index{Name: "inbox_processed_at_idx", Method: "btree", Columns: []string{"processed_at"}, Valid: true, Ready: true, Immediate: true}
}

// complete is a table that meets the contract with nothing to remark.
func complete() Observed {
	return Observed{
		SchemaExists: true, Exists: true, OID: 1, Kind: KindTable, Persistence: Permanent, TimeZoneValid: true,
		Columns: []Column{
			{Name: "transport", Type: "character varying(190)", TypeOID: pgtype.VarcharOID, MaxLength: 190},
			{Name: "message_id", Type: "character varying(255)", TypeOID: pgtype.VarcharOID, MaxLength: 255},
			{Name: "processed_at", Type: "timestamp(0) without time zone", TypeOID: pgtype.TimestampOID},
		},
		Indexes: []Index{key(), timestampIndex()},
	}
}

func withoutIndexes(o *Observed) {
	o.Indexes, o.Duplicates = nil, &DuplicateCount{Limit: 5 * time.Second}
}

func TestCompare(t *testing.T) {
	invalid := func(index Index) Index {
		index.Valid = false
		return index
	}
	building := func(index Index) Index {
		index.Valid, index.BeingBuilt = false, true
		return index
	}
	uniqueIndex := key()
	uniqueIndex.Name, uniqueIndex.Primary = "inbox_transport_message_id_key", false
	for _, test := range []struct {
		name    string
		change  func(*Observed)
		met     bool
		reasons []string
		steps   []StepKind
	}{
		{name: "complete", change: func(*Observed) {}, met: true},
		{name: "id before transport, with more columns stored", change: func(o *Observed) {
			o.Indexes[0].Columns, o.Indexes[0].IncludedColumns = []string{"message_id", "transport"}, []string{"processed_at"}
		}, met: true},
		{name: "uuid id", change: func(o *Observed) { o.Columns[1] = Column{Name: "message_id", TypeOID: pgtype.UUIDOID} }, met: true},
		{name: "uuid transport", change: func(o *Observed) { o.Columns[0] = Column{Name: "transport", TypeOID: pgtype.UUIDOID} }, reasons: []string{ReasonColumnTypeMismatch}},
		{name: "id of just Symfony's length", change: func(o *Observed) { o.Columns[1].MaxLength = 32 }, met: true},
		{name: "id shorter than Symfony's", change: func(o *Observed) { o.Columns[1].MaxLength = 31 }, reasons: []string{ReasonColumnTypeMismatch}},
		{name: "char(32) id", change: func(o *Observed) { o.Columns[1].TypeOID, o.Columns[1].MaxLength = pgtype.BPCharOID, 32 }, met: true},
		{name: "integer id", change: func(o *Observed) { o.Columns[1] = Column{Name: "message_id", TypeOID: pgtype.Int8OID} }, reasons: []string{ReasonColumnTypeMismatch}},
		{name: "integer time", change: func(o *Observed) { o.Columns[2].TypeOID = pgtype.Int8OID }, reasons: []string{ReasonColumnTypeMismatch}},
		{name: "date", change: func(o *Observed) { o.Columns[2].TypeOID = pgtype.DateOID }, reasons: []string{ReasonColumnTypeMismatch}},
		{name: "time with zone in an unknown zone", change: func(o *Observed) { o.Columns[2].TypeOID, o.TimeZoneValid = pgtype.TimestamptzOID, false }, met: true},
		{name: "time without zone in an unknown zone", change: func(o *Observed) { o.TimeZoneValid = false }, reasons: []string{ReasonInvalidTimeZone}},
		{name: "no schema", change: func(o *Observed) { *o = Observed{} }, reasons: []string{ReasonSchemaNotFound}},
		{name: "no table", change: func(o *Observed) { *o = Observed{SchemaExists: true, TimeZoneValid: true} }, reasons: []string{ReasonTableMissing}, steps: []StepKind{CreateTable, MarkTable, CreateTimestampIndex}},
		{name: "no table, its index's name taken", change: func(o *Observed) {
			*o = Observed{SchemaExists: true, TimeZoneValid: true, TimestampIndexNameTakenBy: "a view"}
		}, reasons: []string{ReasonTableMissing, ReasonIndexNameTaken}, steps: []StepKind{CreateTable, MarkTable}},
		{name: "temporary", change: func(o *Observed) { o.Persistence = Temporary }, reasons: []string{ReasonUnloggedTable}},
		{name: "a blocked table is not touched", change: func(o *Observed) { o.Persistence = Unlogged; withoutIndexes(o) }, reasons: []string{ReasonUnloggedTable, ReasonUniqueKeyMissing, ReasonTimestampIndexMissing}},
		{name: "no index", change: withoutIndexes, reasons: []string{ReasonUniqueKeyMissing, ReasonTimestampIndexMissing}, steps: []StepKind{CreateUniqueIndex, CreateTimestampIndex}},
		{name: "no index, duplicates", change: func(o *Observed) { o.Indexes, o.Duplicates = nil, &DuplicateCount{Groups: 1, Rows: 2} }, reasons: []string{ReasonDuplicateRecords, ReasonTimestampIndexMissing}},
		{name: "no index, duplicates unknown", change: func(o *Observed) { o.Indexes = nil }, reasons: []string{ReasonUniqueKeyMissing, ReasonTimestampIndexMissing}},
		{name: "no index, too many records", change: func(o *Observed) { o.Indexes, o.Duplicates = nil, &DuplicateCount{TimedOut: true} }, reasons: []string{ReasonUniqueKeyMissing, ReasonTimestampIndexMissing}},
		{name: "partitioned without index", change: func(o *Observed) { withoutIndexes(o); o.Kind = KindPartitioned }, reasons: []string{ReasonUniqueKeyMissing, ReasonTimestampIndexMissing}},
		{name: "partitioned and complete", change: func(o *Observed) { o.Kind = KindPartitioned }, met: true},
		{name: "key with a third column", change: func(o *Observed) {
			withoutIndexes(o)
			o.Indexes = []Index{key(), timestampIndex()}
			o.Indexes[0].Columns = []string{"transport", "message_id", "processed_at"}
		}, reasons: []string{ReasonUniqueKeyMissing}, steps: []StepKind{CreateUniqueIndex}},
		{name: "key not ready", change: func(o *Observed) { o.Indexes[0].Ready = false; o.Duplicates = &DuplicateCount{} }, reasons: []string{ReasonUniqueKeyMissing}, steps: []StepKind{CreateUniqueIndex}},
		{name: "key not immediate", change: func(o *Observed) { o.Indexes[0].Immediate = false; o.Duplicates = &DuplicateCount{} }, reasons: []string{ReasonUniqueKeyMissing}, steps: []StepKind{CreateUniqueIndex}},
		{name: "not a unique index", change: func(o *Observed) { o.Indexes[0].Unique = false; o.Duplicates = &DuplicateCount{} }, reasons: []string{ReasonUniqueKeyMissing}, steps: []StepKind{CreateUniqueIndex}},
		{name: "key on an expression", change: func(o *Observed) { o.Indexes[0].Columns[1] = ""; o.Duplicates = &DuplicateCount{} }, reasons: []string{ReasonUniqueKeyMissing}, steps: []StepKind{CreateUniqueIndex}},
		{name: "leftover of the key", change: func(o *Observed) {
			o.Indexes, o.Duplicates = []Index{invalid(uniqueIndex), timestampIndex()}, &DuplicateCount{}
		}, reasons: []string{ReasonUniqueKeyMissing}, steps: []StepKind{DropInvalidIndex, CreateUniqueIndex}},
		{name: "invalid key of another name", change: func(o *Observed) {
			o.Indexes, o.Duplicates = []Index{invalid(key()), timestampIndex()}, &DuplicateCount{}
		}, reasons: []string{ReasonUniqueKeyMissing}, steps: []StepKind{CreateUniqueIndex}},
		{name: "key being built under another name", change: func(o *Observed) { o.Indexes = []Index{building(key())} }, reasons: []string{ReasonUniqueKeyMissing, ReasonTimestampIndexMissing}},
		{name: "name of the key taken", change: func(o *Observed) { withoutIndexes(o); o.UniqueIndexNameTakenBy = "a view" }, reasons: []string{ReasonUniqueKeyMissing, ReasonIndexNameTaken, ReasonTimestampIndexMissing}},
		{name: "a second unique index on the id alone", change: func(o *Observed) {
			o.Indexes = append(o.Indexes, Index{Name: "id", Columns: []string{"message_id"}, Unique: true, Valid: true})
		}, reasons: []string{ReasonUniqueKeyTooNarrow}},
		{name: "one record per transport and second", change: func(o *Observed) {
			o.Indexes = append(o.Indexes, Index{Name: "id", Columns: []string{"transport", "processed_at"}, Unique: true, Valid: true})
		}, reasons: []string{ReasonUniqueKeyTooNarrow}},
		{name: "a unique index on a column of the application", change: func(o *Observed) {
			o.Indexes = append(o.Indexes, Index{Name: "id", Columns: []string{"id"}, Unique: true, Valid: true})
		}, met: true},
		{name: "no timestamp index", change: func(o *Observed) { o.Indexes = o.Indexes[:1] }, met: true, reasons: []string{ReasonTimestampIndexMissing}, steps: []StepKind{CreateTimestampIndex}},
		{name: "time in second place", change: func(o *Observed) {
			o.Indexes[1].Name, o.Indexes[1].Columns = "x", []string{"transport", "processed_at"}
		}, met: true, reasons: []string{ReasonTimestampIndexMissing}, steps: []StepKind{CreateTimestampIndex}},
		{name: "hash index on the time", change: func(o *Observed) { o.Indexes[1].Name, o.Indexes[1].Method = "x", "hash" }, met: true, reasons: []string{ReasonTimestampIndexMissing}, steps: []StepKind{CreateTimestampIndex}},
		{name: "leftover of the timestamp index", change: func(o *Observed) { o.Indexes[1] = invalid(timestampIndex()) }, met: true, reasons: []string{ReasonTimestampIndexMissing}, steps: []StepKind{DropInvalidIndex, CreateTimestampIndex}},
		{name: "an invalid index that is not ours has the name", change: func(o *Observed) { o.Indexes[1] = invalid(timestampIndex()); o.Indexes[1].Columns[0] = "transport" }, met: true, reasons: []string{ReasonIndexNameTaken}},
		{name: "timestamp index being built", change: func(o *Observed) { o.Indexes[1] = building(timestampIndex()) }, met: true, reasons: []string{ReasonTimestampIndexMissing}},
		{name: "remarks come after what blocks", change: func(o *Observed) {
			o.Triggers, o.ReferencedBy = []string{"t"}, []string{"f of x"}
			o.Columns[2].Nullable = true
		},
			reasons: []string{ReasonReferencedTable, ReasonColumnNullable, ReasonTriggersOrRules}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := complete()
			test.change(&o)
			verdict := Compare(contract(), o)
			var reasons []string
			for _, finding := range verdict.Findings {
				reasons = append(reasons, finding.Reason)
			}
			if !slices.Equal(reasons, test.reasons) {
				t.Errorf("reasons are %v, want %v", reasons, test.reasons)
			}
			var steps []StepKind
			for _, step := range verdict.Plan.Steps {
				steps = append(steps, step.Kind)
			}
			if !slices.Equal(steps, test.steps) {
				t.Errorf("steps are %v, want %v", steps, test.steps)
			}
			if verdict.Met() != test.met {
				t.Errorf("met is %t, want %t", verdict.Met(), test.met)
			}
		})
	}
}

func TestABtreeServesTheTimestampBetterThanABrin(t *testing.T) {
	o := complete()
	brin := timestampIndex()
	brin.Name, brin.Method = "a_brin", "brin"
	o.Indexes = []Index{brin, timestampIndex()}
	if index, found := o.TimestampIndex(contract()); !found || index.Method != "btree" {
		t.Errorf("index is %+v", index)
	}
	o.Indexes = o.Indexes[:1]
	if index, found := o.TimestampIndex(contract()); !found || index.Method != "brin" {
		t.Errorf("index is %+v", index)
	}
}

func TestPlanOfANewTable(t *testing.T) {
	plan := Compare(contract(), Observed{SchemaExists: true, TimeZoneValid: true}).Plan
	want := []string{
		`CREATE TABLE "app"."inbox" ("transport" varchar(190) NOT NULL, "message_id" varchar(255) NOT NULL, ` +
			`"processed_at" timestamp(0) without time zone NOT NULL, PRIMARY KEY ("transport", "message_id")) ` +
			`WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)`,
		`COMMENT ON TABLE "app"."inbox" IS 'Consumer inbox: a row proves that a message was handled. Made by the messaging inbox operator (messaginginbox.dev).'`,
		`CREATE INDEX "inbox_processed_at_idx" ON "app"."inbox" ("processed_at")`,
	}
	for i, step := range plan.Steps {
		if step.SQL != want[i] || step.Concurrent {
			t.Errorf("step %d is %s, concurrent %t", i, step.SQL, step.Concurrent)
		}
	}
}

func TestPlanOfAnAdoptedTableWarnsOfDoctrine(t *testing.T) {
	o := complete()
	withoutIndexes(&o)
	plan := Compare(contract(), o).Plan
	want := []string{
		`CREATE UNIQUE INDEX CONCURRENTLY "inbox_transport_message_id_key" ON "app"."inbox" ("transport", "message_id")`,
		`CREATE INDEX CONCURRENTLY "inbox_processed_at_idx" ON "app"."inbox" ("processed_at")`,
	}
	for i, step := range plan.Steps {
		if step.SQL != want[i] || !step.Concurrent {
			t.Errorf("step %d is %s, concurrent %t", i, step.SQL, step.Concurrent)
		}
		if !strings.Contains(step.Description, "migrations:diff proposes DROP INDEX") {
			t.Errorf("description is %s", step.Description)
		}
	}
}

func TestDigestIdentifiesWhatIsBuilt(t *testing.T) {
	o := Observed{SchemaExists: true, TimeZoneValid: true}
	created := Compare(contract(), o).Plan.Digest()
	if created != "sha256:a4a21ed2d224ca19939a4a2f10d7684414a4beb610502f8845325b7a1da88c3e" {
		t.Errorf("digest is %s: an approval given to the last version no longer counts", created)
	}
	renamed := contract()
	renamed.TimestampIndex = "other"
	if Compare(renamed, o).Plan.Digest() == created {
		t.Error("another index has the same digest")
	}
	first, again := complete(), complete()
	first.Indexes = first.Indexes[:1]
	again.Indexes[1].Valid = false
	if Compare(contract(), first).Plan.Digest() != Compare(contract(), again).Plan.Digest() {
		t.Error("the repetition of an interrupted build has another digest")
	}
}
