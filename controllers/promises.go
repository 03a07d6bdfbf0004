package controllers

import (
	"context"
	"time"

	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/inspection"
)

// reconcilePromises checks what the team declared of its application: that the handlers
// write in the inbox's own database, and that business keys are unique there. Both only
// read, and cost nothing when nothing is declared.
func (r *Reconciler) reconcilePromises(ctx context.Context, s *scope) {
	spec := &s.inbox.Spec
	var keys assessment.BusinessKeyFacts
	if s.pool != nil {
		s.handlers = r.compareHandlers(ctx, s)
		if len(spec.BusinessKeys) > 0 {
			keys = inspection.BusinessKeys(ctx, s.pool, spec)
		}
	}
	s.set(assessment.TransactionShared(spec, s.handlers), assessment.BusinessKeysEnforced(spec, keys))
}

// handlersTimeLimit bounds the look through all connections of the handlers: what a
// silent one takes is missing to the phases after it.
const handlersTimeLimit = 30 * time.Second

func (r *Reconciler) compareHandlers(ctx context.Context, s *scope) []assessment.HandlerFacts {
	ctx, cancel := context.WithTimeout(ctx, handlersTimeLimit)
	defer cancel()
	references := s.inbox.Spec.Database.HandlerURLSecretRefs
	facts := make([]assessment.HandlerFacts, 0, len(references))
	for _, reference := range references {
		fact := assessment.HandlerFacts{Secret: reference}
		config, failure := r.databaseConfig(ctx, s.inbox, reference)
		if failure == nil {
			fact.Verdict, failure = inspection.Handler(ctx, s.pool, config, &s.inbox.Spec)
		}
		fact.Failure = failure
		facts = append(facts, fact)
	}
	return facts
}
