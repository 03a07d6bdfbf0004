package dbschema

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Kind is what the table's name stands for in the catalogue.
type Kind string

// Kinds of relation. Only a table and a partitioned table can hold the inbox.
const (
	KindTable            Kind = "table"
	KindPartitioned      Kind = "partitioned table"
	KindPartition        Kind = "partition"
	KindInherited        Kind = "table with inheriting tables"
	KindView             Kind = "view"
	KindMaterializedView Kind = "materialized view"
	KindForeign          Kind = "foreign table"
	KindSequence         Kind = "sequence"
	KindIndex            Kind = "index"
	KindType             Kind = "type"
	KindOther            Kind = "object of another kind"
)

// Persistence says what a crash leaves of the table.
type Persistence string

// Persistences of a relation.
const (
	Permanent Persistence = "permanent"
	Unlogged  Persistence = "unlogged"
	Temporary Persistence = "temporary"
)

// Observed is what the catalogue says of the table at one moment.
type Observed struct {
	// SchemaExists says whether the contract's schema exists.
	SchemaExists bool `json:"schemaExists"`
	// Exists says whether anything has the table's name, a table or not.
	Exists bool `json:"exists"`
	// OID of the relation; 0 when there is none.
	OID uint32 `json:"oid"`
	// Kind of the relation.
	Kind Kind `json:"kind"`
	// Persistence of the relation.
	Persistence Persistence `json:"persistence"`
	// Owner is the role that owns the relation.
	Owner string `json:"owner"`
	// Comment on the relation.
	Comment string `json:"comment"`
	// Columns in the table's order.
	Columns []Column `json:"columns"`
	// Indexes by name.
	Indexes []Index `json:"indexes"`
	// Triggers are the enabled triggers that somebody made, by name.
	Triggers []string `json:"triggers"`
	// Rules are the enabled rewrite rules, by name.
	Rules []string `json:"rules"`
	// ReferencedBy are the foreign keys of other tables that point here, as
	// "constraint of table".
	ReferencedBy []string `json:"referencedBy"`
	// Bytes of the table with its indexes and partitions. While somebody holds or
	// awaits an exclusive lock, the size as of the last vacuum.
	Bytes int64 `json:"bytes"`
	// EstimatedRows is the statistics' number of rows; nothing is counted.
	EstimatedRows int64 `json:"estimatedRows"`
	// Duplicates is set only when a table with the three columns lacks the unique key.
	Duplicates *DuplicateCount `json:"duplicates,omitempty"`
	// TimeZoneValid says whether the server knows the contract's time zone.
	TimeZoneValid bool `json:"timeZoneValid"`
	// TimestampIndexNameTakenBy describes a relation, other than an index of this table,
	// that has the name of the timestamp index. Empty: none.
	TimestampIndexNameTakenBy string `json:"timestampIndexNameTakenBy"`
	// UniqueIndexNameTakenBy is the same for the unique index.
	UniqueIndexNameTakenBy string `json:"uniqueIndexNameTakenBy"`
}

// Column is one column of the table.
type Column struct {
	// Name of the column.
	Name string `json:"name"`
	// Type as PostgreSQL formats it, for example character varying(190).
	Type string `json:"type"`
	// TypeOID is the type's oid, without its modifier.
	TypeOID uint32 `json:"typeOID"`
	// MaxLength in characters of a varchar(n) or char(n); 0 when it has none.
	MaxLength int `json:"maxLength"`
	// Nullable columns accept NULL.
	Nullable bool `json:"nullable"`
	// HasDefault says whether the column fills itself: default, identity or generated.
	HasDefault bool `json:"hasDefault"`
	// NondeterministicCollation says that the column's collation takes different
	// texts, for example in upper and lower case, for equal ones.
	NondeterministicCollation bool `json:"nondeterministicCollation"`
}

// WithoutTimeZone says whether the column is a timestamp whose zone only the
// contract knows.
func (col Column) WithoutTimeZone() bool {
	return col.TypeOID == pgtype.TimestampOID
}

// Index is one index of the table.
type Index struct {
	// Name of the index.
	Name string `json:"name"`
	// Method is its access method, for example btree.
	Method string `json:"method"`
	// Columns of its key in order. An expression is the empty string, which no column
	// can be named.
	Columns []string `json:"columns"`
	// IncludedColumns are stored beside the key.
	IncludedColumns []string `json:"includedColumns"`
	// Unique index.
	Unique bool `json:"unique"`
	// Primary key.
	Primary bool `json:"primary"`
	// Valid indexes can be used by queries; an interrupted concurrent build leaves one that is not.
	Valid bool `json:"valid"`
	// Ready indexes are kept up to date by writers.
	Ready bool `json:"ready"`
	// Immediate is false when a deferrable constraint owns the index.
	Immediate bool `json:"immediate"`
	// Partial indexes have a WHERE clause.
	Partial bool `json:"partial"`
	// NullsNotDistinct unique indexes refuse a second NULL (PostgreSQL 15).
	NullsNotDistinct bool `json:"nullsNotDistinct"`
	// NondeterministicCollation as in Column, for the collations of the key.
	NondeterministicCollation bool `json:"nondeterministicCollation"`
	// BeingBuilt says that a session builds this index at this moment.
	BeingBuilt bool `json:"beingBuilt"`
	// Definition as PostgreSQL formats it. Empty while somebody holds or awaits an
	// exclusive lock on the table.
	Definition string `json:"definition"`
}

// DuplicateCount counts the records that a unique key would refuse.
type DuplicateCount struct {
	// Groups is the number of pairs (transport, message id) with more than one record.
	Groups int64 `json:"groups"`
	// Rows is the number of records in those groups.
	Rows int64 `json:"rows"`
	// TimedOut says that the count was given up after Limit and both numbers are unknown.
	TimedOut bool `json:"timedOut"`
	// Limit is how long the count might take.
	Limit time.Duration `json:"limit"`
}

// Column looks up a column by its exact name.
func (o Observed) Column(name string) (Column, bool) {
	for _, col := range o.Columns {
		if col.Name == name {
			return col, true
		}
	}
	return Column{}, false
}

// UniqueKey is the index that makes a second record of one message impossible: valid,
// not partial, checked at once, on exactly transport and message id in any order.
func (o Observed) UniqueKey(c Contract) (Index, bool) {
	for _, index := range o.Indexes {
		if isUniqueKey(c, index) {
			return index, true
		}
	}
	return Index{}, false
}

// TimestampIndex is an index that finds expired records without reading the whole
// table: a valid, not partial btree or brin whose first column is ProcessedAt. A btree
// wins, since only it also returns records in the order of time.
func (o Observed) TimestampIndex(c Contract) (Index, bool) {
	var found Index
	for _, index := range o.Indexes {
		if !servesTimestamp(c, index) {
			continue
		}
		if index.Method == methodBtree {
			return index, true
		}
		found = index
	}
	return found, found.Name != ""
}

// MadeByOperator says whether the table carries the comment with which Apply marks
// the tables that it creates.
func (o Observed) MadeByOperator() bool {
	return strings.Contains(o.Comment, ownershipMark)
}

func (k Kind) article() string {
	if k == KindIndex || k == KindOther {
		return "an"
	}
	return "a"
}
