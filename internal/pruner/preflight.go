package pruner

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
)

// lockClass is the first half of the advisory lock's key; the table's oid is the second.
const lockClass = 0x70727565 // "prue"

// preflight checks in the database whether the run may start, and returns the table. An
// error of type *refusal says why not.
func preflight(ctx context.Context, conn *pgx.Conn, o Options) (table, error) {
	facts, err := database.ReadFacts(ctx, conn)
	if err != nil {
		return table{}, fmt.Errorf("ask the server what it is: %w", err)
	}
	if err = facts.Check(); err != nil {
		return table{}, &refusal{reason: database.Classify(err).Reason, message: err.Error()}
	}
	observed, err := dbschema.Inspect(ctx, conn, o.Contract)
	if err != nil {
		return table{}, err
	}
	for _, finding := range dbschema.Compare(o.Contract, observed).Findings {
		if finding.Blocking {
			return table{}, &refusal{reason: finding.Reason, message: finding.Message}
		}
	}
	t := newTable(o.Contract, observed, facts.VersionNum)
	t.covered = o.Transports
	missing, err := database.MissingPrivileges(ctx, conn, o.Contract.Schema, o.Contract.Table, "SELECT", "DELETE")
	if err != nil {
		return table{}, err
	}
	if len(missing) > 0 {
		return table{}, refuse(database.ReasonPermissionDenied, "the role %s lacks %s on %s, which pruning needs. Run: GRANT USAGE ON SCHEMA %s TO %[1]s; GRANT SELECT, DELETE ON %[3]s TO %[1]s",
			pgx.Identifier{facts.User}.Sanitize(), strings.Join(missing, " and "), t.name, pgx.Identifier{o.Contract.Schema}.Sanitize())
	}
	if o.MaxReplicaLag > 0 {
		return t, checkReplicasVisible(ctx, conn, facts.User)
	}
	return t, nil
}

// takeLock makes this the only run at the table. It returns how to give the lock back.
// Behind a pooler no lock can be held for a whole run. That is safe: two runs delete the same expired records, and no others.
func takeLock(ctx context.Context, db *session, t table) (unlock func(context.Context) error, err error) {
	if db.pooled {
		return func(context.Context) error { return nil }, nil
	}
	var taken bool
	// An oid is unsigned, the key is not: the same bits will do.
	key := int32(t.oid) // #nosec G115 -- every oid still has a key of its own
	if err := db.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1::int, $2::int)`, int32(lockClass), key).Scan(&taken); err != nil {
		return nil, fmt.Errorf("take the lock of the run: %w", err)
	}
	if !taken {
		return nil, refuse(ReasonAlreadyRunning, "another run prunes %s at this moment; this one is not needed", t.name)
	}
	return func(ctx context.Context) error {
		_, err := db.conn.Exec(ctx, `SELECT pg_advisory_unlock($1::int, $2::int)`, int32(lockClass), key)
		return err
	}, nil
}
