//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

func TestAPodDrillsTheContractOnTheRealTable(t *testing.T) {
	t.Parallel()
	const drilled = safe + `drill: {schedule: '@daily'}
database: {urlSecretRef: {name: database}, handlerURLSecretRefs: [{name: database}]}
pruning: {suspend: %s}`
	made := newTeam(t)
	made.apply(t, strings.Replace(drilled, "%s", "true", 1))

	proven := made.awaitCondition(t, v1alpha1.ConditionContractProven, metav1.ConditionTrue, v1alpha1.ReasonProven)
	drill := proven.Status.Drill
	if drill.Result != v1alpha1.DrillProven || len(drill.Checks) != 14 {
		t.Errorf("the drill is %+v", drill)
	}
	if drill.LockWait == nil || drill.LockWait.Duration < 50*time.Millisecond {
		t.Errorf("lockWait = %v; the first worker holds on for 50ms", drill.LockWait)
	}
	made.awaitCondition(t, v1alpha1.ConditionTransactionShared, metav1.ConditionTrue, v1alpha1.ReasonSharedTransaction)
	if left := made.count(t, "SELECT count(*) FROM messenger_inbox"); left != 0 {
		t.Errorf("the drill left %d records", left)
	}

	// A rule that a look at the table's shape lets pass.
	made.execute(t, "CREATE RULE swallow AS ON INSERT TO messenger_inbox DO INSTEAD NOTHING")
	made.apply(t, strings.Replace(drilled, "%s", "false", 1)) // the next look, which comes by itself with the recheck
	broken := made.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonContractBroken)
	if message := broken.Status.Drill.Message; !strings.Contains(message, `rule "swallow"`) {
		t.Errorf("the drill says %q, which does not name the rule", message)
	}
}
