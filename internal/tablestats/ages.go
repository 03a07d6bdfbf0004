package tablestats

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
)

// Ages are the times of the earliest and the latest record.
type Ages struct {
	// Known is false when nothing cheap can tell the earliest record: no btree index on
	// the timestamp, or a record at infinity.
	Known bool
	// Oldest and Newest are nil when the table is empty, and when they are not known.
	Oldest, Newest *time.Time
}

// Measure reads both ends of the timestamp index. Without a btree index it would read
// the whole table, so it then reports nothing. A timestamp without time zone is read
// in the contract's zone. Errors are PostgreSQL's, wrapped.
func Measure(ctx context.Context, q database.Querier, contract dbschema.Contract, observed dbschema.Observed) (Ages, error) {
	column, found := observed.Column(contract.ProcessedAt)
	if index, indexed := observed.TimestampIndex(contract); !found || !indexed || index.Method != "btree" {
		return Ages{}, nil
	}
	toInstant, arguments := "%s", []any{}
	if column.WithoutTimeZone() {
		toInstant, arguments = "%s AT TIME ZONE $1", []any{contract.TimeZone}
	}
	query := fmt.Sprintf(
		"SELECT coalesce(isfinite(low), true), CASE WHEN isfinite(low) THEN "+toInstant+" END, CASE WHEN isfinite(high) THEN "+toInstant+" END FROM (SELECT min(%[3]s) AS low, max(%[3]s) AS high FROM %[4]s) AS ends",
		"low", "high", pgx.Identifier{contract.ProcessedAt}.Sanitize(), pgx.Identifier{contract.Schema, contract.Table}.Sanitize())
	var ages Ages
	if err := q.QueryRow(ctx, query, arguments...).Scan(&ages.Known, &ages.Oldest, &ages.Newest); err != nil {
		return Ages{}, fmt.Errorf("reading the ages of %s.%s: %w", contract.Schema, contract.Table, err)
	}
	return ages, nil
}
