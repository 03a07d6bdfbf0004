package assessment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// Observations are the newest looks at the transports that declare observe, by name, and
// what earlier looks left in the status.
type Observations struct {
	Results  map[string]probe.Result
	Settings map[string]*v1alpha1.ObservedSettings
	// Oldest is when the oldest message that is due entered the transport.
	Oldest map[string]time.Time
	// Now is when the observations are judged.
	Now time.Time
}

// Observe joins the newest looks with the status of earlier ones: what a broker was seen to
// be set to, and how long messages waited, counts until it is seen to be otherwise.
func Observe(results []probe.Result, earlier []v1alpha1.TransportStatus, now time.Time) Observations {
	observations := Observations{Results: map[string]probe.Result{}, Settings: map[string]*v1alpha1.ObservedSettings{}, Oldest: map[string]time.Time{}, Now: now}
	for _, result := range results {
		observations.Results[result.Transport] = result
		if result.Seen == nil {
			continue
		}
		observations.Settings[result.Transport] = settingsOf(result)
		if oldest := result.Seen.Oldest; oldest != nil {
			observations.Oldest[result.Transport] = *oldest
		}
	}
	for i := range earlier {
		name := earlier[i].Name
		result, observed := observations.Results[name]
		if !observed {
			continue
		}
		if result.Seen == nil && earlier[i].Observed != nil {
			observations.Settings[name] = earlier[i].Observed
		}
		if since := earlier[i].OldestSince; since != nil && (result.Seen == nil || result.Seen.AgeUnknown) {
			observations.sawOldest(name, since.Time)
		}
	}
	return observations
}

// sawOldest keeps the earlier of two times.
func (o Observations) sawOldest(name string, entered time.Time) {
	if known, found := o.Oldest[name]; !found || entered.Before(known) {
		o.Oldest[name] = entered
	}
}

// wait of the oldest message that is due in the transport; 0 when there is none.
func (o Observations) wait(name string) time.Duration {
	entered, found := o.Oldest[name]
	if !found {
		return 0
	}
	return o.Now.Sub(entered)
}

// LastSeen is what the status holds of the transports that declare observe.
func LastSeen(inbox *v1alpha1.MessagingInbox, now time.Time) Observations {
	var unseen []probe.Result
	for i := range inbox.Spec.Transports {
		if transport := &inbox.Spec.Transports[i]; transport.Observe != nil {
			unseen = append(unseen, probe.Result{Transport: string(transport.Name)})
		}
	}
	return Observe(unseen, inbox.Status.Transports, now)
}

// Complete says that every transport that declares observe was looked at since the
// operator started, with success or not.
func (o Observations) Complete() bool {
	for _, result := range o.Results {
		if result.Failure == nil && result.At.IsZero() {
			return false
		}
	}
	return true
}

func settingsOf(result probe.Result) *v1alpha1.ObservedSettings {
	seen, declared := result.Seen.Settings, result.Declared
	settings := &v1alpha1.ObservedSettings{
		VisibilityTimeout: shown(seen.VisibilityTimeout), ConsumerTimeout: shown(seen.ConsumerTimeout), TTR: shown(seen.TTR),
		MessageTTL: shown(seen.MessageTTL), QueueExpiry: shown(seen.QueueExpiry), Retention: shown(seen.Retention), DeliveryLimit: seen.DeliveryLimit,
		RedeliverTimeout: shown(declared.RedeliverTimeout), CheckDelayedInterval: shown(declared.CheckDelayedInterval),
		ClaimInterval: shown(declared.ClaimInterval), Heartbeat: shown(declared.Heartbeat),
	}
	// A smaller number changes all the time and decides nothing.
	if seen.PendingEntries != nil && *seen.PendingEntries > redelivery.DefaultMaxPending {
		settings.PendingEntries = seen.PendingEntries
	}
	if *settings == (v1alpha1.ObservedSettings{}) {
		return nil
	}
	return settings
}

func shown(d *time.Duration) *metav1.Duration {
	if d == nil {
		return nil
	}
	return &metav1.Duration{Duration: *d}
}

// ObservedRetentionSafe is RetentionSafe with what was observed. A failure transport whose
// oldest message is older than its maxAge shows that the declared window is wrong.
func ObservedRetentionSafe(spec *v1alpha1.MessagingInboxSpec, requirement redelivery.Requirement, observations Observations, overruled []string) metav1.Condition {
	safe := RetentionSafe(spec, requirement)
	if safe.Status == metav1.ConditionTrue {
		if broken := exceeded(spec, observations); len(broken) > 0 {
			return isFalse(v1alpha1.ConditionRetentionSafe, v1alpha1.ReasonMaxAgeExceeded,
				"%s. A message that is retried from there can come back after its proof is gone, so nothing is pruned. Retry or remove these messages, or raise the field.", strings.Join(broken, "; "))
		}
	}
	if len(overruled) > 0 {
		safe = condition(safe.Type, safe.Status, safe.Reason, "%s Observed, and counted: %s.", safe.Message, named(overruled))
	}
	return safe
}

