package assessment

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// ObservedRequirement is Requirement with what was observed where that is larger. It
// returns one sentence for each declared value that an observed one has overruled.
func ObservedRequirement(spec *v1alpha1.MessagingInboxSpec, observations Observations) (redelivery.Requirement, []string) {
	transports := make([]redelivery.Transport, 0, len(spec.Transports))
	var overruled []string
	for i := range spec.Transports {
		transport := declaredTransport(&spec.Transports[i], spec.Redelivery)
		r := raising{transport: &transport}
		if settings := observations.Settings[transport.Name]; settings != nil {
			r.apply(settings)
		}
		// RabbitMQ tells when a message was first published: one that waited for its own delay
		// there would look like a downtime.
		if transport.Inbox && !transport.BatchHandlers && transport.Type != redelivery.AMQP {
			r.applyWait(observations.wait(transport.Name))
		}
		r.applyToWindow()
		overruled = append(overruled, r.overruled...)
		transports = append(transports, transport)
	}
	return redelivery.Require(transports), overruled
}

// raising puts observed values into one transport.
type raising struct {
	transport *redelivery.Transport
	overruled []string
}

func (r *raising) apply(settings *v1alpha1.ObservedSettings) {
	t := r.transport
	// The DSN is what the application runs with, and Symfony prefers it to its options.
	r.raise("redeliverTimeout", &t.RedeliverTimeout, settings.RedeliverTimeout, redelivery.OriginDSN, 0)
	r.raise("checkDelayedInterval", &t.CheckDelayedInterval, settings.CheckDelayedInterval, redelivery.OriginDSN, 0)
	r.raise("claimInterval", &t.ClaimInterval, settings.ClaimInterval, redelivery.OriginDSN, 0)
	if heartbeat := settings.Heartbeat; heartbeat != nil && heartbeat.Duration == 0 && t.Heartbeat.Value > 0 {
		// Without a heartbeat nothing ends a hung worker's connection: that is the longer one.
		t.Heartbeat = redelivery.Setting{Origin: redelivery.OriginDSN}
		r.overrule("heartbeat", "0s", "a heartbeat")
	} else if !t.Heartbeat.IsSet() || t.Heartbeat.Value > 0 {
		r.raise("heartbeat", &t.Heartbeat, heartbeat, redelivery.OriginDSN, 0)
	}
	// A queue's own time-out is what is: the default is only the most that it can be.
	r.raise("visibilityTimeout", &t.VisibilityTimeout, settings.VisibilityTimeout, redelivery.OriginObserved, 0)
	r.raise("consumerTimeout", &t.ConsumerTimeout, settings.ConsumerTimeout, redelivery.OriginObserved, redelivery.DefaultConsumerTimeout)
	r.raise("ttr", &t.TTR, settings.TTR, redelivery.OriginObserved, redelivery.DefaultTTR)
	if pending := settings.PendingEntries; pending != nil {
		declared := redelivery.DefaultMaxPending
		if t.MaxPending.IsSet() {
			declared = t.MaxPending.Value
		}
		if *pending > declared {
			t.MaxPending = redelivery.Count{Value: *pending, Origin: redelivery.OriginObserved}
			r.overrule("maxPending", fmt.Sprint(*pending), fmt.Sprint(declared))
		}
	}
}

// applyWait raises the downtime: a message that still waits is one that comes so late, when
// it is the second copy of one that was handled. How many messages are in the queue or the
// stream says nothing of that. Whole hours keep the window from changing with every look.
func (r *raising) applyWait(wait time.Duration) {
	declared := &r.transport.MaxDowntime
	if r.transport.Window.IsSet() {
		declared = &r.transport.Window
	}
	if wait <= declared.Value {
		return
	}
	counted := (wait + time.Hour - 1).Truncate(time.Hour)
	r.overruled = append(r.overruled, fmt.Sprintf("%s has a message that has waited for up to %s, longer than %s",
		r.transport.Name, Human(counted), Human(declared.Value)))
	*declared = redelivery.Setting{Value: counted, Origin: redelivery.OriginObserved}
}

// applyToWindow raises a window that is declared outright, when the broker was seen to need
// more than that for the transport's own redelivery and retries.
func (r *raising) applyToWindow() {
	window := &r.transport.Window
	if !window.IsSet() {
		return
	}
	own := *r.transport
	own.Window, own.Outbox, own.FailureTransport = redelivery.Setting{}, "", ""
	own.MaxDowntime, own.ReplayWindow = redelivery.Declared(0), redelivery.Declared(0)
	least := redelivery.Require([]redelivery.Transport{own}).Windows[0]
	observed := slices.ContainsFunc(least.Terms, func(term redelivery.Term) bool { return term.Origin == redelivery.OriginObserved })
	if !observed || !least.Bounded || least.Duration <= window.Value {
		return
	}
	r.overrule("window", Human(least.Duration), Human(window.Value))
	*window = redelivery.Setting{Value: least.Duration, Origin: redelivery.OriginObserved}
}

// raise takes the observed value when it is larger than the declared one, or than the
// least that counts when nothing is declared.
func (r *raising) raise(field string, declared *redelivery.Setting, observed *metav1.Duration, origin redelivery.Origin, least time.Duration) {
	switch {
	case observed == nil:
	case !declared.IsSet() && observed.Duration >= least:
		*declared = redelivery.Setting{Value: observed.Duration, Origin: origin}
	case declared.IsSet() && observed.Duration > declared.Value:
		r.overrule(field, Human(observed.Duration), Human(declared.Value))
		*declared = redelivery.Setting{Value: observed.Duration, Origin: origin}
	}
}

func (r *raising) overrule(field, observed, declared string) {
	r.overruled = append(r.overruled, fmt.Sprintf("%s has a %s of %s, not %s", r.transport.Name, field, observed, declared))
}
