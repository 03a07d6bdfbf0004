package assessment

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/internal/manifest"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// declared is the spec of a manifest, with the CRD's defaults.
func declared(t *testing.T, spec string) *v1alpha1.MessagingInboxSpec {
	t.Helper()
	inboxes, err := manifest.Parse("test", []byte("apiVersion: messaginginbox.dev/v1alpha1\nkind: MessagingInbox\nmetadata: {name: orders}\nspec:\n  database: {urlSecretRef: {name: database}}\n  "+spec))
	if err != nil {
		t.Fatal(err)
	}
	return &inboxes[0].Spec
}

func TestTheDefaultsOfTheCRDCountAsDefaults(t *testing.T) {
	spec := declared(t, "transports: [{name: orders, type: amqp}]")
	if spec.Redelivery != defaultRedelivery {
		t.Errorf("the CRD's defaults are %+v, ours %+v", spec.Redelivery, defaultRedelivery)
	}
	for _, term := range Requirement(spec).Windows[0].Terms {
		if term.Origin != redelivery.OriginDefault {
			t.Errorf("%s comes from %s", term.Name, term.Origin)
		}
	}
}

func TestEveryDeclaredFieldReachesTheWindow(t *testing.T) {
	const base = "transports: [{name: a, type: %s, redelivery: {%s}}]"
	for _, test := range []struct{ transportType, field, other string }{
		{"amqp", "window: 200h", "window: 300h"},
		{"doctrine", "redeliverTimeout: 2h", "redeliverTimeout: 3h"},
		{"doctrine", "checkDelayedInterval: 2h", "checkDelayedInterval: 3h"},
		{"redis", "claimInterval: 2m", "claimInterval: 3m"},
		{"redis", "maxPending: 200", "maxPending: 300"},
		{"redis", "maxHandlerTime: 2m", "maxHandlerTime: 3m"},
		{"amqp", "consumerTimeout: 3h", "consumerTimeout: 4h"},
		{"amqp", "heartbeat: 3h", "heartbeat: 4h"},
		{"amqp", "maxWorkerHang: 3h", "maxWorkerHang: 4h"},
		{"sqs", "visibilityTimeout: 1h", "visibilityTimeout: 2h"},
		{"beanstalkd", "ttr: 1h", "ttr: 2h"},
		{"amqp", "lostAcks: 2", "lostAcks: 3"},
		{"amqp", "maxDowntime: 30h", "maxDowntime: 40h"},
		{"amqp", "replayWindow: 30h", "replayWindow: 40h"},
		{"amqp", "retryStrategy: {maxRetries: 5}", "retryStrategy: {maxRetries: 6}"},
		{"amqp", "retryStrategy: {delay: 5s}", "retryStrategy: {delay: 6s}"},
		{"amqp", "retryStrategy: {multiplier: 3}", `retryStrategy: {multiplier: "3.5"}`},
		{"amqp", `retryStrategy: {jitter: "0.2"}`, `retryStrategy: {jitter: "0.25"}`},
		{"amqp", "retryStrategy: {maxDelay: 1s}", "retryStrategy: {maxDelay: 2s}"},
		{"amqp", "retryStrategy: {service: x, maxTotal: 1h}", "retryStrategy: {service: x, maxTotal: 2h}"},
	} {
		smaller := Requirement(declared(t, fmt.Sprintf(base, test.transportType, test.field)))
		larger := Requirement(declared(t, fmt.Sprintf(base, test.transportType, test.other)))
		if smaller.Required >= larger.Required {
			t.Errorf("%s with %s needs %s, with %s %s", test.transportType, test.field, smaller.Required, test.other, larger.Required)
		}
	}
	failed := declared(t, "transports: [{name: a, type: amqp, failureTransport: f}, {name: f, type: amqp, redelivery: {maxAge: 336h}}]")
	if required := Requirement(failed).Required; required < 336*time.Hour {
		t.Errorf("with a failure queue of 336h the requirement is %s", required)
	}
}

