package lint

import (
	"fmt"
	"slices"

	"github.com/messaginginbox/operator/internal/messenger"
)

var outboxMissing = &Rule{
	ID:       "outbox-missing",
	Severity: Error,
	Summary:  "Handlers dispatch after the current bus to a transport without an outbox.",
	Why:      "Symfony refuses DispatchAfterCurrentBusStamp from a handler behind an inbox unless the target has an outbox: the message would be lost when the worker dies after its commit.",
	Fix:      "Give the target an outbox: a doctrine transport on the handlers' connection.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.Transports {
			for _, name := range s.facts.Transports[transport.Name].DispatchesAfterCurrentBus {
				target := s.Transport(name)
				if target == nil {
					report(transport.At, "transports."+transport.Name, fmt.Sprintf("handlers of %s dispatch after the current bus to %s, which is not declared", transport.Name, name))
				} else if !target.Outbox.IsSet() {
					report(target.At, "transports."+name, fmt.Sprintf("handlers of %s dispatch after the current bus to %s, which has no outbox", transport.Name, name))
				}
			}
		}
	},
}

var outboxUndeclared = &Rule{
	ID:       "outbox-undeclared",
	Severity: Error,
	Summary:  "An outbox is not a declared transport, or the transport itself.",
	Why:      "There is no relay that would publish the messages.",
	Fix:      "Name another transport that is declared under framework.messenger.transports.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.Transports {
			name := transport.Outbox.Text()
			switch {
			case name == "":
			case name == transport.Name:
				report(transport.Outbox.At, transport.Outbox.Key, fmt.Sprintf("the outbox of %s is %s itself", transport.Name, name))
			case s.Transport(name) == nil:
				report(transport.Outbox.At, transport.Outbox.Key, fmt.Sprintf("the outbox of %s is %s, which is not a declared transport", transport.Name, messenger.Shown(name)))
			}
		}
	},
}

// failureTransports are the names of all transports that receive failed messages.
func (s *subject) failureTransports() []string {
	var names []string
	for _, transport := range s.Transports {
		name := s.FailureTransportOf(transport).Text()
		if name != "" && name != transport.Name && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
