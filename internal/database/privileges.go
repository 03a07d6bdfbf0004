package database

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrNotFound says that a schema or a table does not exist.
var ErrNotFound = errors.New("does not exist")

// MissingPrivileges returns those of the wanted privileges on a table (SELECT, INSERT,
// DELETE, ...) that the current role lacks, in the order asked for, after USAGE when it
// lacks that on the schema. A privilege on some columns only counts as missing. A schema or
// table that does not exist is ErrNotFound.
func MissingPrivileges(ctx context.Context, q Querier, schema, table string, wanted ...string) ([]string, error) {
	var usage, exists bool
	var missing []string
	if wanted == nil {
		wanted = []string{}
	}
	// By oid: a name would be looked up in the search path, and needs USAGE.
	err := q.QueryRow(ctx, `SELECT has_schema_privilege(n.oid, 'USAGE'), c.oid IS NOT NULL,
			ARRAY(SELECT privilege FROM unnest($3::text[]) WITH ORDINALITY AS w(privilege, position)
				WHERE NOT has_table_privilege(c.oid, privilege) ORDER BY position)
		FROM pg_catalog.pg_namespace n
		LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
		WHERE n.nspname = $1`, schema, table, wanted).Scan(&usage, &exists, &missing)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("schema %s %w", pgx.Identifier{schema}.Sanitize(), ErrNotFound)
	case err != nil:
		return nil, err
	case !exists:
		return nil, fmt.Errorf("table %s %w", pgx.Identifier{schema, table}.Sanitize(), ErrNotFound)
	case !usage:
		return append([]string{"USAGE"}, missing...), nil
	}
	return missing, nil
}
