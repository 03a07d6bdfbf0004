package assessment

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/database"
)

// allGood are the conditions of a resource that has pruned.
func allGood() []metav1.Condition {
	return []metav1.Condition{
		isTrue(v1alpha1.ConditionRetentionSafe, v1alpha1.ReasonCoversWindow, "covers."),
		isTrue(v1alpha1.ConditionDatabaseReachable, v1alpha1.ReasonConnected, "connected."),
		isTrue(v1alpha1.ConditionSchemaReady, v1alpha1.ReasonContractMet, "met."),
		isTrue(v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonRunSucceeded, "pruned."),
		isTrue(v1alpha1.ConditionCoverageComplete, v1alpha1.ReasonAllCovered, "covered."),
	}
}

func TestReadySumsUp(t *testing.T) {
	transient := &database.Failure{Class: database.Transient, Reason: v1alpha1.ReasonUnreachable}
	waiting := &database.Failure{Class: database.WaitingOnUser, Reason: v1alpha1.ReasonSecretNotFound}
	terminal := &database.Failure{Class: database.Terminal, Reason: v1alpha1.ReasonUnsupportedServer}
	for name, test := range map[string]struct {
		changed []metav1.Condition
		failure *database.Failure
		ready   metav1.ConditionStatus
		reason  string
		beside  string
	}{
		"all is well":                                  {nil, nil, metav1.ConditionTrue, v1alpha1.ReasonAllChecksPassed, ""},
		"a transient failure is reconciling":           {[]metav1.Condition{isFalse(v1alpha1.ConditionDatabaseReachable, v1alpha1.ReasonUnreachable, "")}, transient, metav1.ConditionFalse, v1alpha1.ReasonUnreachable, v1alpha1.ConditionReconciling},
		"a missing Secret is neither":                  {[]metav1.Condition{isFalse(v1alpha1.ConditionDatabaseReachable, v1alpha1.ReasonSecretNotFound, "")}, waiting, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, ""},
		"an old server is stalled":                     {[]metav1.Condition{isFalse(v1alpha1.ConditionDatabaseReachable, v1alpha1.ReasonUnsupportedServer, "")}, terminal, metav1.ConditionFalse, v1alpha1.ReasonUnsupportedServer, v1alpha1.ConditionStalled},
		"a short retention is stalled":                 {[]metav1.Condition{isFalse(v1alpha1.ConditionRetentionSafe, v1alpha1.ReasonTooShort, "")}, nil, metav1.ConditionFalse, v1alpha1.ReasonTooShort, v1alpha1.ConditionStalled},
		"a foreign table is stalled":                   {[]metav1.Condition{isFalse(v1alpha1.ConditionSchemaReady, v1alpha1.ReasonForeignTable, "")}, nil, metav1.ConditionFalse, v1alpha1.ReasonForeignTable, v1alpha1.ConditionStalled},
		"a plan that awaits approval is neither":       {[]metav1.Condition{isFalse(v1alpha1.ConditionSchemaReady, v1alpha1.ReasonPlanApproval, "")}, nil, metav1.ConditionFalse, v1alpha1.ReasonPlanApproval, ""},
		"a Job that builds an index is reconciling":    {[]metav1.Condition{isFalse(v1alpha1.ConditionSchemaReady, v1alpha1.ReasonApplying, "")}, nil, metav1.ConditionFalse, v1alpha1.ReasonApplying, v1alpha1.ConditionReconciling},
		"the retention comes before the database":      {[]metav1.Condition{isFalse(v1alpha1.ConditionDatabaseReachable, v1alpha1.ReasonSecretNotFound, ""), isFalse(v1alpha1.ConditionRetentionSafe, v1alpha1.ReasonUnbounded, "")}, waiting, metav1.ConditionFalse, v1alpha1.ReasonUnbounded, v1alpha1.ConditionStalled},
		"what is wrong comes before what is not known": {[]metav1.Condition{isUnknown(v1alpha1.ConditionDatabaseReachable, v1alpha1.ReasonUnexpectedError, ""), isFalse(v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonRunFailed, "")}, nil, metav1.ConditionFalse, v1alpha1.ReasonRunFailed, ""},
		"what is not known keeps it unknown":           {[]metav1.Condition{isUnknown(v1alpha1.ConditionSchemaReady, v1alpha1.ReasonUnexpectedError, "")}, nil, metav1.ConditionUnknown, v1alpha1.ReasonUnexpectedError, ""},
		"what the user suspended does no harm":         {[]metav1.Condition{isUnknown(v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonSuspended, "")}, nil, metav1.ConditionTrue, v1alpha1.ReasonAllChecksPassed, ""},
		"a run that is not due yet does no harm":       {[]metav1.Condition{isUnknown(v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonAwaitingRun, "")}, nil, metav1.ConditionTrue, v1alpha1.ReasonAllChecksPassed, ""},
		"a gap in the coverage counts on demand":       {[]metav1.Condition{isFalse(v1alpha1.ConditionCoverageComplete, v1alpha1.ReasonFullCoverageRequired, "")}, nil, metav1.ConditionFalse, v1alpha1.ReasonFullCoverageRequired, v1alpha1.ConditionStalled},
		"handlers in another database":                 {[]metav1.Condition{isFalse(v1alpha1.ConditionTransactionShared, v1alpha1.ReasonOtherDatabase, "")}, nil, metav1.ConditionFalse, v1alpha1.ReasonOtherDatabase, v1alpha1.ConditionStalled},
		"a handler's Secret that is missing":           {[]metav1.Condition{isFalse(v1alpha1.ConditionTransactionShared, v1alpha1.ReasonSecretNotFound, "")}, nil, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, ""},
		"a handler's database out of reach":            {[]metav1.Condition{isUnknown(v1alpha1.ConditionTransactionShared, v1alpha1.ReasonUnreachable, "")}, nil, metav1.ConditionTrue, v1alpha1.ReasonAllChecksPassed, ""},
		"a business key without an index":              {[]metav1.Condition{isFalse(v1alpha1.ConditionBusinessKeysEnforced, v1alpha1.ReasonBusinessKeyMissing, "")}, nil, metav1.ConditionFalse, v1alpha1.ReasonBusinessKeyMissing, v1alpha1.ConditionStalled},
		"a contract that a drill broke":                {[]metav1.Condition{isFalse(v1alpha1.ConditionContractProven, v1alpha1.ReasonContractBroken, "")}, nil, metav1.ConditionFalse, v1alpha1.ReasonContractBroken, v1alpha1.ConditionStalled},
		"a drill that could not be tried":              {[]metav1.Condition{isUnknown(v1alpha1.ConditionContractProven, v1alpha1.ReasonDrillNotTried, "")}, nil, metav1.ConditionTrue, v1alpha1.ReasonAllChecksPassed, ""},
		"a gap in the coverage only warns":             {[]metav1.Condition{isFalse(v1alpha1.ConditionCoverageComplete, v1alpha1.ReasonNotAllCovered, "")}, nil, metav1.ConditionTrue, v1alpha1.ReasonAllChecksPassed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conditions := allGood()
			for _, condition := range test.changed {
				meta.SetStatusCondition(&conditions, condition)
			}
			summary := Summarize(conditions, test.failure)
			ready := meta.FindStatusCondition(summary, v1alpha1.ConditionReady)
			if ready.Status != test.ready || ready.Reason != test.reason {
				t.Errorf("Ready = %s (%s), want %s (%s)", ready.Status, ready.Reason, test.ready, test.reason)
			}
			for _, beside := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
				if got, want := meta.IsStatusConditionTrue(summary, beside), beside == test.beside; got != want {
					t.Errorf("%s = %t, want %t", beside, got, want)
				}
			}
		})
	}
}

