package lint

import (
	"fmt"
	"slices"

	"github.com/messaginginbox/operator/internal/messenger"
	"github.com/messaginginbox/operator/internal/redelivery"
)

var amqpWithoutRetries = &Rule{
	ID:       "amqp-without-retries",
	Severity: Error,
	Summary:  "An amqp transport with an inbox has max_retries: 0.",
	Why:      "Symfony rejects a message that RabbitMQ hands out again and sends it through the retry strategy before handlers see it. With no retry left, each lost acknowledgement puts a message that was handled into the failure transport.",
	Fix:      "Set retry_strategy.max_retries to at least the number of acknowledgements in a row that may get lost, plus the retries that handlers need.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.covered() {
			retries := transport.Retry.MaxRetries
			if transport.Type() == redelivery.AMQP && retries.Text() == "0" && !transport.Retry.Service.IsSet() {
				report(retries.At, retries.Key, fmt.Sprintf("%s retries nothing: a redelivered message goes to the failure transport at once", transport.Name))
			}
		}
	},
}

var failureTransportAbsent = &Rule{
	ID:       "failure-transport-absent",
	Severity: Warning,
	Summary:  "A transport with an inbox has no failure transport.",
	Why:      "A message whose retries are used up is discarded. On amqp each lost acknowledgement uses one up.",
	Fix:      "Set framework.messenger.failure_transport, or failure_transport of this transport.",
	check: func(s *subject, report reporter) {
		failureTransports := s.failureTransports()
		for _, transport := range s.covered() {
			received := s.receivedFrom(transport)
			if received == nil || s.FailureTransportOf(received).IsSet() || slices.Contains(failureTransports, received.Name) {
				continue
			}
			message := fmt.Sprintf("%s has no failure transport", received.Name)
			if received != transport {
				message += fmt.Sprintf("; its relay handles the messages of %s", transport.Name)
			}
			report(received.At, "transports."+received.Name, message)
		}
	},
}

// receivedFrom is the transport from which a worker takes the messages of another: that
// transport itself, or its outbox when it has no broker. It is nil when there is none.
func (s *subject) receivedFrom(transport *messenger.Transport) *messenger.Transport {
	if hasBroker(transport) {
		return transport
	}
	if outbox := s.Transport(transport.Outbox.Text()); outbox != nil && hasBroker(outbox) {
		return outbox
	}
	return nil
}

var failureTransportUndeclared = &Rule{
	ID:       "failure-transport-undeclared",
	Severity: Error,
	Summary:  "A failure transport is not a declared transport.",
	Why:      "Symfony refuses the configuration.",
	Fix:      "Name a transport that is declared under framework.messenger.transports.",
	check: func(s *subject, report reporter) {
		fields := []messenger.Field{s.FailureTransport}
		for _, transport := range s.Transports {
			fields = append(fields, transport.FailureTransport)
		}
		for _, field := range fields {
			if name := field.Text(); name != "" && s.Transport(name) == nil {
				report(field.At, field.Key, fmt.Sprintf("%s is not a declared transport", messenger.Shown(name)))
			}
		}
	},
}

var failureTransportUnbounded = &Rule{
	ID:       "failure-transport-unbounded",
	Severity: Warning,
	Summary:  "Nothing bounds how long a message stays in the failure transport.",
	Why:      "A failed message can be retried as long as it is there, and its proof must be kept as long. Without a bound no proof can ever be pruned.",
	Fix:      "Clean the failure transport up at a fixed age, and declare that age as redelivery.maxAge of the transport in the manifest (lint knows it with -f MANIFEST).",
	check: func(s *subject, report reporter) {
		protected := slices.ContainsFunc(s.covered(), s.comesBack)
		for _, name := range s.failureTransports() {
			transport := s.Transport(name)
			if !protected || transport == nil || !hasBroker(transport) || s.facts.Transports[name].Bounded {
				continue
			}
			message := fmt.Sprintf("nothing says how long a message may stay in %s", name)
			if s.facts.FromManifest {
				message += ": the manifest declares no redelivery.maxAge for it"
			}
			report(transport.At, "transports."+name, message)
		}
	},
}

var failureTransportSharesQueue = &Rule{
	ID:       "failure-transport-shares-queue",
	Severity: Error,
	Summary:  "A failure transport has the queue of another transport.",
	Why:      "Workers of the other transport take the failed messages out again at once, so they fail in a loop and nobody finds them.",
	Fix:      "Give the failure transport a queue of its own: queue_name for doctrine and sqs, stream for redis, an exchange for amqp, tube_name for beanstalkd.",
	check: func(s *subject, report reporter) {
		failureTransports := s.failureTransports()
		for _, pair := range s.sharedQueues() {
			for i, transport := range pair.transports {
				if slices.Contains(failureTransports, transport.Name) {
					report(transport.DSN.At, transport.DSN.Key, fmt.Sprintf("the failure transport %s shares %s with %s", transport.Name, pair.queue, pair.transports[1-i].Name))
					break
				}
			}
		}
	},
}

var retryServiceOpaque = &Rule{
	ID:       "retry-service-opaque",
	Severity: Warning,
	Summary:  "A transport with an inbox is retried by a service.",
	Why:      "Nobody can see how long the service delays a message, so the window is unbounded until its largest sum is declared.",
	Fix:      "Declare redelivery.retryStrategy.maxTotal of the transport in the manifest, or use the options of retry_strategy.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.covered() {
			if service := transport.Retry.Service; service.IsSet() && !s.facts.Transports[transport.Name].RetriesBounded {
				report(service.At, service.Key, fmt.Sprintf("the retry strategy of %s is the service %s", transport.Name, messenger.Shown(service.Value.String())))
			}
		}
	},
}