func TestRetentionStatusShowsTheComparison(t *testing.T) {
	spec := declared(t, "retention: {period: 200h, applicationPeriod: 100h}\n  transports: [{name: a, type: custom, redelivery: {window: 90h30m}}]")
	requirement := Requirement(spec)
	status := RetentionStatus(spec, requirement)
	for name, pair := range map[string][2]time.Duration{
		"required":           {status.Required.Duration, 90*time.Hour + 30*time.Minute},
		"requiredWithMargin": {status.RequiredWithMargin.Duration, 99*time.Hour + 33*time.Minute},
		"recommended":        {status.Recommended.Duration, 100 * time.Hour},
		"effective":          {status.Effective.Duration, 100 * time.Hour},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s = %s, want %s", name, pair[0], pair[1])
		}
	}
	if condition := RetentionSafe(spec, requirement); condition.Status != metav1.ConditionTrue {
		t.Errorf("RetentionSafe = %s (%s) %s", condition.Status, condition.Reason, condition.Message)
	}
	unbounded := RetentionStatus(spec, redelivery.Requirement{Deciding: "a"})
	if unbounded.Required != nil || unbounded.RequiredWithMargin != nil || unbounded.Recommended != nil {
		t.Errorf("an unbounded requirement has durations: %+v", unbounded)
	}
}

func TestAWindowBeyondTheClockIsUnbounded(t *testing.T) {
	spec := declared(t, "retention: {period: 2562047h}\n  transports: [{name: a, type: custom, redelivery: {window: 2562000h}}]")
	condition := RetentionSafe(spec, Requirement(spec))
	if condition.Status != metav1.ConditionFalse || condition.Reason != v1alpha1.ReasonUnbounded {
		t.Errorf("RetentionSafe = %s (%s) %s", condition.Status, condition.Reason, condition.Message)
	}
}

func TestADeclaredWindowThatIsTooShortIsDoubted(t *testing.T) {
	spec := declared(t, "transports: [{name: a, type: amqp, redelivery: {window: 1m}}]")
	condition := RetentionSafe(spec, Requirement(spec))
	if condition.Status != metav1.ConditionTrue || !strings.Contains(condition.Message, "a declares a window of 1m, but its broker and its retries alone take up to 2h0m8.8s") {
		t.Errorf("RetentionSafe = %s: %s", condition.Status, condition.Message)
	}
}

func TestCoverageNamesWhatTheInboxDoesNotProtect(t *testing.T) {
	for name, test := range map[string]struct {
		transports string
		status     metav1.ConditionStatus
		says       string
	}{
		"all recorded":                       {"[{name: a, type: amqp}]", metav1.ConditionTrue, ""},
		"batch handlers":                     {"[{name: a, type: amqp, batchHandlers: true}]", metav1.ConditionFalse, "a: Symfony does not record messages of batch handlers"},
		"inbox off":                          {"[{name: a, type: amqp, inbox: false}]", metav1.ConditionFalse, "a: inbox is false"},
		"inbox off where nothing comes back": {"[{name: a, type: sync, inbox: false}]", metav1.ConditionTrue, ""},
		"inbox off behind an outbox":         {"[{name: a, type: sync, inbox: false, outbox: o}, {name: o, type: doctrine, inbox: false}]", metav1.ConditionFalse, "a: inbox is false"},
		"an outbox and a failure transport":  {"[{name: a, type: amqp, outbox: o, failureTransport: f}, {name: o, type: doctrine, inbox: false}, {name: f, type: doctrine, inbox: false, redelivery: {maxAge: 1h}}]", metav1.ConditionTrue, ""},
	} {
		t.Run(name, func(t *testing.T) {
			condition := CoverageComplete(declared(t, "transports: "+test.transports))
			if condition.Status != test.status || !strings.Contains(condition.Message, test.says) {
				t.Errorf("CoverageComplete = %s: %s", condition.Status, condition.Message)
			}
		})
	}
}

