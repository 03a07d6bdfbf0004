package waiting

import (
	"context"
	"fmt"
	"time"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// Limit is the largest number of ids that one run holds in memory and compares.
const Limit = 100_000

// timeLimit of reading all queues.
const timeLimit = 2 * time.Minute

// Messages are what was found in all queues.
type Messages struct {
	// IDs of the waiting messages.
	IDs []string
	// Unidentified messages carry no id that could be read: a message without an id has
	// no proof, but one of an unknown form may have.
	Unidentified int
	// Exceeded is the first transport whose messages are more than the limit; "" is none.
	// IDs are then not complete.
	Exceeded string
}

// Supported says whether the ids of a transport of this type can be read without taking
// its messages.
func Supported(transportType redelivery.Type) bool {
	return transportType == redelivery.Doctrine || transportType == redelivery.Redis
}

// Read collects the ids of all messages that wait in the targets, delayed and
// delivered ones too, up to the limit. The error names the transport.
func Read(ctx context.Context, targets []probe.Target, limit int) (Messages, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	c := &collection{limit: limit, known: map[string]struct{}{}}
	for _, target := range targets {
		var err error
		switch target.Type {
		case redelivery.Doctrine:
			err = readTable(ctx, target, c)
		case redelivery.Redis:
			err = readStream(ctx, target, c)
		default:
			err = fmt.Errorf("the messages of a transport of type %s cannot be read without taking them", target.Type)
		}
		if err != nil {
			return Messages{}, fmt.Errorf("read the messages that wait in the transport %s: %w", target.Transport, err)
		}
		if c.full() {
			c.messages.Exceeded = target.Transport
			break
		}
	}
	return c.messages, nil
}

// collection gathers ids, each once.
type collection struct {
	limit    int
	seen     int
	known    map[string]struct{}
	messages Messages
}

// add takes the ids of one message.
func (c *collection) add(ids []string) {
	c.seen++
	if len(ids) == 0 {
		c.messages.Unidentified++
	}
	for _, id := range ids {
		if _, twice := c.known[id]; !twice {
			c.known[id] = struct{}{}
			c.messages.IDs = append(c.messages.IDs, id)
		}
	}
}

// full says that more messages were seen than the limit allows.
func (c *collection) full() bool { return c.seen > c.limit || len(c.messages.IDs) > c.limit }
