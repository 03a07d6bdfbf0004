package assessment

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/schedule"
)

// pruningGates must all be True before a record is deleted.
var pruningGates = []string{
	v1alpha1.ConditionDatabaseReachable,
	v1alpha1.ConditionSchemaReady,
	v1alpha1.ConditionRetentionSafe,
}

// Blocker returns the first condition that forbids pruning, or nil when all gates are
// True for this generation.
func Blocker(conditions []metav1.Condition, generation int64) *metav1.Condition {
	return shutGate(pruningGates, conditions, generation)
}

func shutGate(gates []string, conditions []metav1.Condition, generation int64) *metav1.Condition {
	for _, gate := range gates {
		found := meta.FindStatusCondition(conditions, gate)
		if found == nil {
			return &metav1.Condition{Type: gate, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotInspected, Message: "It was not assessed."}
		}
		if found.Status != metav1.ConditionTrue || found.ObservedGeneration != generation {
			return found
		}
	}
	return nil
}

// PruningFacts is what was learned of the pruning Jobs.
type PruningFacts struct {
	// ScheduleError is why the schedule cannot be followed.
	ScheduleError *schedule.Error
	// Blocker is the condition that forbids pruning.
	Blocker *metav1.Condition
	// TooShortForOthers says for whom this retention is too short; empty for nobody.
	TooShortForOthers string
	// Elsewhere says that the pruning connection does not reach the inbox's table; empty
	// when it does.
	Elsewhere string
	// Overdue tells of a run that should have ended long ago; empty for none.
	Overdue string
	// JobRejected is why the API server did not take the newest Job.
	JobRejected string
	// LastRun is the newest run that ended.
	LastRun *v1alpha1.PruningRun
	// NextRun is the next tick.
	NextRun time.Time
}

// PruningHealthy says whether expired records are being deleted.
func PruningHealthy(spec *v1alpha1.MessagingInboxSpec, facts PruningFacts) metav1.Condition {
	const conditionType = v1alpha1.ConditionPruningHealthy
	switch {
	case facts.ScheduleError != nil:
		return isFalse(conditionType, facts.ScheduleError.Reason, "spec.pruning: %s.", facts.ScheduleError.Message)
	case InvalidJob(spec) != "":
		return isFalse(conditionType, v1alpha1.ReasonInvalidJob, "No Job is created, since the API server would refuse it: %s.", InvalidJob(spec))
	case spec.Suspend:
		return isUnknown(conditionType, v1alpha1.ReasonSuspended, "spec.suspend is true: nothing is pruned.")
	case spec.Pruning.Suspend:
		return isUnknown(conditionType, v1alpha1.ReasonSuspended, "spec.pruning.suspend is true: nothing is pruned.")
	case facts.Blocker != nil:
		return blocked(facts.Blocker)
	case len(CoveredTransports(spec)) == 0:
		return isUnknown(conditionType, v1alpha1.ReasonNotDeclared, "No transport is declared with an inbox and without batch handlers, so there is nothing that may be pruned.")
	case facts.Elsewhere != "":
		return isFalse(conditionType, v1alpha1.ReasonPruningElsewhere, "No pruning Job is created: spec.database.pruningURLSecretRef: %s", facts.Elsewhere)
	case facts.Overdue != "":
		return isFalse(conditionType, v1alpha1.ReasonRunOverdue, "%s", facts.Overdue)
	case facts.TooShortForOthers != "":
		return isFalse(conditionType, v1alpha1.ReasonTooShortForOthers, "No pruning Job is created: %s", facts.TooShortForOthers)
	case facts.JobRejected != "":
		return isFalse(conditionType, v1alpha1.ReasonJobRejected, "The pruning Job was not accepted: %s", facts.JobRejected)
	case facts.LastRun == nil:
		return isUnknown(conditionType, v1alpha1.ReasonAwaitingRun, "No run has ended yet; the schedule is %s (%s).", spec.Pruning.Schedule, spec.Pruning.TimeZone)
	default:
		return afterRun(*facts.LastRun)
	}
}

// blocked keeps the status Unknown while the database itself is out of reach: whether
// pruning is at fault is then not known.
func blocked(blocker *metav1.Condition) metav1.Condition {
	status := metav1.ConditionFalse
	if blocker.Status == metav1.ConditionUnknown || blocker.Type == v1alpha1.ConditionDatabaseReachable {
		status = metav1.ConditionUnknown
	}
	return condition(v1alpha1.ConditionPruningHealthy, status, v1alpha1.ReasonNotSafe,
		"No pruning Job is created while %s is %s (%s).", blocker.Type, blocker.Status, blocker.Reason)
}

func afterRun(run v1alpha1.PruningRun) metav1.Condition {
	const conditionType = v1alpha1.ConditionPruningHealthy
	deleted := fmt.Sprintf("%d expired records deleted", run.RowsDeleted)
	if run.DryRun {
		deleted = fmt.Sprintf("dry run: %d records are expired, none was deleted", run.RowsDeleted)
	}
	if run.Held != nil && run.HeldSince != nil {
		deleted += fmt.Sprintf("; %d more are kept, the oldest from %s, because their messages still wait in a failure transport or an outbox", *run.Held, run.HeldSince.UTC().Format(time.RFC3339))
	}
	switch run.Result {
	case v1alpha1.RunDone:
		return isTrue(conditionType, v1alpha1.ReasonRunSucceeded, "Job %s: %s.", run.Job, deleted)
	case v1alpha1.RunTimeLimit:
		return isTrue(conditionType, v1alpha1.ReasonWorkLeft, "Job %s: %s, then its time was up; the next run goes on. If this persists, raise spec.pruning.maxDuration or run more often.", run.Job, deleted)
	case v1alpha1.RunRefused:
		return isFalse(conditionType, v1alpha1.ReasonRunRefused, "Job %s refused to prune: %s", run.Job, run.Message)
	default:
		return isFalse(conditionType, v1alpha1.ReasonRunFailed, "Job %s failed: %s", run.Job, run.Message)
	}
}
