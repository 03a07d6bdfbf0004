package assessment

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/businesskeys"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/samedatabase"
)

func mustBe(t *testing.T, condition metav1.Condition, status metav1.ConditionStatus, reason string, says ...string) {
	t.Helper()
	if condition.Status != status || condition.Reason != reason {
		t.Errorf("%s = %s (%s), want %s (%s): %s", condition.Type, condition.Status, condition.Reason, status, reason, condition.Message)
	}
	for _, text := range says {
		if !strings.Contains(condition.Message, text) {
			t.Errorf("%s does not say %q: %s", condition.Type, text, condition.Message)
		}
	}
}

func TestTransactionShared(t *testing.T) {
	spec := declared(t, "transports: [{name: a, type: amqp}]")
	mustBe(t, TransactionShared(spec, nil), metav1.ConditionUnknown, v1alpha1.ReasonNotDeclared)
	spec.Database.HandlerURLSecretRefs = []v1alpha1.SecretKeyReference{{Name: "first", Key: "url"}, {Name: "second", Key: "dsn"}}

	shared := HandlerFacts{Secret: spec.Database.HandlerURLSecretRefs[0], Verdict: samedatabase.Verdict{Shared: true, Reason: samedatabase.ReasonShared, Message: "the same"}}
	second := func(failure *database.Failure, verdict samedatabase.Verdict) []HandlerFacts {
		return []HandlerFacts{shared, {Secret: spec.Database.HandlerURLSecretRefs[1], Failure: failure, Verdict: verdict}}
	}
	for name, test := range map[string]struct {
		facts  []HandlerFacts
		status metav1.ConditionStatus
		reason string
		says   []string
	}{
		"nobody looked":             {nil, metav1.ConditionUnknown, v1alpha1.ReasonNotInspected, nil},
		"all shared":                {[]HandlerFacts{shared, shared}, metav1.ConditionTrue, v1alpha1.ReasonSharedTransaction, []string{"All 2"}},
		"one that has to be warned": {second(nil, samedatabase.Verdict{Shared: true, Message: "not in the search_path"}), metav1.ConditionTrue, v1alpha1.ReasonSharedTransaction, []string{"Secret second", "search_path"}},
		"one elsewhere":             {second(nil, samedatabase.Verdict{Reason: samedatabase.ReasonClone, Message: "a copy"}), metav1.ConditionFalse, v1alpha1.ReasonClone, []string{"handlerURLSecretRefs[1]", "Secret second, key dsn", "a copy"}},
		"one out of reach":          {second(&database.Failure{Class: database.Transient, Reason: v1alpha1.ReasonUnreachable, Message: "down"}, samedatabase.Verdict{}), metav1.ConditionUnknown, v1alpha1.ReasonUnreachable, []string{"Secret second", "down"}},
		"one without a Secret":      {second(&database.Failure{Class: database.WaitingOnUser, Reason: v1alpha1.ReasonSecretNotFound, Message: "gone"}, samedatabase.Verdict{}), metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, []string{"gone"}},
		"no table yet":              {second(nil, samedatabase.Verdict{Reason: samedatabase.ReasonTableMissing}), metav1.ConditionUnknown, v1alpha1.ReasonNotInspected, nil},
		"elsewhere before out of reach": {[]HandlerFacts{
			{Failure: &database.Failure{Class: database.Transient, Reason: v1alpha1.ReasonUnreachable}}, {Verdict: samedatabase.Verdict{Reason: samedatabase.ReasonReplica}},
		}, metav1.ConditionFalse, v1alpha1.ReasonReplica, nil},
	} {
		t.Run(name, func(t *testing.T) {
			mustBe(t, TransactionShared(spec, test.facts), test.status, test.reason, test.says...)
		})
	}
}

