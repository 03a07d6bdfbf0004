package redelivery

import (
	"slices"
	"time"
)

// Names of the terms of a window, in the order in which they appear.
const (
	TermDeclaredWindow = "declared window" // the only term of a transport whose Window is declared

	TermOutboxWindow     = "outbox declared window" // in place of the two below
	TermOutboxRedelivery = "outbox redelivery"
	TermOutboxRetries    = "outbox retry delays"

	TermRedelivery = "redelivery after lost acknowledgements" // k * R
	TermRetries    = "retry delays"

	TermFailureWindow     = "failure transport declared window" // in place of the three below
	TermFailureStay       = "stay in the failure transport"
	TermFailureRetries    = "failure transport retry delays"
	TermFailureRedelivery = "failure transport redelivery after lost acknowledgements" // k * R(failure)

	TermReplay   = "replay window"
	TermDowntime = "downtime"
)

// Term is one duration that was added to a window.
type Term struct {
	Name   string
	Value  time.Duration
	Origin Origin
}

// Window is how long after its handling a message of one transport can come back.
type Window struct {
	// Transport is its name.
	Transport string
	// Covered says that the inbox records the transport's messages.
	Covered bool
	// Bounded is false when a term is unknown, and when the sum exceeds time.Duration.
	Bounded bool
	// Duration is the sum of the terms; 0 when the window is unbounded.
	Duration time.Duration
	// Terms are those that are known, in the order of the formula. One that is 0 by default is left out.
	Terms []Term
	// Undeclared are the fields to declare to make an unbounded window bounded.
	Undeclared []string
	// ShorterThan is k * R + D of the transport when its declared window is shorter, else nil.
	ShorterThan *time.Duration
}

func windowOf(t Transport, transports map[string]Transport) Window {
	w := Window{Transport: t.Name, Covered: t.Inbox && !t.BatchHandlers, Bounded: true}
	switch {
	case t.Window.IsSet():
		w.add(t, TermDeclaredWindow, known(t.Window.or(0)))
		w.ShorterThan = shorterThan(t)
	case t.Type.redelivers():
		w.addOutbox(t, transports, byDefault(int64(1)))
		w.add(t, TermRedelivery, redelivery(t).times(lostAcks(t)))
		w.add(t, TermRetries, retryDelays(t))
		w.addFailureTransport(t, transports)
		w.addCircumstances(t)
	case t.Outbox != "":
		w.addRelay(t, transports)
	}
	return w
}

// addRelay is the window of a transport without a broker behind an outbox: there the
// relay itself handles the message, so the outbox hands it out again, and what the
// relay cannot handle goes to the failure transport of the outbox.
func (w *Window) addRelay(t Transport, transports map[string]Transport) {
	outbox, exists := transports[t.Outbox]
	if exists && !outbox.Window.IsSet() && !outbox.Type.redelivers() {
		return
	}
	w.addOutbox(t, transports, lostAcks(t))
	t.FailureTransport = outbox.FailureTransport
	w.addFailureTransport(t, transports)
	w.addCircumstances(t)
}

// addCircumstances adds what people do to the broker and the workers.
func (w *Window) addCircumstances(t Transport) {
	w.add(t, TermReplay, known(t.ReplayWindow.or(DefaultReplayWindow)))
	w.add(t, TermDowntime, known(t.MaxDowntime.or(DefaultMaxDowntime)))
}

// addOutbox adds times * R + D of the outbox: a relay that dies after it published a
// message publishes it again. How long a message waits in the outbox does not matter, since
// the proof is written when it is handled. Only one level counts: senders store
// messages in an outbox within their own transaction, so no other outbox is on the way.
func (w *Window) addOutbox(t Transport, transports map[string]Transport, times Count) {
	if t.Outbox == "" {
		return
	}
	outbox, exists := transports[t.Outbox]
	switch {
	case !exists:
		w.miss(noSuchTransport(t.Path+".outbox", t.Outbox))
	case outbox.Window.IsSet():
		w.add(t, TermOutboxWindow, known(outbox.Window.or(0)))
	case outbox.Type.redelivers():
		w.add(t, TermOutboxRedelivery, redelivery(outbox).times(times))
		w.add(t, TermOutboxRetries, retryDelays(outbox))
	}
}

// addFailureTransport adds F + D + k * R of the failure transport. F is added once: it
// is declared from the first entry, so it spans all stays of a message. Only one
// level counts: Symfony discards what fails in a failure transport.
func (w *Window) addFailureTransport(t Transport, transports map[string]Transport) {
	if t.FailureTransport == "" {
		return
	}
	failure, exists := transports[t.FailureTransport]
	switch {
	case !exists:
		w.miss(noSuchTransport(t.Path+".failureTransport", t.FailureTransport))
	case failure.Window.IsSet():
		w.add(t, TermFailureWindow, known(failure.Window.or(0)))
	case failure.Type.redelivers():
		w.add(t, TermFailureStay, stay(failure))
		w.add(t, TermFailureRetries, retryDelays(failure))
		w.add(t, TermFailureRedelivery, redelivery(failure).times(lostAcks(t)))
	}
}

func stay(failure Transport) part {
	if !failure.MaxAge.IsSet() {
		return unknown(failure.Path + ".redelivery.maxAge")
	}
	return known(failure.MaxAge.or(0))
}

// add adds one term, or notes what is missing. Where a number is too large, the
// window itself is what is left to declare.
func (w *Window) add(t Transport, name string, p part) {
	if len(p.missing) > 0 {
		w.miss(p.missing...)
		return
	}
	sum := add(w.sum(), p.known.Value)
	if sum == overflow {
		w.miss(windowField(t))
		return
	}
	if p.known.Value == 0 && p.known.Origin == OriginDefault {
		return
	}
	w.Terms = append(w.Terms, Term{Name: name, Value: p.known.Value, Origin: p.known.Origin})
	if w.Bounded {
		w.Duration = sum
	}
}

func (w *Window) sum() time.Duration {
	var sum time.Duration
	for _, term := range w.Terms {
		sum += term.Value
	}
	return sum
}

func (w *Window) miss(fields ...string) {
	w.Bounded, w.Duration = false, 0
	w.Undeclared = appendNew(w.Undeclared, fields...)
}

// shorterThan is k * R + D when that is longer than the declared window.
func shorterThan(t Transport) *time.Duration {
	if !t.Type.redelivers() {
		return nil
	}
	own := redelivery(t).times(lostAcks(t)).plus(retryDelays(t))
	if len(own.missing) > 0 || own.known.Value == overflow || own.known.Value <= t.Window.Value {
		return nil
	}
	return &own.known.Value
}

// lostAcks is k. A broker that never loses an acknowledgement would need no inbox.
func lostAcks(t Transport) Count {
	k := t.LostAcks.or(DefaultLostAcks)
	k.Value = max(k.Value, 1)
	return k
}

func noSuchTransport(field, name string) string {
	return field + " (no transport is named " + name + ")"
}

func appendNew(list []string, values ...string) []string {
	for _, value := range values {
		if !slices.Contains(list, value) {
			list = append(list, value)
		}
	}
	return list
}
