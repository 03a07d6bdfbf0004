// Package inspection looks at a database for the controller and the command line
// alike, and leaves the judgement to internal/assessment.
package inspection

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
)

// Querier is a connection or a pool.
type Querier interface {
	database.Querier
	dbschema.Querier
}

// Server says why a connection cannot be used, or nil: an old server, a replica.
func Server(ctx context.Context, q database.Querier) *database.Failure {
	facts, err := database.ReadFacts(ctx, q)
	if err == nil {
		err = facts.Check()
	}
	return failureOf(err)
}

// Schema compares the table with the contract.
func Schema(ctx context.Context, q Querier, spec *v1alpha1.MessagingInboxSpec) assessment.SchemaFacts {
	contract := assessment.Contract(spec)
	observed, err := dbschema.Inspect(ctx, q, contract)
	if err != nil {
		return assessment.SchemaFacts{Failure: failureOf(err)}
	}
	facts := assessment.SchemaFacts{Observed: observed, Verdict: dbschema.Compare(contract, observed)}
	if facts.Verdict.Met() {
		facts.Failure = missingPrivileges(ctx, q, spec)
	}
	return facts
}

// missingPrivileges names what the connection's role lacks on a table that keeps the
// contract. Pruning asks for DELETE, unless another role prunes.
func missingPrivileges(ctx context.Context, q database.Querier, spec *v1alpha1.MessagingInboxSpec) *database.Failure {
	wanted := []string{"SELECT"}
	if spec.Database.PruningURLSecretRef == nil {
		wanted = append(wanted, "DELETE")
	}
	missing, err := database.MissingPrivileges(ctx, q, string(spec.Database.Schema), string(spec.Table.Name), wanted...)
	if errors.Is(err, database.ErrNotFound) {
		return nil // dropped a moment ago; the next look finds out
	}
	if err != nil {
		return failureOf(err)
	}
	if len(missing) == 0 {
		return nil
	}
	return &database.Failure{
		Class:  database.WaitingOnUser,
		Reason: database.ReasonPermissionDenied,
		Message: fmt.Sprintf("The role lacks %s on %s.%s. Run as the table's owner: %s. It is found out within a minute.",
			strings.Join(missing, " and "), spec.Database.Schema, spec.Table.Name, grants(ctx, q, spec, missing)),
	}
}

// grants are the statements that give the connection's role what it lacks.
func grants(ctx context.Context, q database.Querier, spec *v1alpha1.MessagingInboxSpec, missing []string) string {
	role := "..." // a server that does not say who we are was asked a moment ago and did
	if facts, err := database.ReadFacts(ctx, q); err == nil {
		role = pgx.Identifier{facts.User}.Sanitize()
	}
	var statements, onTable []string
	for _, privilege := range missing {
		if privilege == "USAGE" {
			statements = append(statements, fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", pgx.Identifier{string(spec.Database.Schema)}.Sanitize(), role))
			continue
		}
		onTable = append(onTable, privilege)
	}
	if len(onTable) > 0 {
		statements = append(statements, fmt.Sprintf("GRANT %s ON %s TO %s", strings.Join(onTable, ", "),
			pgx.Identifier{string(spec.Database.Schema), string(spec.Table.Name)}.Sanitize(), role))
	}
	return strings.Join(statements, "; ")
}

func failureOf(err error) *database.Failure {
	if err == nil {
		return nil
	}
	failure := dbschema.Classify(err)
	return &failure
}
