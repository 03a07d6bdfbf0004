package controllers

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/internal/inspection"
)

// inlineBuildLimit is the size in bytes of the largest table whose indexes are built
// within a reconcile. A larger one is indexed by a Job, which may take its time.
const inlineBuildLimit = 256 << 20

// inlineBuildTimeout bounds such a build, which waits for the transactions that were
// open before it. What an interrupted build leaves is cleaned up by the next one.
const inlineBuildTimeout = time.Minute

// reconcileSchema compares the table with the contract, and applies the plan where the
// policy allows it.
func (r *Reconciler) reconcileSchema(ctx context.Context, s *scope) {
	if s.pool != nil {
		s.database.Schema = r.observeAndApply(ctx, s)
		s.status().Schema = assessment.SchemaStatus(s.database.Schema, s.status().Schema)
		s.status().Schema.TableID = assessment.TableID(s.pool.Config().ConnConfig.Database, assessment.Contract(&s.inbox.Spec), s.database.Schema.Observed)
	}
	s.set(assessment.SchemaReady(&s.inbox.Spec, s.database))
}

func (r *Reconciler) observeAndApply(ctx context.Context, s *scope) assessment.SchemaFacts {
	facts := inspection.Schema(ctx, s.pool, &s.inbox.Spec)
	if err := r.stopOutdatedMigrations(ctx, s, facts.Verdict); err != nil {
		facts.ApplyFailure = &database.Failure{Class: database.Transient, Reason: v1alpha1.ReasonUnexpectedError, Message: err.Error()}
		return facts
	}
	if facts.Failure != nil || !assessment.MayApply(&s.inbox.Spec, facts.Verdict) {
		return facts
	}
	if facts.Observed.Bytes > inlineBuildLimit {
		facts.Building, facts.ApplyFailure = r.migrateInJob(ctx, s, facts.Verdict.Plan)
		return facts
	}
	if failure := r.apply(ctx, s, facts.Verdict.Plan); failure != nil {
		facts.ApplyFailure = failure
		return facts
	}
	return inspection.Schema(ctx, s.pool, &s.inbox.Spec)
}

// stopOutdatedMigrations removes the Jobs at work whose plan may no longer be applied: the
// resource is suspended, its policy changed, or the table calls for another plan.
func (r *Reconciler) stopOutdatedMigrations(ctx context.Context, s *scope, verdict dbschema.Verdict) error {
	jobs, err := jobsOf(ctx, r.Client, s.inbox, purposeMigrate)
	if err != nil {
		return err
	}
	wanted := ""
	if assessment.MayApply(&s.inbox.Spec, verdict) {
		wanted = migrationJob(s.inbox, r.Image, verdict.Plan).Name
	}
	for i := range jobs {
		// A plan that is empty is done: the Job that did it ends by itself.
		if finished(&jobs[i]) || jobs[i].Name == wanted || (verdict.Plan.Empty() && !s.inbox.Spec.Suspend) {
			continue
		}
		if err := r.removeJob(ctx, &jobs[i]); err != nil {
			return err
		}
	}
	return nil
}

// apply runs the plan on a connection of its own: the migration role's, and one
// session from the advisory lock to the last step.
func (r *Reconciler) apply(ctx context.Context, s *scope, plan dbschema.Plan) *database.Failure {
	config, failure := r.databaseConfig(ctx, s.inbox, secretOr(s.inbox.Spec.Database.MigrationURLSecretRef, s.inbox.Spec.Database.URLSecretRef))
	if failure != nil {
		return failure
	}
	if s.inbox.Spec.Database.MigrationURLSecretRef != nil {
		if problem := r.elsewhere(ctx, s, config); problem != "" {
			return &database.Failure{Class: database.WaitingOnUser, Reason: v1alpha1.ReasonMigratesElsewhere, Message: "spec.database.migrationURLSecretRef: " + problem}
		}
	}
	connection, err := config.Connect(ctx, database.Limits{})
	if err != nil {
		return classified(err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }() // nothing depends on a clean goodbye
	if _, err := dbschema.Apply(ctx, connection, assessment.Contract(&s.inbox.Spec), plan.Digest(), dbschema.ApplyOptions{BuildTimeout: inlineBuildTimeout}); err != nil {
		return classified(err)
	}
	return nil
}

// migrateInJob says how far the Job is, and creates it when there is none. A Job that
// failed is removed after ten minutes by its time to live, and then tried again.
func (r *Reconciler) migrateInJob(ctx context.Context, s *scope, plan dbschema.Plan) (string, *database.Failure) {
	if problem := assessment.InvalidJob(&s.inbox.Spec); problem != "" {
		return "", &database.Failure{Class: database.Terminal, Reason: v1alpha1.ReasonInvalidJob,
			Message: fmt.Sprintf("No migration Job is created, since the API server would refuse it: %s.", problem)}
	}
	job := migrationJob(s.inbox, r.Image, plan)
	err := r.Client.Create(ctx, job)
	switch {
	case err == nil:
		return fmt.Sprintf("Job %s builds the indexes: the table is larger than %d MiB.", job.Name, inlineBuildLimit>>20), nil
	case client.IgnoreAlreadyExists(err) != nil:
		return "", &database.Failure{Class: database.Transient, Reason: v1alpha1.ReasonJobRejected,
			Message: fmt.Sprintf("The migration Job was not accepted: %v", err)}
	}
	if err = r.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
		return fmt.Sprintf("Job %s builds the indexes.", job.Name), nil // created a moment ago, not yet in the cache
	}
	if message, failed := failureOf(job); failed {
		return "", &database.Failure{Class: database.WaitingOnUser, Reason: v1alpha1.ReasonMigrationFailed,
			Message: fmt.Sprintf("Job %s failed: %s. It is tried again ten minutes after it ended; its log has the cause.", job.Name, message)}
	}
	progress, err := dbschema.IndexBuildProgress(ctx, s.pool, assessment.Contract(&s.inbox.Spec))
	if err != nil || progress == nil {
		return fmt.Sprintf("Job %s builds the indexes.", job.Name), nil
	}
	return fmt.Sprintf("Job %s builds the indexes: %s, %d of %d blocks.", job.Name, progress.Phase, progress.BlocksDone, progress.BlocksTotal), nil
}
