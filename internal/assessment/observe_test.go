package assessment

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func of[T any](value T) *T { return &value }

// seen is a look that succeeded at noon.
func seen(transport string, observation probe.Observation) probe.Result {
	return probe.Result{Transport: transport, Seen: &observation, At: noon}
}

func TestTheLargerOfDeclaredAndObservedCounts(t *testing.T) {
	for name, test := range map[string]struct {
		transport string
		settings  probe.Settings
		dsn       probe.Declared
		want      time.Duration
		origin    redelivery.Origin
		says      string
	}{
		"an SQS queue's time-out in place of the unknown":             {"{name: a, type: sqs}", probe.Settings{VisibilityTimeout: of(time.Minute)}, probe.Declared{}, time.Minute, redelivery.OriginObserved, ""},
		"a longer time-out of SQS":                                    {"{name: a, type: sqs, redelivery: {visibilityTimeout: 30s}}", probe.Settings{VisibilityTimeout: of(time.Hour)}, probe.Declared{}, time.Hour, redelivery.OriginObserved, "a has a visibilityTimeout of 1h, not 30s"},
		"not a shorter time-out of SQS":                               {"{name: a, type: sqs, redelivery: {visibilityTimeout: 2h}}", probe.Settings{VisibilityTimeout: of(time.Hour)}, probe.Declared{}, 2 * time.Hour, redelivery.OriginDeclared, ""},
		"more pending entries than by default":                        {"{name: a, type: redis}", probe.Settings{PendingEntries: of(int64(500))}, probe.Declared{}, time.Hour + 500*2*time.Minute, redelivery.OriginObserved, "a has a maxPending of 500, not 100"},
		"not fewer pending entries":                                   {"{name: a, type: redis}", probe.Settings{PendingEntries: of(int64(7))}, probe.Declared{}, time.Hour + 100*2*time.Minute, redelivery.OriginDefault, ""},
		"a longer consumer time-out":                                  {"{name: a, type: amqp, redelivery: {consumerTimeout: 3h}}", probe.Settings{ConsumerTimeout: of(4 * time.Hour)}, probe.Declared{}, 4*time.Hour + time.Minute + 1100*time.Millisecond, redelivery.OriginObserved, "consumerTimeout of 4h, not 3h"},
		"a longer time to run":                                        {"{name: a, type: beanstalkd}", probe.Settings{TTR: of(time.Hour)}, probe.Declared{}, time.Hour, redelivery.OriginObserved, ""},
		"the DSN's redeliver_timeout":                                 {"{name: a, type: doctrine, redelivery: {redeliverTimeout: 10m}}", probe.Settings{}, probe.Declared{RedeliverTimeout: of(2 * time.Hour)}, 2*time.Hour + 62*time.Second, redelivery.OriginDSN, "redeliverTimeout of 2h, not 10m"},
		"a window that is declared shorter than what the queue needs": {"{name: a, type: sqs, redelivery: {window: 1h}}", probe.Settings{VisibilityTimeout: of(2 * time.Hour)}, probe.Declared{}, 2*time.Hour + 7700*time.Millisecond, redelivery.OriginObserved, "a has a window of 2h0m7.7s, not 1h"},
		"not a window that is longer than that":                       {"{name: a, type: sqs, redelivery: {window: 3h}}", probe.Settings{VisibilityTimeout: of(2 * time.Hour)}, probe.Declared{}, 3 * time.Hour, redelivery.OriginDeclared, ""},
		"not a window by a default that nobody observed":              {"{name: a, type: redis, redelivery: {window: 1m}}", probe.Settings{PendingEntries: of(int64(7))}, probe.Declared{}, time.Minute, redelivery.OriginDeclared, ""},
		"a DSN without the heartbeat that is declared":                {"{name: a, type: amqp, redelivery: {heartbeat: 10s}}", probe.Settings{}, probe.Declared{Heartbeat: of(time.Duration(0))}, 2*time.Hour + 1100*time.Millisecond, redelivery.OriginDefault, "heartbeat of 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := declared(t, "transports: ["+test.transport+"]")
			result := seen("a", probe.Observation{Settings: test.settings})
			result.Declared = test.dsn
			requirement, overruled := ObservedRequirement(spec, Observe([]probe.Result{result}, nil, noon))
			terms := requirement.Windows[0].Terms
			i := slices.IndexFunc(terms, func(found redelivery.Term) bool {
				return found.Name == redelivery.TermRedelivery || found.Name == redelivery.TermDeclaredWindow
			})
			if terms[i].Value != test.want || terms[i].Origin != test.origin {
				t.Errorf("%s = %s (%s), want %s (%s)", terms[i].Name, terms[i].Value, terms[i].Origin, test.want, test.origin)
			}
			if text := strings.Join(overruled, "; "); !strings.Contains(text, test.says) || (test.says == "") != (text == "") {
				t.Errorf("overruled %q, want %q", text, test.says)
			}
		})
	}
}

