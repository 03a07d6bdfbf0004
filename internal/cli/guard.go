package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/pruner"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/internal/waiting"
)

// Environment variables of the queues that a pruning run looks into; %d is the position
// of the flag --guard, from 0.
const (
	guardURLVariable      = "INBOX_GUARD_%d_URL"
	guardCAVariable       = "INBOX_GUARD_%d_CA"
	guardDatabaseVariable = "INBOX_GUARD_DATABASE_URL"
)

// guard reads the messages that wait in the queues of the flags --guard.
type guard struct {
	queues []string
}

// prepare returns nil when there is no queue to look into. Close the pools at the end.
func (g *guard) prepare() (read func(context.Context) (pruner.Waiting, error), closePools func(), err error) {
	if len(g.queues) == 0 {
		return nil, func() {}, nil
	}
	pools := database.NewPools(database.PoolOptions{MaxConns: 1, Limits: database.Limits{ApplicationName: "messaging-inbox prune"}})
	targets := make([]probe.Target, 0, len(g.queues))
	for position := range g.queues {
		target, err := g.target(position, pools)
		if err != nil {
			pools.Close()
			return nil, nil, fmt.Errorf("--guard %q: %w", g.queues[position], err)
		}
		targets = append(targets, target)
	}
	read = func(ctx context.Context) (pruner.Waiting, error) {
		messages, err := waiting.Read(ctx, targets, waiting.Limit)
		if err != nil {
			return pruner.Waiting{}, err
		}
		return asWaiting(messages), nil
	}
	return read, pools.Close, nil
}

// asWaiting refuses the run when not all ids are known: a proof whose message waits could
// be among those that are deleted.
func asWaiting(messages waiting.Messages) pruner.Waiting {
	found := pruner.Waiting{IDs: messages.IDs}
	if messages.Exceeded != "" {
		found.Refusal = fmt.Sprintf("more than %d messages wait, counted up to the transport %s: which proofs they still need cannot be compared. Handle or remove messages there; nothing is pruned until then", waiting.Limit, messages.Exceeded)
	}
	if messages.Unidentified > 0 {
		found.Note = fmt.Sprintf("%d waiting messages carry no id that could be read, so their proofs, if they have any, go by the retention alone", messages.Unidentified)
	}
	return found
}

func (g *guard) target(position int, pools *database.Pools) (probe.Target, error) {
	settings, err := url.ParseQuery(g.queues[position])
	if err != nil {
		return probe.Target{}, fmt.Errorf("expected transport=NAME&type=TYPE: %w", err)
	}
	variable := fmt.Sprintf(guardURLVariable, position)
	rawURL, found := os.LookupEnv(variable)
	if !found {
		return probe.Target{}, fmt.Errorf("the environment variable %s is not set: it holds the URL of the transport", variable)
	}
	name, transportType := settings.Get("transport"), redelivery.Type(settings.Get("type"))
	place := probe.Place{
		Stream: settings.Get("stream"), Group: settings.Get("group"), Table: settings.Get("table"), QueueName: settings.Get("queueName"),
	}
	var target probe.Target
	switch {
	case !waiting.Supported(transportType):
		return probe.Target{}, fmt.Errorf("the messages of a transport of type %q cannot be read without taking them", transportType)
	case transportType == redelivery.Doctrine:
		var config *database.Config
		if config, err = guardDatabase(); err != nil {
			return probe.Target{}, err
		}
		target, err = probe.NewDoctrineTarget(name, rawURL, place, config, pools, name)
	default:
		target, err = probe.NewTarget(name, transportType, rawURL, place)
	}
	if err != nil {
		return probe.Target{}, err
	}
	variable = fmt.Sprintf(guardCAVariable, position)
	bundle := os.Getenv(variable)
	if bundle == "" {
		return target, nil
	}
	if target, err = target.WithAuthorities([]byte(bundle)); err != nil {
		return probe.Target{}, fmt.Errorf("%s: %w", variable, err)
	}
	return target, nil
}

// guardDatabase is the database of the transports whose DSN names only a connection.
func guardDatabase() (*database.Config, error) {
	variable := guardDatabaseVariable
	if os.Getenv(variable) == "" {
		variable = databaseURLVariable
	}
	config, err := configFrom(variable)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	return config, nil
}