func TestTheReasonsOfTransactionSharedAreThoseOfTheAPI(t *testing.T) {
	for ours, theirs := range map[string]string{
		samedatabase.ReasonShared: v1alpha1.ReasonSharedTransaction, samedatabase.ReasonReplica: v1alpha1.ReasonReplica, samedatabase.ReasonReadOnly: v1alpha1.ReasonReadOnly,
		samedatabase.ReasonOtherServer: v1alpha1.ReasonOtherServer, samedatabase.ReasonOtherDatabase: v1alpha1.ReasonOtherDatabase,
		samedatabase.ReasonClone: v1alpha1.ReasonClone, samedatabase.ReasonOtherTable: v1alpha1.ReasonOtherTable, samedatabase.ReasonTableMissing: v1alpha1.ReasonTableMissing,
	} {
		if ours != theirs {
			t.Errorf("%s is not %s", ours, theirs)
		}
	}
}

func TestBusinessKeysEnforced(t *testing.T) {
	mustBe(t, BusinessKeysEnforced(declared(t, "transports: [{name: a, type: amqp}]"), BusinessKeyFacts{}), metav1.ConditionUnknown, v1alpha1.ReasonNotDeclared)
	spec := declared(t, "businessKeys: [{table: payments, columns: [attempt, tenant]}, {table: refunds, columns: [id]}]\n  transports: [{name: a, type: amqp}]")
	if keys := BusinessKeys(spec); len(keys) != 2 || keys[0].Schema != "public" || keys[0].Table != "payments" || !slices.Equal(keys[0].Columns, []string{"attempt", "tenant"}) {
		t.Errorf("the keys are %+v", keys)
	}
	enforced := businesskeys.Finding{Enforced: true, Index: "payments_key"}
	for name, test := range map[string]struct {
		facts  BusinessKeyFacts
		status metav1.ConditionStatus
		reason string
		says   []string
	}{
		"nobody looked": {BusinessKeyFacts{}, metav1.ConditionUnknown, v1alpha1.ReasonNotInspected, nil},
		"an error":      {BusinessKeyFacts{Inspected: true, Failure: &database.Failure{Reason: v1alpha1.ReasonStatementTimeout, Message: "slow"}}, metav1.ConditionUnknown, v1alpha1.ReasonStatementTimeout, []string{"slow"}},
		"all enforced":  {BusinessKeyFacts{Inspected: true, Findings: []businesskeys.Finding{enforced, enforced}}, metav1.ConditionTrue, v1alpha1.ReasonKeysEnforced, []string{"all 2", "payments_key"}},
		"one missing, with the statement": {BusinessKeyFacts{Inspected: true, Findings: []businesskeys.Finding{enforced, {Missing: "no index", SQL: "CREATE UNIQUE INDEX"}}},
			metav1.ConditionFalse, v1alpha1.ReasonBusinessKeyMissing, []string{"1 of 2", "no index", "Run: CREATE UNIQUE INDEX"}},
		"one that a person must mend": {BusinessKeyFacts{Inspected: true, Findings: []businesskeys.Finding{enforced, {Missing: "a view"}}},
			metav1.ConditionFalse, v1alpha1.ReasonBusinessKeyMissing, []string{"a view"}},
	} {
		t.Run(name, func(t *testing.T) {
			mustBe(t, BusinessKeysEnforced(spec, test.facts), test.status, test.reason, test.says...)
		})
	}
}

func TestFullCoverageCountsOnDemand(t *testing.T) {
	const transports = "transports: [{name: a, type: amqp, batchHandlers: true}]"
	mustBe(t, CoverageComplete(declared(t, transports)), metav1.ConditionFalse, v1alpha1.ReasonNotAllCovered, "a: ")
	mustBe(t, CoverageComplete(declared(t, "requireFullCoverage: true\n  "+transports)), metav1.ConditionFalse, v1alpha1.ReasonFullCoverageRequired, "a: ", "requireFullCoverage")
	mustBe(t, CoverageComplete(declared(t, "requireFullCoverage: true\n  transports: [{name: a, type: amqp}]")), metav1.ConditionTrue, v1alpha1.ReasonAllCovered)
}