func TestWhatWasSeenCountsWhileTheBrokerIsOutOfReach(t *testing.T) {
	spec := declared(t, "transports: [{name: a, type: sqs, redelivery: {visibilityTimeout: 30s}, observe: {urlSecretRef: {name: sqs}}}]")
	earlier := []v1alpha1.TransportStatus{{Name: "a", Observed: &v1alpha1.ObservedSettings{VisibilityTimeout: &metav1.Duration{Duration: time.Hour}}}}
	down := probe.Result{Transport: "a", Failure: &probe.Failure{Reason: probe.ReasonUnreachable, Message: "down"}, At: noon}
	observations := Observe([]probe.Result{down}, earlier, noon)
	if requirement, _ := ObservedRequirement(spec, observations); requirement.Windows[0].Terms[0].Value != time.Hour {
		t.Errorf("terms %+v", requirement.Windows[0].Terms)
	}
	if found := Observe(nil, earlier, noon); len(found.Settings) != 0 {
		t.Errorf("a transport that is observed no more still counts: %+v", found.Settings)
	}
}

func TestAMessageThatWaitsForLongerThanTheDowntimeRaisesTheWindow(t *testing.T) {
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		transport string
		wait      time.Duration
		want      time.Duration // of the downtime, or of the declared window
		origin    redelivery.Origin
		says      string
	}{
		"just as long":                                              {"{name: a, type: doctrine}", day, day, redelivery.OriginDefault, ""},
		"a second longer":                                           {"{name: a, type: doctrine}", day + time.Second, 25 * time.Hour, redelivery.OriginObserved, "a has a message that has waited for up to 25h, longer than 24h"},
		"a week, by whole hours":                                    {"{name: a, type: redis}", 7*day + time.Minute, 7*day + time.Hour, redelivery.OriginObserved, "up to 169h, longer than 24h"},
		"longer than the transport declares":                        {"{name: a, type: redis, redelivery: {maxDowntime: 1h}}", 90 * time.Minute, 2 * time.Hour, redelivery.OriginObserved, "up to 2h, longer than 1h"},
		"not so long as the transport says":                         {"{name: a, type: redis, redelivery: {maxDowntime: 72h}}", 2 * day, 3 * day, redelivery.OriginDeclared, ""},
		"longer than the whole window":                              {"{name: a, type: redis, redelivery: {window: 48h}}", 50 * time.Hour, 50 * time.Hour, redelivery.OriginObserved, "up to 50h, longer than 48h"},
		"in RabbitMQ, where an age includes a message's own delays": {"{name: a, type: amqp}", 3 * day, day, redelivery.OriginDefault, ""},
		"in a transport that nothing protects":                      {"{name: a, type: doctrine, inbox: false}", 3 * day, day, redelivery.OriginDefault, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := declared(t, "transports: ["+test.transport+"]")
			waits := []probe.Result{seen("a", probe.Observation{Pending: 1, Oldest: of(noon.Add(-test.wait))})}
			var earlier []v1alpha1.TransportStatus
			// Then the age cannot be seen, or nothing can, and only the status tells of the wait.
			blind, down := seen("a", probe.Observation{Pending: 1, AgeUnknown: true}), probe.Result{Transport: "a", Failure: &probe.Failure{}, At: noon}
			for _, results := range [][]probe.Result{waits, {blind}, {down}, {{Transport: "a"}}} {
				observations := Observe(results, earlier, noon)
				requirement, overruled := ObservedRequirement(spec, observations)
				terms := requirement.Windows[0].Terms
				if last := terms[len(terms)-1]; last.Value != test.want || last.Origin != test.origin {
					t.Errorf("%s = %s (%s), want %s (%s)", last.Name, last.Value, last.Origin, test.want, test.origin)
				}
				if text := strings.Join(overruled, "; "); !strings.Contains(text, test.says) || (test.says == "") != (text == "") {
					t.Errorf("overruled %q, want %q", text, test.says)
				}
				earlier = TransportStatuses(requirement)
				ShowObserved(earlier, observations, noon)
			}
			emptied := Observe([]probe.Result{seen("a", probe.Observation{})}, earlier, noon)
			if _, overruled := ObservedRequirement(spec, emptied); len(overruled) != 0 {
				t.Errorf("an empty transport still raises the window: %q", overruled)
			}
		})
	}
}

