// Package tablestats measures how old the records of the inbox table are.
package tablestats

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
)

// Ages are the times of the earliest and the latest record; nil when the table has
// none, or one at infinity.
type Ages struct {
	Oldest, Newest *time.Time
}

// Measure reads both ends of the timestamp index. Without such an index it would read
// the whole table, so it then reports nothing. A timestamp without time zone is read
// in the contract's zone. Errors are PostgreSQL's, wrapped.
func Measure(ctx context.Context, q database.Querier, contract dbschema.Contract, observed dbschema.Observed) (Ages, error) {
	column, found := observed.Column(contract.ProcessedAt)
	if _, indexed := observed.TimestampIndex(contract); !found || !indexed {
		return Ages{}, nil
	}
	toInstant, arguments := "%s", []any{}
	if column.WithoutTimeZone() {
		toInstant, arguments = "%s AT TIME ZONE $1", []any{contract.TimeZone}
	}
	query := fmt.Sprintf(
		"SELECT CASE WHEN isfinite(low) THEN "+toInstant+" END, CASE WHEN isfinite(high) THEN "+toInstant+" END FROM (SELECT min(%[3]s) AS low, max(%[3]s) AS high FROM %[4]s) AS ends",
		"low", "high", pgx.Identifier{contract.ProcessedAt}.Sanitize(), pgx.Identifier{contract.Schema, contract.Table}.Sanitize())
	var ages Ages
	if err := q.QueryRow(ctx, query, arguments...).Scan(&ages.Oldest, &ages.Newest); err != nil {
		return Ages{}, fmt.Errorf("reading the ages of %s.%s: %w", contract.Schema, contract.Table, err)
	}
	return ages, nil
}
