package dbschema

import (
	"context"
	_ "embed" // inspect.sql
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Querier is what Inspect needs of a connection; *pgx.Conn, *pgxpool.Pool and pgx.Tx
// have it.
type Querier interface {
	QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
	Begin(ctx context.Context) (pgx.Tx, error)
}

//go:embed inspect.sql
var inspectSQL string

// duplicateCountLimit bounds the one query of Inspect that reads the table itself.
const duplicateCountLimit = 5 * time.Second

// queryCanceled is the SQLSTATE after statement_timeout, among others.
const queryCanceled = "57014"

// Inspect reads what the catalogue says of the contract's table, in one query that
// changes nothing, takes no lock that a writer would notice, and needs no privilege on
// the table. Only a table that has the three columns and lacks the unique key is read
// itself, for at most five seconds, to count its duplicates.
//
// Errors are those of Contract.Validate and of PostgreSQL, wrapped.
func Inspect(ctx context.Context, q Querier, c Contract) (Observed, error) {
	return inspect(ctx, q, c, duplicateCountLimit)
}

func inspect(ctx context.Context, q Querier, c Contract, countLimit time.Duration) (Observed, error) {
	if err := c.Validate(); err != nil {
		return Observed{}, err
	}
	var document []byte
	err := q.QueryRow(ctx, inspectSQL, c.Schema, c.Table, c.TimestampIndexName(), c.UniqueIndexName(), c.timeZone()).Scan(&document)
	if err != nil {
		return Observed{}, fmt.Errorf("inspect table %s: %w", c.qualifiedTable(), err)
	}
	var o Observed
	if err = json.Unmarshal(document, &o); err != nil {
		return Observed{}, fmt.Errorf("read the description of table %s: %w", c.qualifiedTable(), err)
	}
	if !wantsDuplicateCount(c, o) {
		return o, nil
	}
	o.Duplicates, err = countDuplicates(ctx, q, c, countLimit)
	return o, err
}

// wantsDuplicateCount says whether only duplicates decide what becomes of the table.
func wantsDuplicateCount(c Contract, o Observed) bool {
	if o.Kind != KindTable || queueColumns(o) != nil || anyBlocking(compareColumns(c, o)) {
		return false
	}
	if _, found := o.UniqueKey(c); found {
		return false
	}
	_, building := wantedUniqueIndex(c, o).building(c, o)
	return !building
}

func countDuplicates(ctx context.Context, q Querier, c Contract, limit time.Duration) (*DuplicateCount, error) {
	count := &DuplicateCount{Limit: limit}
	err := pgx.BeginFunc(ctx, q, func(tx pgx.Tx) error {
		// A lock in the way is told from a table that is too large to count.
		const bound = "SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true)"
		if _, err := tx.Exec(ctx, bound, milliseconds(limit), milliseconds(min(limit, defaultLockTimeout))); err != nil {
			return err
		}
		return tx.QueryRow(ctx, fmt.Sprintf("SELECT count(*), coalesce(sum(n), 0)::bigint FROM ("+
			"SELECT count(*) AS n FROM %s GROUP BY %s, %s HAVING count(*) > 1) AS repeated",
			c.qualifiedTable(), quote(c.Transport), quote(c.MessageID))).Scan(&count.Groups, &count.Rows)
	})
	if hasCode(err, queryCanceled) && ctx.Err() == nil {
		return &DuplicateCount{TimedOut: true, Limit: limit}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("count the duplicates in table %s: %w", c.qualifiedTable(), err)
	}
	return count, nil
}

func hasCode(err error, codes ...string) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return false
	}
	for _, code := range codes {
		if pgErr.Code == code {
			return true
		}
	}
	return false
}

// milliseconds formats a timeout for PostgreSQL, in which 0 would be none at all.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%d", max(d.Milliseconds(), 1))
}
