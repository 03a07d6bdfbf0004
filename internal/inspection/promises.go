package inspection

import (
	"context"
	"errors"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/businesskeys"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/samedatabase"
)

// Handler compares one connection of the handlers with the inbox's. It is opened for this
// and closed again.
func Handler(ctx context.Context, inbox samedatabase.Beginner, handler *database.Config, spec *v1alpha1.MessagingInboxSpec) (samedatabase.Verdict, *database.Failure) {
	connection, err := handler.Connect(ctx, database.Limits{})
	if err != nil {
		return samedatabase.Verdict{}, failureOf(err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }() // nothing was written
	verdict, err := samedatabase.Compare(ctx, inbox, connection, string(spec.Database.Schema), string(spec.Table.Name))
	if errors.Is(err, samedatabase.ErrNoAnswer) {
		return samedatabase.Verdict{}, &database.Failure{Class: database.Transient, Reason: v1alpha1.ReasonNoAnswer,
			Message: "the connection opens and then does not answer; behind a pooler that also serves the inbox, its pool needs two server connections"}
	}
	return verdict, failureOf(err)
}

// BusinessKeys looks for the unique indexes of the declared business keys.
func BusinessKeys(ctx context.Context, q database.Querier, spec *v1alpha1.MessagingInboxSpec) assessment.BusinessKeyFacts {
	findings, err := businesskeys.Check(ctx, q, assessment.BusinessKeys(spec))
	return assessment.BusinessKeyFacts{Inspected: true, Failure: failureOf(err), Findings: findings}
}