// Whoever only reads the resource comes to the windows that the operator wrote there.
func TestWhatTheStatusHoldsGivesTheOperatorsWindows(t *testing.T) {
	spec := declared(t, "transports: [{name: a, type: sqs, observe: {urlSecretRef: {name: s, key: k}}}, {name: b, type: sqs}]")
	observations := Observe([]probe.Result{seen("a", probe.Observation{Settings: probe.Settings{VisibilityTimeout: of(90 * time.Second)}, Oldest: of(noon.Add(-30 * time.Hour))})}, nil, noon)
	requirement, _ := ObservedRequirement(spec, observations)
	inbox := &v1alpha1.MessagingInbox{Spec: *spec}
	inbox.Status.Transports = TransportStatuses(requirement)
	ShowObserved(inbox.Status.Transports, observations, noon)
	inbox.Status.Transports[1].Observed = &v1alpha1.ObservedSettings{VisibilityTimeout: &metav1.Duration{Duration: time.Second}} // of an earlier spec

	again, _ := ObservedRequirement(spec, LastSeen(inbox, noon))
	for i, window := range again.Windows {
		if window.Duration != requirement.Windows[i].Duration || window.Terms[0] != requirement.Windows[i].Terms[0] {
			t.Errorf("%s: got %+v, want %+v", window.Transport, window, requirement.Windows[i])
		}
	}
	if term := again.Windows[0].Terms[0]; term.Value != 90*time.Second || term.Origin != redelivery.OriginObserved {
		t.Errorf("the time-out is %+v", term)
	}
}

func TestAMessageOlderThanItsMaxAgeMakesTheRetentionUnsafe(t *testing.T) {
	const transports = `retention: {period: 1000h, applicationPeriod: 1000h}
  transports:
  - {name: a, type: amqp, failureTransport: failed}
  - {name: failed, type: doctrine, inbox: false, redelivery: {maxAge: 336h}}
  - {name: lonely, type: doctrine, inbox: false, redelivery: {maxAge: 1h}}`
	spec := declared(t, transports)
	judge := func(transport string, age time.Duration) metav1.Condition {
		observations := Observe([]probe.Result{seen(transport, probe.Observation{Pending: 1, Oldest: of(noon.Add(-age))})}, nil, noon)
		requirement, overruled := ObservedRequirement(spec, observations)
		return ObservedRetentionSafe(spec, requirement, observations, overruled)
	}
	if condition := judge("failed", 336*time.Hour); condition.Status != metav1.ConditionTrue {
		t.Errorf("a message of just that age: %s (%s)", condition.Status, condition.Message)
	}
	broken := judge("failed", 336*time.Hour+time.Second)
	if broken.Status != metav1.ConditionFalse || broken.Reason != v1alpha1.ReasonMaxAgeExceeded {
		t.Errorf("an older message: %s (%s)", broken.Status, broken.Reason)
	}
	for _, word := range []string{"spec.transports[failed].redelivery.maxAge is 336h", "since 2026-06-17T11:59:59Z"} {
		if !strings.Contains(broken.Message, word) {
			t.Errorf("the message does not say %q: %s", word, broken.Message)
		}
	}
	spec = declared(t, strings.Replace(transports, "maxAge: 336h", "window: 340h", 1))
	if broken = judge("failed", 340*time.Hour+time.Second); broken.Reason != v1alpha1.ReasonMaxAgeExceeded || !strings.Contains(broken.Message, "redelivery.window is 340h") {
		t.Errorf("a message older than the window that is declared for its stay: %s (%s)", broken.Status, broken.Message)
	}
	if condition := judge("lonely", 100*time.Hour); condition.Status != metav1.ConditionTrue {
		t.Errorf("a failure transport of nobody: %s (%s)", condition.Status, condition.Message)
	}
}

// Only a look that tells how old the messages are ends what an earlier one found.
func TestAContradictionStandsUntilALookRefutesIt(t *testing.T) {
	spec := declared(t, `retention: {period: 1000h, applicationPeriod: 1000h}
  transports:
  - {name: a, type: sqs, failureTransport: failed}
  - {name: failed, type: sqs, inbox: false, redelivery: {maxAge: 336h}, observe: {urlSecretRef: {name: failed}}}`)
	var statuses []v1alpha1.TransportStatus
	for _, look := range []struct {
		tells  string
		result probe.Result
		want   metav1.ConditionStatus
	}{
		{"an old message", seen("failed", probe.Observation{Pending: 1, Oldest: of(noon.Add(-400 * time.Hour))}), metav1.ConditionFalse},
		{"no age", seen("failed", probe.Observation{Pending: 1, AgeUnknown: true}), metav1.ConditionFalse},
		{"nothing, since the broker is down", probe.Result{Transport: "failed", Failure: &probe.Failure{}, At: noon}, metav1.ConditionFalse},
		{"nothing yet, since the operator restarted", probe.Result{Transport: "failed"}, metav1.ConditionFalse},
		{"a young message", seen("failed", probe.Observation{Pending: 1, Oldest: of(noon.Add(-time.Hour))}), metav1.ConditionTrue},
	} {
		observations := Observe([]probe.Result{look.result}, statuses, noon)
		requirement, overruled := ObservedRequirement(spec, observations)
		if found := ObservedRetentionSafe(spec, requirement, observations, overruled); found.Status != look.want {
			t.Errorf("a look that tells %s: %s (%s)", look.tells, found.Status, found.Message)
		}
		statuses = TransportStatuses(requirement)
		ShowObserved(statuses, observations, noon)
	}
}

