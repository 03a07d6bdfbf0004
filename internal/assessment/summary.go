package assessment

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/database"
)

// decisive are the conditions that Ready sums up, the first cause first. The others
// warn: they tell what an inbox cannot do, or what was not looked at.
var decisive = []string{
	v1alpha1.ConditionRetentionSafe,
	v1alpha1.ConditionDatabaseReachable,
	v1alpha1.ConditionSchemaReady,
	v1alpha1.ConditionPruningHealthy,
}

// promises are the conditions that count once they are known to be broken: what the team
// declared turned out not to be so. That it could not be looked at says nothing yet.
var promises = []string{
	v1alpha1.ConditionTransactionShared,
	v1alpha1.ConditionBusinessKeysEnforced,
	v1alpha1.ConditionContractProven,
}

// harmless are the reasons of an Unknown condition that do not keep Ready from True:
// what the user asked for, what is not due yet, and what a check without a database
// cannot know.
var harmless = map[string]bool{
	v1alpha1.ReasonSuspended:    true,
	v1alpha1.ReasonAwaitingRun:  true,
	v1alpha1.ReasonNotInspected: true,
	v1alpha1.ReasonNotDeclared:  true,
	v1alpha1.ReasonPlanPending:  true,
}

// Summarize returns Ready, and Reconciling or Stalled where kstatus asks for one:
// Reconciling while a transient failure is retried or a step is at work, Stalled when
// only a change of the spec or of the database by a person helps.
// The worst class among the failures of the inspection decides between the two.
func Summarize(conditions []metav1.Condition, failures ...*database.Failure) []metav1.Condition {
	cause := firstCause(conditions)
	if cause == nil {
		return []metav1.Condition{isTrue(v1alpha1.ConditionReady, v1alpha1.ReasonAllChecksPassed, "%s", summary(conditions))}
	}
	ready := condition(v1alpha1.ConditionReady, cause.Status, cause.Reason, "%s", cause.Message)
	switch {
	case stalls(*cause, failures):
		return []metav1.Condition{ready, isTrue(v1alpha1.ConditionStalled, cause.Reason, "%s: %s", cause.Type, cause.Message)}
	case retries(*cause, failures):
		return []metav1.Condition{ready, isTrue(v1alpha1.ConditionReconciling, v1alpha1.ReasonProgressing, "%s: %s", cause.Type, cause.Message)}
	default:
		return []metav1.Condition{ready}
	}
}

// firstCause prefers what is wrong to what is not known.
func firstCause(conditions []metav1.Condition) *metav1.Condition {
	var unknown *metav1.Condition
	for _, conditionType := range decisive {
		found := meta.FindStatusCondition(conditions, conditionType)
		switch {
		case found == nil || found.Status == metav1.ConditionTrue:
		case found.Status == metav1.ConditionFalse:
			return found
		case unknown == nil && !harmless[found.Reason]:
			unknown = found
		}
	}
	if broken := brokenPromise(conditions); broken != nil {
		return broken
	}
	return unknown
}

func brokenPromise(conditions []metav1.Condition) *metav1.Condition {
	for _, conditionType := range promises {
		if found := meta.FindStatusCondition(conditions, conditionType); found != nil && found.Status == metav1.ConditionFalse {
			return found
		}
	}
	coverage := meta.FindStatusCondition(conditions, v1alpha1.ConditionCoverageComplete)
	if coverage != nil && coverage.Status == metav1.ConditionFalse && coverage.Reason == v1alpha1.ReasonFullCoverageRequired {
		return coverage
	}
	return nil
}

