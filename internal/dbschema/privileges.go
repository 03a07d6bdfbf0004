package dbschema

import (
	"context"
	"fmt"
	"strings"
)

// CreatePrivileges returns the privileges that the connection's role lacks to make the
// table or, when it exists, to add an index to it. Empty: none.
func CreatePrivileges(ctx context.Context, q Querier, c Contract) (missing []string, err error) {
	lacking, err := lookUpPrivileges(ctx, q, c)
	if err != nil || lacking == nil {
		return nil, err
	}
	return lacking.Missing, nil
}

func requirePrivileges(ctx context.Context, q Querier, c Contract) error {
	lacking, err := lookUpPrivileges(ctx, q, c)
	if err != nil {
		return err
	}
	if lacking != nil {
		return lacking
	}
	return nil
}

// lookUpPrivileges returns nil when none is missing. PostgreSQL asks for CREATE on the
// schema for a table as for an index, and for the table's ownership for an index.
func lookUpPrivileges(ctx context.Context, q Querier, c Contract) (*PrivilegeError, error) {
	var role, owner string
	var usage, create, owns bool
	err := q.QueryRow(ctx, `SELECT current_user, has_schema_privilege(n.oid, 'USAGE'), has_schema_privilege(n.oid, 'CREATE'),
		coalesce(pg_get_userbyid(t.relowner), ''), coalesce(pg_has_role(t.relowner, 'USAGE'), true)
		FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_class t ON t.relnamespace = n.oid AND t.relname = $2::name
		WHERE n.nspname = $1::name`, c.Schema, c.Table).Scan(&role, &usage, &create, &owner, &owns)
	if err != nil {
		return nil, fmt.Errorf("look up the privileges on schema %s and table %s: %w", quote(c.Schema), c.qualifiedTable(), err)
	}
	lacking := &PrivilegeError{Table: c.qualifiedTable(), Role: role}
	var grants []string
	for _, privilege := range []struct {
		name string
		held bool
	}{{"USAGE", usage}, {"CREATE", create}} {
		if !privilege.held {
			lacking.Missing = append(lacking.Missing, fmt.Sprintf("%s on schema %s", privilege.name, quote(c.Schema)))
			grants = append(grants, fmt.Sprintf("GRANT %s ON SCHEMA %s TO %s;", privilege.name, quote(c.Schema), quote(role)))
		}
	}
	if !owns {
		lacking.Missing = append(lacking.Missing, fmt.Sprintf("ownership of table %s, which role %s has", c.qualifiedTable(), quote(owner)))
		grants = append(grants, fmt.Sprintf("GRANT %s TO %s;", quote(owner), quote(role)))
	}
	if len(grants) == 0 {
		return nil, nil // nothing is missing
	}
	lacking.SQL = strings.Join(grants, " ")
	return lacking, nil
}
