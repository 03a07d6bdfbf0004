package assessment

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

func TestPruningHealthyTellsOfTheLastRun(t *testing.T) {
	spec := declared(t, "transports: [{name: orders, type: amqp}]")
	held, none := int64(3), int64(0)
	since := &metav1.Time{Time: time.Date(2020, 2, 2, 2, 2, 2, 0, time.UTC)}
	for name, test := range map[string]struct {
		run    v1alpha1.PruningRun
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"done":              {v1alpha1.PruningRun{Result: v1alpha1.RunDone, RowsDeleted: 5}, metav1.ConditionTrue, v1alpha1.ReasonRunSucceeded, "Job a: 5 expired records deleted."},
		"with none held":    {v1alpha1.PruningRun{Result: v1alpha1.RunDone, RowsDeleted: 5, Held: &none}, metav1.ConditionTrue, v1alpha1.ReasonRunSucceeded, "Job a: 5 expired records deleted."},
		"a dry run":         {v1alpha1.PruningRun{Result: v1alpha1.RunDone, RowsDeleted: 5, DryRun: true}, metav1.ConditionTrue, v1alpha1.ReasonRunSucceeded, "5 records are expired, none was deleted"},
		"with proofs held":  {v1alpha1.PruningRun{Result: v1alpha1.RunDone, RowsDeleted: 5, Held: &held, HeldSince: since}, metav1.ConditionTrue, v1alpha1.ReasonRunSucceeded, "5 expired records deleted; 3 more are kept, the oldest from 2020-02-02T02:02:02Z, because their messages still wait"},
		"with work left":    {v1alpha1.PruningRun{Result: v1alpha1.RunTimeLimit, RowsDeleted: 5}, metav1.ConditionTrue, v1alpha1.ReasonWorkLeft, "raise spec.pruning.maxDuration"},
		"refused":           {v1alpha1.PruningRun{Result: v1alpha1.RunRefused, Message: "too many wait"}, metav1.ConditionFalse, v1alpha1.ReasonRunRefused, "Job a refused to prune: too many wait"},
		"failed":            {v1alpha1.PruningRun{Result: v1alpha1.RunFailed, Message: "redis is down"}, metav1.ConditionFalse, v1alpha1.ReasonRunFailed, "Job a failed: redis is down"},
		"of another result": {v1alpha1.PruningRun{Message: "of tomorrow"}, metav1.ConditionFalse, v1alpha1.ReasonRunFailed, "of tomorrow"},
	} {
		t.Run(name, func(t *testing.T) {
			test.run.Job = "a"
			mustBe(t, PruningHealthy(spec, PruningFacts{LastRun: &test.run}), test.status, test.reason, test.says)
		})
	}
}
