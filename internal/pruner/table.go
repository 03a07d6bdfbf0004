package pruner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/messaginginbox/operator/internal/dbschema"
)

// tidRangeScan is the first version that finds a range of pages without reading the others.
const tidRangeScan = 140000

// Conditions for the pages from $1 up to, without, $2.
const (
	pageRangeByBounds = `ctid >= ('(' || $1::bigint || ',0)')::tid AND ctid < ('(' || $2::bigint || ',0)')::tid`
	// A page has no more records than its bytes divided by 28: each takes a pointer of 4
	// and a header of 24.
	pageRangeByList = `ctid = ANY (ARRAY(SELECT ('(' || page || ',' || record || ')')::tid
		FROM generate_series($1::bigint, $2::bigint - 1) page, generate_series(1, current_setting('block_size')::int / 28) record))`
)

// table is what the statements need to know of the inbox table.
type table struct {
	name      string      // quoted and qualified, for statements and messages
	column    string      // quoted processed-at column
	digest    string      // of the message's id, as an expression
	transport string      // quoted transport column
	covered   []string    // transports whose records may go; nil: all
	held      heldRecords // stay although they are expired
	oid       uint32
	zoneless  bool   // the column has no time zone
	timeZone  string // in which a column without time zone is written
	ordered   bool   // an index returns the records in the order of time
	pageRange string
}

func newTable(c dbschema.Contract, o dbschema.Observed, serverVersion int) table {
	t := table{
		name:      pgx.Identifier{c.Schema, c.Table}.Sanitize(),
		column:    pgx.Identifier{c.ProcessedAt}.Sanitize(),
		transport: pgx.Identifier{c.Transport}.Sanitize(),
		digest:    digestOf(pgx.Identifier{c.MessageID}.Sanitize()),
		oid:       o.OID,
		timeZone:  c.TimeZone,
		pageRange: pageRangeByBounds,
	}
	if t.timeZone == "" {
		t.timeZone = "UTC"
	}
	if column, found := o.Column(c.ProcessedAt); found {
		t.zoneless = column.WithoutTimeZone()
	}
	if index, found := o.TimestampIndex(c); found {
		t.ordered = index.Method == "btree"
	}
	if serverVersion < tidRangeScan {
		t.pageRange = pageRangeByList
	}
	return t
}

// sql fills in the names of the table and of its timestamp column.
func (t table) sql(statement string) string {
	return strings.NewReplacer("{table}", t.name, "{time}", t.column, "{digest}", t.digest, "{transport}", t.transport).Replace(statement)
}

// value is a position as a parameter of the column's very type: of another one, the
// session's time zone would convert it.
func (t table) value(position time.Time) any {
	if t.zoneless {
		return pgtype.Timestamp{Time: position.UTC(), Valid: true}
	}
	return pgtype.Timestamptz{Time: position, Valid: true}
}

// visit deletes the records that meet the condition and may go, or under a dry run counts
// them, into rows. The digests are those of the held records that may meet the condition.
func (t table) visit(dryRun bool, condition string, rows *int64, held []int64, arguments ...any) statement {
	mayGo, arguments := t.mayGo(held, arguments)
	return t.statement(dryRun, condition+mayGo, rows, arguments)
}

func (t table) statement(dryRun bool, condition string, rows *int64, arguments []any) statement {
	if dryRun {
		return statement{sql: t.sql(`SELECT count(*) FROM {table} WHERE ` + condition), arguments: arguments, row: []any{rows}}
	}
	return statement{sql: t.sql(`DELETE FROM {table} WHERE ` + condition), arguments: arguments, affected: rows}
}

// mayGo is a condition for the records of covered transports that are not held, and the
// arguments with its own; empty when all records may go. The expressions keep the planner
// from the unique key, whose statistics tell how many redeliveries the application skipped.
func (t table) mayGo(held []int64, arguments []any) (condition string, all []any) {
	all = slices.Clone(arguments)
	if t.covered != nil {
		all = append(all, t.covered)
		condition += fmt.Sprintf(` AND ({transport} || '') = ANY ($%d::text[])`, len(all))
	}
	if len(held) > 0 {
		all = append(all, held)
		condition += fmt.Sprintf(` AND {digest} NOT IN (SELECT unnest($%d::bigint[]))`, len(all))
	}
	return condition, all
}

// keepsSome says whether expired records may have to stay.
func (t table) keepsSome() bool { return t.covered != nil || len(t.held.digests) > 0 }

// lookup finds the records that meet the condition and whose ids have one of the digests.
func (t table) lookup(condition string, digests []int64, found *heldRecords, arguments ...any) statement {
	arguments = append(arguments, digests)
	return statement{
		sql: t.sql(fmt.Sprintf(`SELECT coalesce(array_agg({time}), '{}'), coalesce(array_agg({digest}), '{}') FROM {table} WHERE %s AND {digest} IN (SELECT unnest($%d::bigint[]))`,
			condition, len(arguments))),
		arguments: arguments,
		row:       []any{&found.times, &found.digests},
	}
}
