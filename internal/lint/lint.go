// Package lint finds the mistakes in a Symfony Messenger configuration that make an
// inbox useless or dangerous. Each rule is a pure function of the configuration and of
// the few facts that no configuration holds.
package lint

import (
	"slices"
	"time"

	"github.com/messaginginbox/operator/internal/messenger"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	// Error means that work is done twice or lost, or that Symfony refuses the configuration.
	Error Severity = "error"
	// Warning means that it works only under a condition that the configuration does not ensure.
	Warning Severity = "warning"
)

// Rule is one mistake that lint knows.
type Rule struct {
	// ID is stable: pipelines refer to it.
	ID       string
	Severity Severity
	// Summary is the mistake in one sentence.
	Summary string
	// Why it matters.
	Why string
	// Fix says what to change.
	Fix string

	check func(*subject, reporter)
}

// reporter takes one finding of a rule: where, the key there, and what is wrong.
type reporter func(at messenger.Position, key, message string)

// Finding is one mistake in one place.
type Finding struct {
	Rule     string
	Severity Severity
	At       messenger.Position
	// Key below framework.messenger, such as transports.orders.inbox.
	Key     string
	Message string
	Why     string
	Fix     string
}

// Facts are what no configuration says; a manifest does.
type Facts struct {
	// MaxHandlerTime is the longest time that handling one message takes; 0 is the operator's default.
	MaxHandlerTime time.Duration
	// Transports by name.
	Transports map[string]TransportFacts
	// FromManifest says that a manifest was read, so that what it does not declare is not declared anywhere.
	FromManifest bool
}

// TransportFacts are what a manifest says of one transport.
type TransportFacts struct {
	// MaxHandlerTime of this transport; 0 is that of all.
	MaxHandlerTime time.Duration
	// Bounded says that maxAge or a whole window is declared.
	Bounded bool
	// RetriesBounded says that the largest sum of a retry service's delays is declared.
	RetriesBounded bool
	// BatchHandlers handle its messages.
	BatchHandlers bool
	// DispatchesAfterCurrentBus are the transports to which its handlers dispatch with DispatchAfterCurrentBusStamp.
	DispatchesAfterCurrentBus []string
}

// Run returns all findings, from the top of the first source to the end of the last.
func Run(configuration *messenger.Configuration, facts Facts) []Finding {
	findings := []Finding{}
	if !configuration.Declared || !configuration.Enabled {
		return findings
	}
	about := &subject{Configuration: configuration, facts: facts}
	for _, rule := range rules {
		if rule.check == nil {
			continue
		}
		rule.check(about, func(at messenger.Position, key, message string) {
			findings = append(findings, rule.finding(at, key, message))
		})
	}
	order(findings, configuration.Sources)
	return findings
}

// Refused returns what could not be read as findings, so that a review tool shows it in its place.
func Refused(failures messenger.Errors) []Finding {
	findings := make([]Finding, 0, len(failures))
	for _, failure := range failures {
		findings = append(findings, invalidConfiguration.finding(failure.At, "", failure.Message))
	}
	return findings
}

func (r *Rule) finding(at messenger.Position, key, message string) Finding {
	return Finding{Rule: r.ID, Severity: r.Severity, At: at, Key: key, Message: messenger.Printable(message), Why: r.Why, Fix: r.Fix}
}

func order(findings []Finding, sources []messenger.Source) {
	number := func(finding Finding) int {
		return slices.IndexFunc(sources, func(source messenger.Source) bool { return source.Name == finding.At.File })
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		if byFile := number(a) - number(b); byFile != 0 {
			return byFile
		}
		return a.At.Compare(b.At)
	})
}

// HasErrors says whether any finding is an error.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(finding Finding) bool { return finding.Severity == Error })
}

// subject is what the rules look at.
type subject struct {
	*messenger.Configuration
	facts Facts
}

// covered are the transports whose messages the inbox records.
func (s *subject) covered() []*messenger.Transport {
	var covered []*messenger.Transport
	for _, transport := range s.Transports {
		if transport.Inbox.IsTrue() {
			covered = append(covered, transport)
		}
	}
	return covered
}

// handlerTime is the longest time that handling a message of the transport takes.
func (s *subject) handlerTime(transport *messenger.Transport) time.Duration {
	if own := s.facts.Transports[transport.Name].MaxHandlerTime; own > 0 {
		return own
	}
	if s.facts.MaxHandlerTime > 0 {
		return s.facts.MaxHandlerTime
	}
	return redelivery.DefaultMaxHandlerTime
}

// hasBroker is false for transports that handle a message where it was dispatched.
func hasBroker(transport *messenger.Transport) bool {
	return transport.Type() != redelivery.Sync && transport.Type() != redelivery.InMemory
}

// comesBack says whether a message of the transport can be redelivered: without a
// broker of its own only from its outbox, whose relay then handles it.
func (s *subject) comesBack(transport *messenger.Transport) bool {
	return s.receivedFrom(transport) != nil || transport.Outbox.IsUnknown()
}
