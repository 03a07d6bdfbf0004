// Package businesskeys finds out whether PostgreSQL itself refuses to do one piece of
// business twice. An inbox tells messages apart, not payments: a producer that sends two
// messages for one payment is stopped only by a unique index over the payment's own key.
package businesskeys

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
)

// Key is a declared business key.
type Key struct {
	// Schema of the table.
	Schema string
	// Table of the key.
	Table string
	// Columns of the key, in any order.
	Columns []string
}

// Table is what the catalogue says of a key's table.
type Table struct {
	// Kind is pg_class.relkind; empty when nothing has the name.
	Kind string `json:"kind"`
	// Inherited says that other tables inherit from it; they share no index with it.
	Inherited bool `json:"inherited"`
	// Columns by name; true when the column is NOT NULL.
	Columns map[string]bool `json:"columns"`
	// Indexes that are unique.
	Indexes []Index `json:"indexes"`
	// NullsNotDistinct says that the server knows NULLS NOT DISTINCT (PostgreSQL 15).
	NullsNotDistinct bool `json:"nullsNotDistinct"`
}

// Index is one unique index.
type Index struct {
	// Name of the index.
	Name string `json:"name"`
	// Columns of its key, without those that are only included. An expression is the
	// empty string.
	Columns []string `json:"columns"`
	// Valid indexes are complete.
	Valid bool `json:"valid"`
	// Ready indexes are kept up to date by writers.
	Ready bool `json:"ready"`
	// Immediate is false when the check may be put off to the commit.
	Immediate bool `json:"immediate"`
	// Partial indexes have a WHERE clause.
	Partial bool `json:"partial"`
	// NullsNotDistinct indexes refuse a second NULL.
	NullsNotDistinct bool `json:"nullsNotDistinct"`
}

// inspectSQL reads one table; $1 is its schema and $2 its name.
const inspectSQL = `WITH relation AS (
	SELECT c.oid, c.relkind FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = $1::text AND c.relname = $2::text
)
SELECT json_build_object(
	'kind', coalesce((SELECT relkind::text FROM relation), ''),
	'inherited', EXISTS (SELECT FROM pg_catalog.pg_inherits i JOIN relation r ON r.oid = i.inhparent WHERE r.relkind = 'r'),
	'nullsNotDistinct', current_setting('server_version_num')::int >= 150000,
	'columns', coalesce((SELECT json_object_agg(a.attname, a.attnotnull) FROM pg_catalog.pg_attribute a JOIN relation r ON a.attrelid = r.oid
		WHERE a.attnum > 0 AND NOT a.attisdropped), '{}'),
	'indexes', coalesce((SELECT json_agg(json_build_object(
			'name', c.relname,
			'columns', (SELECT json_agg(coalesce(a.attname, '') ORDER BY k.position)
				FROM unnest(i.indkey) WITH ORDINALITY k(attnum, position)
				LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum <> 0
				WHERE k.position <= i.indnkeyatts),
			'valid', i.indisvalid,
			'ready', i.indisready AND i.indislive,
			'immediate', i.indimmediate,
			'partial', i.indpred IS NOT NULL,
			'nullsNotDistinct', coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)
		) ORDER BY c.relname)
		FROM pg_catalog.pg_index i JOIN relation r ON i.indrelid = r.oid JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		WHERE i.indisunique), '[]')
)`

// Check reads the catalogue and judges each key. It needs no privilege on the tables. The
// error is PostgreSQL's, wrapped.
func Check(ctx context.Context, q database.Querier, keys []Key) ([]Finding, error) {
	findings := make([]Finding, 0, len(keys))
	for _, key := range keys {
		var document []byte
		if err := q.QueryRow(ctx, inspectSQL, key.Schema, key.Table).Scan(&document); err != nil {
			return nil, fmt.Errorf("inspect table %s: %w", key.table(), err)
		}
		var table Table
		if err := json.Unmarshal(document, &table); err != nil {
			return nil, fmt.Errorf("read the description of table %s: %w", key.table(), err)
		}
		findings = append(findings, Judge(key, table))
	}
	return findings, nil
}

func (k Key) table() string { return pgx.Identifier{k.Schema, k.Table}.Sanitize() }