func TestReadyWarnsOfWhatTheInboxDoesNotProtect(t *testing.T) {
	conditions := allGood()
	meta.SetStatusCondition(&conditions, isFalse(v1alpha1.ConditionCoverageComplete, v1alpha1.ReasonNotAllCovered, "Not protected by the inbox: reports."))
	if ready := Summarize(conditions)[0]; !strings.Contains(ready.Message, "Not protected by the inbox: reports.") {
		t.Errorf("Ready says %q", ready.Message)
	}
}

func TestEveryGateForbidsPruningByItself(t *testing.T) {
	const generation = 7
	open := allGood()
	for i := range open {
		open[i].ObservedGeneration = generation
	}
	if blocker := Blocker(open, generation); blocker != nil {
		t.Errorf("blocked by %s although all gates are open", blocker.Type)
	}
	for _, gate := range []string{v1alpha1.ConditionDatabaseReachable, v1alpha1.ConditionSchemaReady, v1alpha1.ConditionRetentionSafe} {
		for name, shut := range map[string]func(*metav1.Condition){
			"False":                    func(c *metav1.Condition) { c.Status = metav1.ConditionFalse },
			"Unknown":                  func(c *metav1.Condition) { c.Status = metav1.ConditionUnknown },
			"of an earlier generation": func(c *metav1.Condition) { c.ObservedGeneration = generation - 1 },
		} {
			conditions := append([]metav1.Condition{}, open...)
			shut(meta.FindStatusCondition(conditions, gate))
			if blocker := Blocker(conditions, generation); blocker == nil || blocker.Type != gate {
				t.Errorf("%s %s: blocked by %v", gate, name, blocker)
			}
		}
		conditions := append([]metav1.Condition{}, open...)
		meta.RemoveStatusCondition(&conditions, gate)
		if blocker := Blocker(conditions, generation); blocker == nil || blocker.Type != gate {
			t.Errorf("%s missing: blocked by %v", gate, blocker)
		}
	}
}

func TestConcernsAreWhatAPersonHasToDo(t *testing.T) {
	conditions := append(allGood(),
		isUnknown(v1alpha1.ConditionTransportsObserved, v1alpha1.ReasonNotDeclared, "nowhere to look."),
		isUnknown(v1alpha1.ConditionContractProven, v1alpha1.ReasonNotDeclared, "no schedule."),
		isUnknown(v1alpha1.ConditionTransactionShared, v1alpha1.ReasonUnreachable, "no answer."))
	for _, changed := range []metav1.Condition{
		isFalse(v1alpha1.ConditionReady, v1alpha1.ReasonTooShort, "too short."),
		isFalse(v1alpha1.ConditionRetentionSafe, v1alpha1.ReasonTooShort, "too short."),
		isFalse(v1alpha1.ConditionPruningHealthy, v1alpha1.ReasonNotSafe, "not safe."),
		isFalse(v1alpha1.ConditionCoverageComplete, v1alpha1.ReasonNotAllCovered, "a gap."),
	} {
		meta.SetStatusCondition(&conditions, changed)
	}
	var concerns []string
	for _, concern := range Concerns(conditions) {
		concerns = append(concerns, concern.Type)
	}
	want := "RetentionSafe CoverageComplete TransactionShared"
	if got := strings.Join(concerns, " "); got != want {
		t.Errorf("the concerns are %s; want %s", got, want)
	}
	if concerns := Concerns(allGood()); len(concerns) != 0 {
		t.Errorf("nothing is wrong, yet the concerns are %v", concerns)
	}
}
