package lint

import (
	"fmt"
	"slices"

	"github.com/messaginginbox/operator/internal/messenger"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// sharedQueue is a queue from which two transports read.
type sharedQueue struct {
	queue      string
	transports [2]*messenger.Transport
}

// sharedQueues pairs each transport with the first one that reads from the same queue.
func (s *subject) sharedQueues() []sharedQueue {
	first := map[messenger.Destination]*messenger.Transport{}
	var shared []sharedQueue
	for _, transport := range s.Transports {
		for _, destination := range transport.Destinations() {
			other, taken := first[destination]
			if !taken {
				first[destination] = transport
				continue
			}
			if other == transport || slices.ContainsFunc(shared, func(known sharedQueue) bool {
				return known.transports == [2]*messenger.Transport{other, transport}
			}) {
				continue
			}
			queue := "the queue " + messenger.Shown(destination.Queue)
			if destination.Queue == "" {
				queue = "one DSN and queue"
			}
			shared = append(shared, sharedQueue{queue, [2]*messenger.Transport{other, transport}})
		}
	}
	return shared
}

var transportsShareQueue = &Rule{
	ID:       "transports-share-queue",
	Severity: Error,
	Summary:  "Two transports have one DSN and queue.",
	Why:      "A message that was sent to one transport is received by the other. The inbox records the pair of transport and id, so the same message passes once under each name.",
	Fix:      "Give each transport a queue of its own, or make them one transport.",
	check: func(s *subject, report reporter) {
		failureTransports := s.failureTransports()
		for _, pair := range s.sharedQueues() {
			isFailure := func(transport *messenger.Transport) bool { return slices.Contains(failureTransports, transport.Name) }
			if slices.ContainsFunc(pair.transports[:], isFailure) {
				continue // a rule of its own
			}
			second := pair.transports[1]
			report(second.DSN.At, second.DSN.Key, fmt.Sprintf("%s shares %s with %s (%s)", second.Name, pair.queue, pair.transports[0].Name, pair.transports[0].DSN.At))
		}
	},
}

var redisConsumerShared = &Rule{
	ID:       "redis-consumer-shared",
	Severity: Warning,
	Summary:  "All workers of a redis transport have one consumer name.",
	Why:      "A worker takes what another of the same name is still handling: the message is handled twice at once, and one of the two dies on its acknowledgement.",
	Fix:      "Give each worker a name of its own, such as consumer: '%env(HOSTNAME)%' in options, with one worker in each pod.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.Transports {
			if transport.Type() != redelivery.Redis {
				continue
			}
			consumer := transport.Setting("consumer")
			switch {
			case consumer.IsUnknown() && len(consumer.Value.Variables()) > 0:
			case consumer.IsSet():
				report(consumer.At, consumer.Key, fmt.Sprintf("every worker of %s is the consumer %s", transport.Name, messenger.Shown(consumer.Value.String())))
			default:
				report(transport.DSN.At, transport.DSN.Key, fmt.Sprintf("%s names no consumer, so every worker is \"consumer\"", transport.Name))
			}
		}
	},
}
