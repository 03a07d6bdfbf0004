package waiting

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/internal/probe"
)

// readStream reads the stream from its oldest entry and then the delayed messages. A
// message that is retried meanwhile gets a later id, or goes to the delayed ones, before
// its old entry is removed: it is met once at least. A message that leaves the delayed
// ones for the stream could be missed between the two, so the stream's end is read again.
func readStream(ctx context.Context, target probe.Target, c *collection) error {
	client, err := probe.NewRedis(target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing depends on a clean goodbye
	stream, delayed, _ := target.StreamKeys()
	last, err := readEntries(ctx, client, stream, "-", c)
	if err == nil {
		err = readDelayed(ctx, client, delayed, c)
	}
	if err == nil {
		_, err = readEntries(ctx, client, stream, last, c)
	}
	if err != nil {
		return probe.Explain(target, err)
	}
	return nil
}

// readEntries returns where the next reading goes on.
func readEntries(ctx context.Context, client redis.UniversalClient, stream, start string, c *collection) (string, error) {
	for entry, err := range probe.Entries(ctx, client, stream, start, "+") {
		if err != nil {
			return "", err
		}
		if c.full() {
			break
		}
		c.add(identifyEntry(entry.Values))
		start = "(" + entry.ID
	}
	return start, nil
}

// readDelayed goes through the set by rank, from the end: what becomes due meanwhile
// leaves at the front and does not shift what is still to be read.
func readDelayed(ctx context.Context, client redis.UniversalClient, key string, c *collection) error {
	pages := &probe.Pages{}
	for start := int64(0); !c.full(); {
		page := pages.Next()
		members, err := client.ZRevRange(ctx, key, start, start+page-1).Result()
		if err != nil {
			return err
		}
		for _, member := range members {
			c.add(identifyEntry(map[string]any{"message": member}))
			pages.Saw(len(member))
		}
		if int64(len(members)) < page {
			return nil
		}
		start += page
	}
	return nil
}

// identifyEntry reads Symfony's field "message", which holds headers and body as JSON and
// which PHP's redis extension may have serialized once more; else the plain fields.
func identifyEntry(fields map[string]any) []string {
	raw, found := fields["message"].(string)
	if !found {
		plainFields, err := json.Marshal(fields)
		if err != nil {
			return nil
		}
		return fromHeaders(plainFields)
	}
	if text, _, serialized := cutString([]byte(raw)); serialized && strings.HasPrefix(raw, "s:") {
		raw = text
	}
	var message struct {
		Body    json.RawMessage `json:"body"`
		Headers json.RawMessage `json:"headers"`
	}
	if json.Unmarshal([]byte(raw), &message) != nil {
		return Identify(nil, []byte(raw))
	}
	body := []byte(message.Body)
	var text string
	if json.Unmarshal(message.Body, &text) == nil {
		body = []byte(text)
	}
	return Identify(message.Headers, body)
}