// What a broker's setting has raised is no wait.
func TestAWindowRaisedByASettingStaysThatWithoutALook(t *testing.T) {
	spec := declared(t, "transports: [{name: a, type: sqs, redelivery: {window: 1h}, observe: {urlSecretRef: {name: s}}}]")
	observations := Observe([]probe.Result{seen("a", probe.Observation{Settings: probe.Settings{VisibilityTimeout: of(3*time.Hour + time.Second)}})}, nil, noon)
	first, why := ObservedRequirement(spec, observations)
	statuses := TransportStatuses(first)
	ShowObserved(statuses, observations, noon)
	again, whyAgain := ObservedRequirement(spec, Observe([]probe.Result{{Transport: "a"}}, statuses, noon))
	if again.Windows[0].Duration != first.Windows[0].Duration || !slices.Equal(why, whyAgain) {
		t.Errorf("%s, %q became %s, %q", first.Windows[0].Duration, why, again.Windows[0].Duration, whyAgain)
	}
}

func TestTransportsObserved(t *testing.T) {
	const observed = "transports: [{name: a, type: redis, observe: {urlSecretRef: {name: redis}}}, {name: b, type: amqp, observe: {urlSecretRef: {name: rabbit}}}]"
	failure := probe.Result{Transport: "b", Failure: &probe.Failure{Reason: probe.ReasonNoAnswer, Message: "silence"}}
	for name, test := range map[string]struct {
		spec    string
		results []probe.Result
		status  metav1.ConditionStatus
		reason  string
		says    string
	}{
		"nothing declared": {"transports: [{name: a, type: redis}]", nil, metav1.ConditionUnknown, v1alpha1.ReasonNotDeclared, "No transport"},
		"not yet":          {observed, []probe.Result{seen("a", probe.Observation{}), {Transport: "b"}}, metav1.ConditionUnknown, v1alpha1.ReasonNotLookedYet, ": b."},
		"all seen":         {observed, []probe.Result{seen("a", probe.Observation{}), seen("b", probe.Observation{})}, metav1.ConditionTrue, v1alpha1.ReasonObserved, "2 transports"},
		"a missing right":  {observed, []probe.Result{seen("a", probe.Observation{Gaps: []string{"grant it"}}), seen("b", probe.Observation{})}, metav1.ConditionTrue, v1alpha1.ReasonPartlyObserved, "a: grant it"},
		"a failure":        {observed, []probe.Result{seen("a", probe.Observation{}), failure}, metav1.ConditionFalse, v1alpha1.ReasonProbeFailed, "1 of 2 transports could not be looked at; what is declared, or was last seen, counts. b (NoAnswer): silence."},
	} {
		t.Run(name, func(t *testing.T) {
			condition := TransportsObserved(declared(t, test.spec), Observe(test.results, nil, noon))
			if condition.Status != test.status || condition.Reason != test.reason || !strings.Contains(condition.Message, test.says) {
				t.Errorf("%s (%s): %s", condition.Status, condition.Reason, condition.Message)
			}
		})
	}
}

func TestTheStatusOfAMessageThatWaitsChangesInSteps(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		-time.Minute: 0, 59 * time.Second: 0, 61 * time.Second: time.Minute, 95 * time.Minute: 90 * time.Minute, 49*time.Hour + 59*time.Minute: 49 * time.Hour,
	} {
		statuses := []v1alpha1.TransportStatus{{Name: "a"}}
		ShowObserved(statuses, Observe([]probe.Result{seen("a", probe.Observation{Pending: 3, Stuck: 1, Oldest: of(noon.Add(-age))})}, nil, noon), noon)
		if got := statuses[0].OldestAge.Duration; got != want {
			t.Errorf("%s is shown as %s, want %s", age, got, want)
		}
		if *statuses[0].Messages != (v1alpha1.MessageCounts{Pending: 3, Stuck: 1}) {
			t.Errorf("messages %+v", statuses[0].Messages)
		}
	}
}