// exceeded names the failure transports of covered transports that hold a message longer
// than declared: than maxAge, or than the window that is declared in its place. RabbitMQ
// counts a message's age from its first publish, some retries before it fails, which errs
// on the safe side. The message tells when the oldest one entered: that stays the same as
// long as it waits.
func exceeded(spec *v1alpha1.MessagingInboxSpec, observations Observations) []string {
	var broken []string
	for i := range spec.Transports {
		failure := &spec.Transports[i]
		field, longest := LongestStay(failure)
		if longest == nil || !slices.ContainsFunc(spec.Transports, func(t v1alpha1.Transport) bool {
			return t.Inbox && !t.BatchHandlers && failureTransportOf(spec, &t) == failure.Name
		}) {
			continue
		}
		if observations.wait(string(failure.Name)) <= longest.Duration.Duration {
			continue
		}
		broken = append(broken, fmt.Sprintf("spec.transports[%s].redelivery.%s is %s, but its oldest message waits since %s",
			failure.Name, field, Human(longest.Duration.Duration), observations.Oldest[string(failure.Name)].UTC().Format(time.RFC3339)))
	}
	return broken
}

// LongestStay is the field that bounds a stay in a failure transport, and its value; nil
// when none is declared.
func LongestStay(failure *v1alpha1.Transport) (field string, longest *v1alpha1.Duration) {
	switch {
	case failure.Redelivery == nil:
		return "", nil
	case failure.Redelivery.Window != nil:
		return "window", failure.Redelivery.Window
	default:
		return "maxAge", failure.Redelivery.MaxAge
	}
}

// leastWait of a message that the status tells: shorter ones come and go with every look.
const leastWait = time.Minute

// ShowObserved adds to the statuses what was seen of the transports.
func ShowObserved(statuses []v1alpha1.TransportStatus, observations Observations, now time.Time) {
	for i := range statuses {
		status := &statuses[i]
		status.Observed = observations.Settings[status.Name]
		if wait := observations.wait(status.Name); wait >= leastWait {
			status.OldestSince = &metav1.Time{Time: observations.Oldest[status.Name].Truncate(time.Second)}
		}
		result := observations.Results[status.Name]
		if result.Seen == nil {
			continue
		}
		seen := result.Seen
		status.Messages = &v1alpha1.MessageCounts{Pending: seen.Pending, Delayed: seen.Delayed, InFlight: seen.InFlight, Stuck: seen.Stuck}
		if seen.Oldest != nil {
			status.OldestAge = &metav1.Duration{Duration: inSteps(now.Sub(*seen.Oldest))}
		}
	}
}

// inSteps keeps the status from changing with every look at a message that just waits.
func inSteps(age time.Duration) time.Duration {
	switch {
	case age < time.Hour:
		return max(age, 0).Truncate(time.Minute)
	case age < 24*time.Hour:
		return age.Truncate(10 * time.Minute)
	default:
		return age.Truncate(time.Hour)
	}
}

// TransportsObserved says whether the operator could look at the transports that declare
// observe, and what it could not see.
func TransportsObserved(spec *v1alpha1.MessagingInboxSpec, observations Observations) metav1.Condition {
	const conditionType = v1alpha1.ConditionTransportsObserved
	var unseen, failures, gaps []string
	observed := 0
	for i := range spec.Transports {
		if spec.Transports[i].Observe == nil {
			continue
		}
		observed++
		name := string(spec.Transports[i].Name)
		result := observations.Results[name]
		switch {
		case result.Failure != nil:
			failures = append(failures, fmt.Sprintf("%s (%s): %s", name, result.Failure.Reason, result.Failure.Message))
		case result.Seen == nil:
			unseen = append(unseen, name)
		case len(result.Seen.Gaps) > 0:
			gaps = append(gaps, fmt.Sprintf("%s: %s", name, strings.Join(result.Seen.Gaps, ", ")))
		}
	}
	switch {
	case observed == 0:
		return isUnknown(conditionType, v1alpha1.ReasonNotDeclared, "No transport declares observe. The windows are computed from what is declared, not from what the brokers hold.")
	case len(failures) > 0:
		return isFalse(conditionType, v1alpha1.ReasonProbeFailed, "%d of %d transports could not be looked at; what is declared, or was last seen, counts. %s.", len(failures), observed, joinedFew(failures))
	case len(unseen) > 0:
		return isUnknown(conditionType, v1alpha1.ReasonNotLookedYet, "Not looked at yet: %s.", named(unseen))
	case len(gaps) > 0:
		return isTrue(conditionType, v1alpha1.ReasonPartlyObserved, "The %d transports that declare observe were looked at. Not visible: %s.", observed, joinedFew(gaps))
	default:
		return isTrue(conditionType, v1alpha1.ReasonObserved, "The %d transports that declare observe were looked at.", observed)
	}
}

func joinedFew(sentences []string) string {
	if more := len(sentences) - maxNamed; more > 0 {
		return strings.Join(sentences[:maxNamed], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(sentences, "; ")
}
