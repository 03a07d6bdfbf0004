package lint

import (
	"cmp"
	"fmt"

	"github.com/messaginginbox/operator/internal/messenger"
)

const doctrineTransaction = "doctrine_transaction"

var inboxWithoutIdentityStamps = &Rule{
	ID:       "inbox-without-identity-stamps",
	Severity: Error,
	Summary:  "A transport has an inbox, but messages get no identity.",
	Why:      "The inbox recognises a redelivery by the message's id. Without identity_stamps no message has one.",
	Fix:      "Set framework.messenger.identity_stamps: true in the application that sends the messages, too.",
	check: func(s *subject, report reporter) {
		if s.IdentityStamps.IsTrue() || s.IdentityStamps.IsUnknown() {
			return
		}
		for _, transport := range s.covered() {
			report(transport.Inbox.At, transport.Inbox.Key, fmt.Sprintf("%s has an inbox, but identity_stamps is not on", transport.Name))
		}
	},
}

var inboxWithoutDoctrineTransaction = &Rule{
	ID:       "inbox-without-doctrine-transaction",
	Severity: Error,
	Summary:  "A transport has an inbox, but the bus that handles its messages opens no transaction.",
	Why:      "The proof must commit together with the handlers' work. Without the middleware doctrine_transaction a crash between the two leaves work without a proof, or a proof without the work.",
	Fix:      "Add doctrine_transaction to the middleware of the bus.",
	check: func(s *subject, report reporter) {
		covered := s.covered()
		if len(covered) == 0 {
			return
		}
		if len(s.Buses) == 0 {
			report(covered[0].Inbox.At, covered[0].Inbox.Key, "no bus is declared, and the default bus has no middleware doctrine_transaction")
			return
		}
		if bus := s.handlingBus(); bus.Has(doctrineTransaction) == nil {
			report(bus.At, "buses."+bus.Name, fmt.Sprintf("the bus %s has no middleware doctrine_transaction, but %s has an inbox", bus.Name, covered[0].Name))
		}
	},
}

// handlingBus handles a message that names no bus.
func (s *subject) handlingBus() *messenger.Bus {
	for _, bus := range s.Buses {
		if bus.Name == s.DefaultBus.Text() {
			return bus
		}
	}
	return s.Buses[0]
}

var otherBusWithoutDoctrineTransaction = &Rule{
	ID:       "other-bus-without-doctrine-transaction",
	Severity: Warning,
	Summary:  "A bus other than the default one opens no transaction.",
	Why:      "A message is handled by the bus that dispatched it. If one of this bus goes to a transport with an inbox, its proof does not commit together with its work.",
	Fix:      "Add doctrine_transaction to the middleware of this bus, or send nothing from it to a transport with an inbox.",
	check: func(s *subject, report reporter) {
		if len(s.covered()) == 0 || len(s.Buses) < 2 {
			return
		}
		for _, bus := range s.Buses {
			if bus != s.handlingBus() && bus.Has(doctrineTransaction) == nil {
				report(bus.At, "buses."+bus.Name, fmt.Sprintf("the bus %s has no middleware doctrine_transaction", bus.Name))
			}
		}
	},
}

var inboxOnAnotherConnection = &Rule{
	ID:       "inbox-on-another-connection",
	Severity: Error,
	Summary:  "The inbox is on another database connection than the handlers' transaction.",
	Why:      "Two connections are two transactions: the proof can commit while the work rolls back, and then the work is never done.",
	Fix:      "Give inbox.connection and the argument of doctrine_transaction the same connection.",
	check: func(s *subject, report reporter) {
		if len(s.Buses) == 0 {
			return
		}
		middleware := s.handlingBus().Has(doctrineTransaction)
		if middleware == nil {
			return
		}
		manager := middleware.Argument()
		connection, known := s.Doctrine.ConnectionOf(manager)
		if !known {
			connection = manager // a manager is nearly always named after its connection
		}
		for _, transport := range s.covered() {
			if transport.InboxConnection.IsUnknown() {
				continue
			}
			inbox := cmp.Or(transport.InboxConnection.Text(), s.Doctrine.DefaultConnection())
			if inbox == connection {
				continue
			}
			field := transport.Inbox
			if transport.InboxConnection.IsSet() {
				field = transport.InboxConnection
			}
			report(field.At, field.Key, fmt.Sprintf("the inbox of %s is on the connection %s, the transaction of the bus %s on %s (%s)",
				transport.Name, messenger.Shown(inbox), s.handlingBus().Name, messenger.Shown(connection), middleware.At))
		}
	},
}

var inboxWithoutBroker = &Rule{
	ID:       "inbox-without-broker",
	Severity: Warning,
	Summary:  "A transport without a broker has an inbox.",
	Why:      "Messages of sync:// and in-memory:// are handled where they are dispatched and never come back, unless an outbox is before them: there is nothing to recognise.",
	Fix:      "Remove inbox from this transport, or give it the DSN of a broker or an outbox.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.covered() {
			if !s.comesBack(transport) {
				report(transport.Inbox.At, transport.Inbox.Key, fmt.Sprintf("%s is %s: its messages cannot be redelivered", transport.Name, transport.Type()))
			}
		}
	},
}

var batchHandlersDeclared = &Rule{
	ID:       "batch-handlers",
	Severity: Warning,
	Summary:  "A transport with an inbox feeds batch handlers.",
	Why:      "Symfony does not record messages of batch handlers, so the inbox protects none of them.",
	Fix:      "Handle the messages one by one, or make the batch handler itself recognise a redelivery.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.covered() {
			if s.facts.Transports[transport.Name].BatchHandlers {
				report(transport.Inbox.At, transport.Inbox.Key, fmt.Sprintf("the manifest says that %s goes to batch handlers", transport.Name))
			}
		}
	},
}