func TestSchemaReady(t *testing.T) {
	met := SchemaFacts{}
	missing := dbschema.Verdict{
		Findings: []dbschema.Finding{{Reason: v1alpha1.ReasonTableMissing, Message: "the table is missing.", Blocking: true}},
		Plan:     dbschema.Plan{Steps: []dbschema.Step{{Description: "create it", SQL: "CREATE"}}},
	}
	wished := dbschema.Verdict{
		Findings: []dbschema.Finding{{Reason: "TimestampIndexMissing", Message: "the index is missing."}},
		Plan:     dbschema.Plan{Steps: []dbschema.Step{{Description: "index it", SQL: "CREATE INDEX"}}},
	}
	locked := &database.Failure{Reason: v1alpha1.ReasonLockTimeout, Message: "locked."}
	for name, test := range map[string]struct {
		facts  DatabaseFacts
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"nobody looked":                   {DatabaseFacts{}, metav1.ConditionUnknown, v1alpha1.ReasonNotInspected, ""},
		"no connection":                   {DatabaseFacts{Inspected: true, Connection: locked}, metav1.ConditionUnknown, v1alpha1.ReasonNotInspected, ""},
		"all is well":                     {DatabaseFacts{Inspected: true, Schema: met}, metav1.ConditionTrue, v1alpha1.ReasonContractMet, "public.messenger_inbox keeps the contract."},
		"the inspection failed":           {DatabaseFacts{Inspected: true, Schema: SchemaFacts{Failure: locked}}, metav1.ConditionFalse, v1alpha1.ReasonLockTimeout, "locked."},
		"the table could not be made":     {DatabaseFacts{Inspected: true, Schema: SchemaFacts{Verdict: missing, ApplyFailure: locked}}, metav1.ConditionFalse, v1alpha1.ReasonLockTimeout, "Planned: create it."},
		"a wished-for index is not there": {DatabaseFacts{Inspected: true, Schema: SchemaFacts{Verdict: wished, ApplyFailure: locked}}, metav1.ConditionTrue, v1alpha1.ReasonContractMet, "the index is missing. Planned: index it. It failed: locked."},
		"a Job is at it":                  {DatabaseFacts{Inspected: true, Schema: SchemaFacts{Verdict: missing, Building: "Job x builds."}}, metav1.ConditionFalse, v1alpha1.ReasonApplying, "Job x builds."},
		"a step is left":                  {DatabaseFacts{Inspected: true, Schema: SchemaFacts{Verdict: missing}}, metav1.ConditionFalse, v1alpha1.ReasonTableMissing, "the table is missing. Planned: create it."},
	} {
		t.Run(name, func(t *testing.T) {
			condition := SchemaReady(declared(t, "transports: [{name: a, type: amqp}]"), test.facts)
			if condition.Status != test.status || condition.Reason != test.reason || !strings.Contains(condition.Message, test.says) {
				t.Errorf("SchemaReady = %s (%s) %s", condition.Status, condition.Reason, condition.Message)
			}
		})
	}
	facts := DatabaseFacts{Inspected: true, Schema: SchemaFacts{Verdict: missing}}
	if check := SchemaBeforeApply(declared(t, "transports: [{name: a, type: amqp}]"), facts); check.Reason != v1alpha1.ReasonPlanPending {
		t.Errorf("a check of a plan that will be applied says %s (%s)", check.Status, check.Reason)
	}
	if check := SchemaBeforeApply(declared(t, "schema: {policy: Observe}\n  transports: [{name: a, type: amqp}]"), facts); check.Reason != v1alpha1.ReasonTableMissing {
		t.Errorf("a check of a plan that nobody will apply says %s (%s)", check.Status, check.Reason)
	}
}

func TestHumanDurations(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "7.7s": 7700 * time.Millisecond, "2m": 2 * time.Minute, "168h": 168 * time.Hour, "1h30m": 90 * time.Minute,
		"1h0m5s": time.Hour + 5*time.Second, "10m": 10 * time.Minute, "2562047h47m16.854775807s": math.MaxInt64,
	} {
		if got := Human(d); got != want {
			t.Errorf("Human(%d) = %s, want %s", d, got, want)
		}
	}
}

func TestLongMessagesAreCutBetweenCharacters(t *testing.T) {
	condition := isTrue("X", "Y", "%s", strings.Repeat("ä", maxMessage))
	if len(condition.Message) > maxMessage || !utf8.ValidString(condition.Message) || !strings.HasSuffix(condition.Message, "…") {
		t.Errorf("the message has %d bytes and ends with %q", len(condition.Message), condition.Message[len(condition.Message)-8:])
	}
}
