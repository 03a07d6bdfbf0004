package dbschema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// StepKind says what a step does.
type StepKind string

// Kinds of step. All add, but DropInvalidIndex, which removes what an interrupted
// build of the same index left and nobody can read.
const (
	CreateTable          StepKind = "CreateTable"
	MarkTable            StepKind = "MarkTable"
	CreateUniqueIndex    StepKind = "CreateUniqueIndex"
	CreateTimestampIndex StepKind = "CreateTimestampIndex"
	DropInvalidIndex     StepKind = "DropInvalidIndex"
)

// Step is one statement of a plan.
type Step struct {
	// Kind of the step.
	Kind StepKind
	// Description in words, with what it means for the table's users: a phrase without a
	// full stop.
	Description string
	// SQL is the statement.
	SQL string
	// Concurrent steps let readers and writers go on, and run outside a transaction.
	// The others of a plan run together in one transaction.
	Concurrent bool

	index string // the index that a concurrent step works on
}

// Plan is what is left to do, in order. Its zero value is nothing.
type Plan struct {
	Steps []Step
}

// Empty says whether nothing is left to do.
func (p Plan) Empty() bool {
	return len(p.Steps) == 0
}

// Digest identifies what the plan makes: "sha256:" and the hash of its statements. The
// removal of an interrupted build does not count, so that an approval of the build
// also covers its repetition.
func (p Plan) Digest() string {
	hash := sha256.New()
	for _, step := range p.Steps {
		if step.Kind != DropInvalidIndex {
			hash.Write([]byte(step.SQL + ";\n"))
		}
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// ownershipMark in a table's comment tells that Apply created the table. Doctrine's
// schema comparison does not look at table comments of a table it does not map, nor
// at storage parameters.
const ownershipMark = "messaginginbox.dev"

// planTable creates the table as Symfony's and Doctrine's types would have it:
// varchar lengths of the Doctrine transport, and timestamp(0) without time zone, which
// is Doctrine's datetime_immutable. Each record is inserted once and deleted once, so
// vacuum starts after 2 % of dead rows instead of 20 %.
func planTable(c Contract, withIndex bool) []Step {
	table := c.qualifiedTable()
	steps := []Step{{
		Kind: CreateTable,
		Description: fmt.Sprintf("create table %s (if Doctrine migrates this database, map the table or exclude it with schema_filter: "+
			"for a table it does not know, migrations:diff proposes DROP TABLE)", table),
		SQL: fmt.Sprintf("CREATE TABLE %s (%s varchar(190) NOT NULL, %s varchar(255) NOT NULL, "+
			"%s timestamp(0) without time zone NOT NULL, PRIMARY KEY (%s, %s)) "+
			"WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)",
			table, quote(c.Transport), quote(c.MessageID), quote(c.ProcessedAt), quote(c.Transport), quote(c.MessageID)),
	}, {
		Kind:        MarkTable,
		Description: fmt.Sprintf("mark table %s as made by the operator", table),
		SQL: fmt.Sprintf("COMMENT ON TABLE %s IS 'Consumer inbox: a row proves that a message was handled. Made by the messaging inbox operator (%s).'",
			table, ownershipMark),
	}}
	if !withIndex {
		return steps
	}
	return append(steps, Step{
		Kind:        CreateTimestampIndex,
		Description: fmt.Sprintf("create index %s on the new table, for pruning", quote(c.TimestampIndexName())),
		SQL:         fmt.Sprintf("CREATE INDEX %s ON %s (%s)", quote(c.TimestampIndexName()), table, quote(c.ProcessedAt)),
	})
}

// wantedIndex is an index that an existing table lacks.
type wantedIndex struct {
	kind    StepKind
	name    string
	columns []string
	unique  bool
	purpose string
	takenBy string // by a relation other than an index of this table
	serves  func(Contract, Index) bool
}

func wantedUniqueIndex(c Contract, o Observed) wantedIndex {
	return wantedIndex{
		kind: CreateUniqueIndex, name: c.UniqueIndexName(), columns: []string{c.Transport, c.MessageID}, unique: true,
		purpose: "so that a message can be recorded only once", takenBy: o.UniqueIndexNameTakenBy, serves: isUniqueKey,
	}
}

func wantedTimestampIndex(c Contract, o Observed) wantedIndex {
	return wantedIndex{
		kind: CreateTimestampIndex, name: c.TimestampIndexName(), columns: []string{c.ProcessedAt},
		purpose: "so that pruning finds expired records without reading the whole table", takenBy: o.TimestampIndexNameTakenBy, serves: servesTimestamp,
	}
}

// steps builds the index, after removing what an interrupted build of it left.
func (w wantedIndex) steps(c Contract, o Observed) []Step {
	var steps []Step
	if w.hasLeftover(o) {
		steps = append(steps, Step{
			Kind:        DropInvalidIndex,
			Description: fmt.Sprintf("drop index %s, which an interrupted build left invalid", quote(w.name)),
			SQL:         fmt.Sprintf("DROP INDEX CONCURRENTLY %s.%s", quote(c.Schema), quote(w.name)),
			Concurrent:  true,
			index:       w.name,
		})
	}
	unique := ""
	if w.unique {
		unique = "UNIQUE "
	}
	description := fmt.Sprintf("create %sindex %s while readers and writers go on, %s", strings.ToLower(unique), quote(w.name), w.purpose)
	if !o.MadeByOperator() {
		description += " (if Doctrine migrates this table, map an index of this name too: otherwise the next migrations:diff proposes DROP INDEX)"
	}
	return append(steps, Step{
		Kind:        w.kind,
		Description: description,
		SQL:         fmt.Sprintf("CREATE %sINDEX CONCURRENTLY %s ON %s (%s)", unique, quote(w.name), c.qualifiedTable(), quoteAll(w.columns)),
		Concurrent:  true,
		index:       w.name,
	})
}

// nameTaken describes what stands in the way of the index's name, or is empty.
func (w wantedIndex) nameTaken(o Observed) string {
	if w.takenBy != "" {
		return w.takenBy
	}
	for _, index := range o.Indexes {
		if index.Name == w.name && !index.BeingBuilt && !w.isLeftover(index) {
			return fmt.Sprintf("another index of this table, on (%s)", quoteAll(index.Columns))
		}
	}
	return ""
}

// building is the index of any name that some session builds and that will serve the
// same purpose, if there is one.
func (w wantedIndex) building(c Contract, o Observed) (Index, bool) {
	for _, index := range o.Indexes {
		built := index
		built.Valid, built.Ready = true, true
		if index.BeingBuilt && w.serves(c, built) {
			return index, true
		}
	}
	return Index{}, false
}

func (w wantedIndex) hasLeftover(o Observed) bool {
	for _, index := range o.Indexes {
		if w.isLeftover(index) {
			return true
		}
	}
	return false
}

func (w wantedIndex) isLeftover(index Index) bool {
	return index.Name == w.name && !index.Valid && !index.BeingBuilt && w.sameShape(index)
}

func (w wantedIndex) sameShape(index Index) bool {
	if index.Unique != w.unique || index.Partial || len(index.Columns) != len(w.columns) {
		return false
	}
	for i, column := range w.columns {
		if index.Columns[i] != column {
			return false
		}
	}
	return true
}
