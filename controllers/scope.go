package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/internal/tablestats"
)

// scope carries one resource through the phases of one reconcile.
type scope struct {
	before *v1alpha1.MessagingInbox
	inbox  *v1alpha1.MessagingInbox
	now    time.Time

	requirement redelivery.Requirement
	database    assessment.DatabaseFacts
	handlers    []assessment.HandlerFacts
	pruning     assessment.PruningFacts
	drill       assessment.DrillFacts
	config      *database.Config
	pool        *pgxpool.Pool
	// declared is RetentionSafe by what is declared and what the transports were seen to be.
	declared metav1.Condition
	// look is this reconcile's measurement of the table; nil: none was possible.
	look *tablestats.Sample
	// history is what all looks at the table tell; nil: nothing yet.
	history *tablestats.History

	observations assessment.Observations
}

func newScope(inbox *v1alpha1.MessagingInbox, now time.Time) *scope {
	return &scope{before: inbox.DeepCopy(), inbox: inbox, now: now}
}

func (s *scope) status() *v1alpha1.MessagingInboxStatus { return &s.inbox.Status }

// set records conditions for the generation that was reconciled. The transition time
// moves only when the status does.
func (s *scope) set(conditions ...metav1.Condition) {
	for _, condition := range conditions {
		condition.ObservedGeneration = s.inbox.Generation
		condition.LastTransitionTime = metav1.NewTime(s.now)
		meta.SetStatusCondition(&s.status().Conditions, condition)
	}
}

// retentionSafe judges the declared retention, and whether records live that long.
func (s *scope) retentionSafe() metav1.Condition {
	return assessment.WatchRetention(s.declared, &s.inbox.Spec, s.history)
}

// summarize sets Ready. Reconciling and Stalled are present only while they are True,
// as kstatus expects.
func (s *scope) summarize() {
	s.status().ObservedGeneration = s.inbox.Generation
	summary := assessment.Summarize(s.status().Conditions, s.failures()...)
	for _, conditionType := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if meta.FindStatusCondition(summary, conditionType) == nil {
			meta.RemoveStatusCondition(&s.status().Conditions, conditionType)
		}
	}
	s.set(summary...)
	assessment.Sort(s.status().Conditions)
}

func (s *scope) failures() []*database.Failure {
	return []*database.Failure{s.database.Connection, s.database.Schema.Failure, s.database.Schema.ApplyFailure}
}

// transientError makes the work queue retry with backoff. What waits on a person is no
// error: it is looked at again when the Secret changes, and slowly besides.
func (s *scope) transientError() error {
	for _, failure := range s.failures() {
		if failure != nil && failure.Class == database.Transient {
			return errors.New(failure.Message)
		}
	}
	return nil
}

func (s *scope) waitsOnPerson() bool {
	return !meta.IsStatusConditionTrue(s.status().Conditions, v1alpha1.ConditionReady) || s.drill.JobRejected != "" ||
		slices.ContainsFunc(s.handlers, func(handler assessment.HandlerFacts) bool { return handler.Failure != nil })
}

// patchStatus writes the status when it differs, and tells of the transitions.
func (r *Reconciler) patchStatus(ctx context.Context, s *scope) error {
	if equality.Semantic.DeepEqual(s.before.Status, s.inbox.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, s.inbox, client.MergeFrom(s.before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of %s: %w", client.ObjectKeyFromObject(s.inbox), err)
	}
	r.recordTransitions(s)
	return nil
}

// announced are the conditions whose transitions are events.
var announced = []string{
	v1alpha1.ConditionReady,
	v1alpha1.ConditionDatabaseReachable,
	v1alpha1.ConditionSchemaReady,
	v1alpha1.ConditionRetentionSafe,
	v1alpha1.ConditionCoverageComplete,
	v1alpha1.ConditionTransactionShared,
	v1alpha1.ConditionBusinessKeysEnforced,
	v1alpha1.ConditionContractProven,
	v1alpha1.ConditionTransportsObserved,
	v1alpha1.ConditionPruningHealthy,
}

// maxNote is the API's limit of an event's note, in bytes.
const maxNote = 1024

func (r *Reconciler) recordTransitions(s *scope) {
	for _, conditionType := range announced {
		before := meta.FindStatusCondition(s.before.Status.Conditions, conditionType)
		after := meta.FindStatusCondition(s.inbox.Status.Conditions, conditionType)
		if after == nil || after.Status == metav1.ConditionUnknown || (before != nil && before.Status == after.Status && before.Reason == after.Reason) {
			continue
		}
		severity := corev1.EventTypeNormal
		if after.Status == metav1.ConditionFalse {
			severity = corev1.EventTypeWarning
		}
		note := fmt.Sprintf("%s: %s", after.Type, after.Message)
		r.Events.Eventf(s.inbox, nil, severity, after.Reason, "Assess", "%s", note[:min(len(note), maxNote)])
	}
}
