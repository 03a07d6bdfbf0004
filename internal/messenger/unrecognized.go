package messenger

import (
	"fmt"
	"slices"
	"strings"
)

// Unrecognized is a key or an option that Symfony does not know.
type Unrecognized struct {
	// Key is its path below framework.messenger, as it may be shown.
	Key string
	At  Position
	// Place says whose it is not: of a transport, or of the transport type amqp.
	Place string
	// Suggestion is the known name that it resembles; "" when there is none.
	Suggestion string
}

func (u Unrecognized) String() string {
	message := fmt.Sprintf("%s is no %s that Symfony knows", u.Key, u.Place)
	if u.Suggestion != "" {
		message += fmt.Sprintf(": did you mean %s?", u.Suggestion)
	}
	return message
}

// The keys of Symfony 8.2's configuration tree, and those that earlier versions knew.
var (
	messengerKeys = []string{
		"buses", "default_bus", "enabled", "failure_transport", "identity_stamps", "reject_redelivered_messages",
		"reset_on_message", "routing", "serializer", "stop_worker_on_signal", "stop_worker_on_signals", "transports",
	}
	transportKeys = []string{
		"claim_check", "dsn", "failure_transport", "inbox", "options", "outbox", "priority", "rate_limiter",
		"retry_strategy", "serializer", "sign",
	}
	inboxKeys = []string{"connection", "enabled"}
	busKeys   = []string{"default_middleware", "message", "messages", "middleware", "unwrap_exceptions"}
)

// recognize reports a key that is none of the known ones of its place.
func (l *loader) recognize(known []string, place, path string, entry Entry) {
	if slices.Contains(known, entry.Key) {
		return
	}
	l.configuration.Unrecognized = append(l.configuration.Unrecognized, Unrecognized{
		Key: path + Shown(entry.Key), At: entry.At, Place: place, Suggestion: resembling(entry.Key, known),
	})
}

// resembling is the known name that is the fewest changed characters away, at most two
// and fewer than half of the name; "" when there is none.
func resembling(name string, known []string) string {
	nearest, least := "", min(3, (len(name)+1)/2)
	for _, candidate := range known {
		if max(len(name)-len(candidate), len(candidate)-len(name)) >= least {
			continue // at least so many changes, and the name may be as long as the file
		}
		if distance := changes(strings.ToLower(name), candidate); distance < least {
			nearest, least = candidate, distance
		}
	}
	return nearest
}

// changes is the Levenshtein distance: how many bytes to add, drop or replace.
func changes(from, to string) int {
	before := make([]int, len(to)+1)
	for j := range before {
		before[j] = j
	}
	for i := range len(from) {
		now := make([]int, len(to)+1)
		now[0] = i + 1
		for j := range len(to) {
			replaced := before[j]
			if from[i] != to[j] {
				replaced++
			}
			now[j+1] = min(replaced, before[j+1]+1, now[j]+1)
		}
		before = now
	}
	return before[len(to)]
}
