package assessment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/internal/schedule"
)

// drillGates must be True before a drill writes to the table.
var drillGates = []string{v1alpha1.ConditionDatabaseReachable, v1alpha1.ConditionSchemaReady}

// DrillBlocker returns the first condition that forbids a drill, or nil.
func DrillBlocker(conditions []metav1.Condition, generation int64) *metav1.Condition {
	return shutGate(drillGates, conditions, generation)
}

// DrillFacts is what was learned of the drills.
type DrillFacts struct {
	// ScheduleError is why the schedule cannot be followed.
	ScheduleError *schedule.Error
	// Blocker is the condition that forbids a drill.
	Blocker *metav1.Condition
	// JobRejected is why the API server did not take the newest Job.
	JobRejected string
	// Last is the last drill, or nil.
	Last *v1alpha1.DrillStatus
	// Subject is what a drill would be about now; empty when that is not known.
	Subject string
	// NextRun is the next tick.
	NextRun time.Time
}

// ContractProven says what the last drill showed, whether the schedule or a person asked
// for it. It stays Unknown until one ran.
func ContractProven(spec *v1alpha1.MessagingInboxSpec, facts DrillFacts) metav1.Condition {
	const conditionType = v1alpha1.ConditionContractProven
	switch {
	case spec.Drill.Schedule == nil && (facts.Last == nil || facts.Last.LastRun == nil):
		return isUnknown(conditionType, v1alpha1.ReasonNotDeclared,
			"spec.drill.schedule is not declared: the table's behaviour under a redelivery is not drilled.")
	case facts.ScheduleError != nil:
		return isFalse(conditionType, facts.ScheduleError.Reason, "spec.drill.schedule: %s.", facts.ScheduleError.Message)
	case spec.Drill.Schedule != nil && InvalidJob(spec) != "":
		return isUnknown(conditionType, v1alpha1.ReasonInvalidJob, "No drill Job is created, since the API server would refuse it: %s.", InvalidJob(spec))
	case facts.JobRejected != "":
		return isUnknown(conditionType, v1alpha1.ReasonJobRejected, "The drill Job was not accepted: %s", facts.JobRejected)
	case facts.Last == nil || facts.Last.LastRun == nil:
		return awaitingDrill(spec, facts)
	}
	last := facts.Last
	changed := facts.Subject != "" && facts.Subject != last.Subject
	at := last.LastRun.UTC().Format(time.RFC3339)
	switch last.Result {
	case v1alpha1.DrillBroken:
		advice := ""
		if changed && spec.Drill.Schedule == nil {
			advice = " The table or its connections changed since: drill again with kubectl inbox drill."
		}
		return isFalse(conditionType, v1alpha1.ReasonContractBroken, "The drill of %s (Job %s) broke the contract (%s): %s%s", at, last.Job, last.Reason, last.Message, advice)
	case v1alpha1.DrillNotTried:
		return isUnknown(conditionType, v1alpha1.ReasonDrillNotTried, "The drill of %s (Job %s), %s: %s", at, last.Job, last.Reason, last.Message)
	case v1alpha1.DrillFailed:
		return isUnknown(conditionType, v1alpha1.ReasonRunFailed, "The drill of %s (Job %s) failed: %s", at, last.Job, last.Message)
	}
	switch {
	case changed && spec.Drill.Schedule == nil:
		return isUnknown(conditionType, v1alpha1.ReasonNotDeclared, "The table or its connections changed since the drill of %s, which proved the contract. "+
			"Drill again with kubectl inbox drill, or declare spec.drill.schedule.", at)
	case changed:
		return isUnknown(conditionType, v1alpha1.ReasonAwaitingRun, "The table or its connections changed since the drill of %s, which proved the contract; a new drill is due.", at)
	}
	return isTrue(conditionType, v1alpha1.ReasonProven, "Drilled on the real table at %s (Job %s): %s%s", at, last.Job, last.Message, lockWait(last))
}

func awaitingDrill(spec *v1alpha1.MessagingInboxSpec, facts DrillFacts) metav1.Condition {
	const conditionType = v1alpha1.ConditionContractProven
	switch {
	case spec.Suspend:
		return isUnknown(conditionType, v1alpha1.ReasonSuspended, "spec.suspend is true: no drill is made.")
	case facts.Blocker != nil:
		return isUnknown(conditionType, v1alpha1.ReasonAwaitingRun, "No drill ran yet, and none starts while %s is %s (%s).", facts.Blocker.Type, facts.Blocker.Status, facts.Blocker.Reason)
	default:
		return isUnknown(conditionType, v1alpha1.ReasonAwaitingRun, "No drill has ended yet; the schedule is %s (%s).", *spec.Drill.Schedule, spec.Pruning.TimeZone)
	}
}

func lockWait(last *v1alpha1.DrillStatus) string {
	if last.LockWait == nil {
		return ""
	}
	return fmt.Sprintf(" The second of two workers waited %s for the first.", last.LockWait.Duration)
}

// DrillSubject is a digest of all that a drill is about: the table's shape, and the
// Secrets of the connections. A drill says nothing of another subject.
func DrillSubject(spec *v1alpha1.MessagingInboxSpec, observed dbschema.Observed) (string, error) {
	indexes := make([]dbschema.Index, 0, len(observed.Indexes))
	for _, index := range observed.Indexes {
		if !index.BeingBuilt {
			index.Definition = "" // it is empty while somebody holds a lock
			indexes = append(indexes, index)
		}
	}
	document, err := json.Marshal(struct {
		Contract    dbschema.Contract
		OID         uint32
		Kind        dbschema.Kind
		Persistence dbschema.Persistence
		Columns     []dbschema.Column
		Indexes     []dbschema.Index
		Triggers    []string
		Rules       []string
		Inbox       v1alpha1.SecretKeyReference
		Handlers    []v1alpha1.SecretKeyReference
	}{
		Contract(spec), observed.OID, observed.Kind, observed.Persistence, observed.Columns, indexes, observed.Triggers, observed.Rules,
		spec.Database.URLSecretRef, spec.Database.HandlerURLSecretRefs,
	})
	if err != nil {
		return "", fmt.Errorf("describing the subject of a drill: %w", err)
	}
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:16]), nil
}