// needsAPerson are the reasons, beside terminal failures, that only a person mends.
var needsAPerson = map[string]bool{
	v1alpha1.ReasonTooShort:           true,
	v1alpha1.ReasonForeignPurge:       true,
	v1alpha1.ReasonUniqueKeyTooNarrow: true,
	v1alpha1.ReasonUnloggedTable:      true,
	v1alpha1.ReasonReferencedTable:    true,
	v1alpha1.ReasonUnbounded:          true,
	v1alpha1.ReasonRetentionZero:      true,
	v1alpha1.ReasonMaxAgeExceeded:     true,
	v1alpha1.ReasonForeignTable:       true,
	v1alpha1.ReasonNotATable:          true,
	v1alpha1.ReasonColumnMissing:      true,
	v1alpha1.ReasonColumnType:         true,
	v1alpha1.ReasonColumnNullable:     true,
	v1alpha1.ReasonUniqueKeyMissing:   true,
	v1alpha1.ReasonDuplicateRecords:   true,
	v1alpha1.ReasonIndexNameTaken:     true,
	v1alpha1.ReasonInvalidTimeZone:    true,
	v1alpha1.ReasonInvalidSchedule:    true,
	v1alpha1.ReasonInvalidJob:         true,

	v1alpha1.ReasonReplica:              true,
	v1alpha1.ReasonOtherServer:          true,
	v1alpha1.ReasonOtherDatabase:        true,
	v1alpha1.ReasonClone:                true,
	v1alpha1.ReasonOtherTable:           true,
	v1alpha1.ReasonBusinessKeyMissing:   true,
	v1alpha1.ReasonContractBroken:       true,
	v1alpha1.ReasonFullCoverageRequired: true,
}

func stalls(cause metav1.Condition, failures []*database.Failure) bool {
	return needsAPerson[cause.Reason] || hasClass(failures, database.Terminal)
}

func retries(cause metav1.Condition, failures []*database.Failure) bool {
	return cause.Reason == v1alpha1.ReasonApplying || hasClass(failures, database.Transient)
}

func hasClass(failures []*database.Failure, class database.Class) bool {
	for _, failure := range failures {
		if failure != nil && failure.Class == class {
			return true
		}
	}
	return false
}

// summary is the message of Ready=True: the reason why, and what to be aware of.
func summary(conditions []metav1.Condition) string {
	text := "The inbox keeps its contract."
	if retention := meta.FindStatusCondition(conditions, v1alpha1.ConditionRetentionSafe); retention != nil {
		text = retention.Message
	}
	for _, conditionType := range []string{v1alpha1.ConditionPruningHealthy, v1alpha1.ConditionCoverageComplete} {
		found := meta.FindStatusCondition(conditions, conditionType)
		if found != nil && (found.Status == metav1.ConditionFalse || found.Reason == v1alpha1.ReasonSuspended || found.Reason == v1alpha1.ReasonTableGrows) {
			text += fmt.Sprintf(" %s", found.Message)
		}
	}
	if reachable := meta.FindStatusCondition(conditions, v1alpha1.ConditionDatabaseReachable); reachable != nil && reachable.Reason == v1alpha1.ReasonNotInspected {
		text += " This is about the manifest alone: the database was not looked at."
	}
	return text
}

// Concerns are the conditions that a person has something to do about, what is wrong
// before what is not known, each in the order in which a person reads them. They include
// the warnings that leave Ready True. What only repeats its cause is left out.
func Concerns(conditions []metav1.Condition) []metav1.Condition {
	var wrong, unknown []metav1.Condition
	for _, conditionType := range order {
		found := meta.FindStatusCondition(conditions, conditionType)
		switch {
		case found == nil || sums[conditionType] || found.Reason == v1alpha1.ReasonNotSafe:
		case found.Status == metav1.ConditionFalse:
			wrong = append(wrong, *found)
		case found.Status == metav1.ConditionUnknown && !harmless[found.Reason]:
			unknown = append(unknown, *found)
		}
	}
	return append(wrong, unknown...)
}

// sums are the conditions that only sum up others.
var sums = map[string]bool{v1alpha1.ConditionReady: true, v1alpha1.ConditionStalled: true, v1alpha1.ConditionReconciling: true}

// order is that in which a person reads the conditions: the sum, then the causes.
var order = append([]string{
	v1alpha1.ConditionReady,
	v1alpha1.ConditionStalled,
	v1alpha1.ConditionReconciling,
}, append(slices.Clone(decisive),
	v1alpha1.ConditionCoverageComplete,
	v1alpha1.ConditionTransactionShared,
	v1alpha1.ConditionBusinessKeysEnforced,
	v1alpha1.ConditionContractProven,
	v1alpha1.ConditionTransportsObserved,
)...)

// Sort puts the conditions in the order in which a person reads them.
func Sort(conditions []metav1.Condition) {
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int {
		return cmp.Compare(slices.Index(order, a.Type), slices.Index(order, b.Type))
	})
}
