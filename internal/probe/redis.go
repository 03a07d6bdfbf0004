package probe

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// scanPage is how many entries one command returns: redis serves nobody else meanwhile.
	scanPage = 500
	// scanLimit is how many entries one look goes through at most.
	scanLimit = 10_000
	// countBytes is how much one look fetches of messages that it only counts.
	countBytes = 2 << 20
)

// redisStream looks at the stream, its consumer group and the set of delayed messages.
func redisStream(ctx context.Context, target Target) (Observation, error) {
	client, err := NewRedis(target)
	if err != nil {
		return Observation{}, err
	}
	defer func() { _ = client.Close() }() // nothing depends on a clean goodbye
	look := &streamLook{client: client, target: target}
	look.stream, look.delayed, look.group = target.StreamKeys()
	for _, part := range []func(context.Context) error{look.readGroup, look.readLength, look.readPending, look.readWaiting, look.readDelayed} {
		if err := part(ctx); err != nil {
			return Observation{}, look.explain(err)
		}
	}
	return look.seen, nil
}

// streamLook is one look under way.
type streamLook struct {
	client                 redis.UniversalClient
	target                 Target
	stream, delayed, group string

	state redis.XInfoGroup
	seen  Observation
}

func (l *streamLook) readGroup(ctx context.Context) error {
	groups, err := l.client.XInfoGroups(ctx, l.stream).Result()
	if err != nil {
		return err
	}
	index := slices.IndexFunc(groups, func(group redis.XInfoGroup) bool { return group.Name == l.group })
	if index < 0 {
		return failed(ReasonQueueNotFound, "%s: the stream %s has no group %s: check observe.group, or the DSN's path /stream/group", l.target.Broker(), l.stream, l.group)
	}
	l.state = groups[index]
	l.seen.Settings.PendingEntries = &l.state.Pending
	return nil
}

func (l *streamLook) readLength(ctx context.Context) error {
	length, err := l.client.XLen(ctx, l.stream).Result()
	l.seen.Settings.StreamLength = &length
	return err
}

// readPending sorts the entries that were delivered and not acknowledged.
func (l *streamLook) readPending(ctx context.Context) error {
	var read, redelivered int64
	start := "-"
	for read < min(l.state.Pending, scanLimit) {
		entries, err := l.client.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: l.stream, Group: l.group, Start: start, End: "+", Count: scanPage}).Result()
		if missing := l.missingRight(err); missing || err != nil {
			l.seen.InFlight, l.seen.AgeUnknown = l.state.Pending, missing
			return unless(missing, err)
		}
		for _, entry := range entries {
			if entry.Idle >= l.target.RedeliverTimeout {
				l.seen.Stuck++
			}
			if entry.RetryCount > 1 {
				redelivered++
			}
			if entered, known := enteredAt(entry.ID); known {
				l.seen.sawOldest(entered)
			}
			start = "(" + entry.ID
		}
		read += int64(len(entries))
		if len(entries) < scanPage {
			break
		}
	}
	l.seen.Redelivered = &redelivered
	l.seen.InFlight = max(l.state.Pending-l.seen.Stuck, 0)
	if l.state.Pending > scanLimit {
		l.seen.gap(fmt.Sprintf("%s has more than %d pending entries: which of them are stuck was counted among the oldest %d only", l.stream, scanLimit, scanLimit))
	}
	return nil
}

// readWaiting counts what was not delivered yet. Redis knows the lag but for a stream
// from which entries were deleted in between; then the entries themselves are counted.
func (l *streamLook) readWaiting(ctx context.Context) error {
	first, err := l.client.XRangeN(ctx, l.stream, "("+l.state.LastDeliveredID, "+", 1).Result()
	missing := l.missingRight(err)
	if err != nil && !missing {
		return err
	}
	l.seen.AgeUnknown = l.seen.AgeUnknown || missing
	if len(first) > 0 {
		if entered, known := enteredAt(first[0].ID); known {
			l.seen.sawOldest(entered)
		}
	}
	// The client shows a lag that is not known as -1, and one that a server before redis 7
	// does not tell as 0.
	if l.state.Lag < 0 || l.state.Lag == 0 && len(first) > 0 {
		return l.countWaiting(ctx)
	}
	l.seen.Pending = l.state.Lag
	return nil
}

// countWaiting counts the entries after the last that was delivered. Where they are many it
// counts those before instead: a worker deletes what it has acknowledged, so that these are
// few.
func (l *streamLook) countWaiting(ctx context.Context) error {
	last, length := l.state.LastDeliveredID, *l.seen.Settings.StreamLength
	waiting, complete, err := l.count(ctx, "("+last, "+")
	if err == nil && !complete {
		var delivered int64
		if delivered, complete, err = l.count(ctx, "-", last); complete {
			waiting = max(length-delivered, waiting)
		}
	}
	if missing := l.missingRight(err); missing || err != nil {
		return unless(missing, err)
	}
	l.seen.Pending = waiting
	if !complete {
		// What is neither pending nor acknowledged and deleted waits.
		l.seen.Pending = max(length-l.state.Pending, waiting)
		l.seen.gap(fmt.Sprintf("redis does not know the lag of the group %s, and the messages are too many or too large to count them: those that wait are taken to be the stream's length without the pending entries, which counts too many unless delete_after_ack is on", l.group))
	}
	return nil
}

// count goes through the entries of a range; complete is false when that is given up.
func (l *streamLook) count(ctx context.Context, start, end string) (count int64, complete bool, err error) {
	total := 0
	for entry, err := range Entries(ctx, l.client, l.stream, start, end) {
		if err != nil {
			return 0, false, err
		}
		if total += sizeOf(entry); total > countBytes || count == scanLimit {
			return count, false, nil
		}
		count++
	}
	return count, true, nil
}

// readDelayed counts the delayed messages. One whose time has come waits for a worker to
// move it to the stream.
func (l *streamLook) readDelayed(ctx context.Context) error {
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	due, err := l.client.ZCount(ctx, l.delayed, "-inf", now).Result()
	if missing := l.missingRight(err); missing || err != nil {
		return unless(missing, err)
	}
	all, err := l.client.ZCard(ctx, l.delayed).Result()
	if missing := l.missingRight(err); missing || err != nil {
		return unless(missing, err)
	}
	l.seen.Pending += due
	l.seen.Delayed = max(all-due, 0)
	return nil
}

// missingRight notes what the user may not do.
func (l *streamLook) missingRight(err error) bool {
	if err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
		return false
	}
	if gap := l.denied(err.Error()); !slices.Contains(l.seen.Gaps, gap) {
		l.seen.gap(gap)
	}
	return true
}

// deniedCommand is how an answer of redis names the command; without one it is about a key.
var deniedCommand = regexp.MustCompile(`'([a-z|]+)' command`)

// denied says which right is missing, and how to grant it.
func (l *streamLook) denied(answer string) string {
	found := deniedCommand.FindStringSubmatch(answer)
	if found == nil {
		return fmt.Sprintf("the user may not read the keys %s and %s: grant them with ACL SETUSER (~%[1]s ~%[2]s)", l.stream, l.delayed)
	}
	return fmt.Sprintf("the user may not run %s on %s: grant it with ACL SETUSER (+%s)", strings.ToUpper(strings.ReplaceAll(found[1], "|", " ")), l.stream, found[1])
}

func unless(handled bool, err error) error {
	if handled {
		return nil
	}
	return err
}

// explain says what an answer of redis means here.
func (l *streamLook) explain(err error) error {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return err
	}
	text := answer.Error()
	word, _, _ := strings.Cut(text, " ")
	switch {
	case strings.Contains(text, "no such key"):
		return failed(ReasonQueueNotFound, "%s has no stream %s: check observe.stream, or the DSN's path /stream/group; Symfony makes it with the first message", l.target.Broker(), l.stream)
	case word == "WRONGTYPE":
		return failed(ReasonQueueNotFound, "%s: the key %s is not a stream: check observe.stream, or the DSN's path /stream/group", l.target.Broker(), l.stream)
	case word == "NOGROUP":
		return failed(ReasonQueueNotFound, "%s: the stream %s or its group %s was removed meanwhile", l.target.Broker(), l.stream, l.group)
	case word == "WRONGPASS", word == "NOAUTH", strings.HasPrefix(text, "ERR AUTH"):
		return failed(ReasonAuthenticationFailed, "%s refused the user or the password of the DSN", l.target.Broker())
	case word == "NOPERM":
		return failed(ReasonPermissionDenied, "%s: %s", l.target.Broker(), l.denied(text))
	case word == "CLUSTERDOWN":
		return failed(ReasonUnreachable, "%s: the cluster serves no keys while some of its slots have no node: redis-cli cluster info, and cluster nodes, say which", l.target.Broker())
	case strings.Contains(text, "cluster support disabled"):
		return failed(ReasonInvalidURL, "%s is no cluster: several hosts, host[...] and redis_cluster in a DSN are for one; write a single host before the path", l.target.Broker())
	case word == "MOVED":
		return failed(ReasonInvalidURL, "%s is a node of a cluster: list its nodes in the DSN, or add redis_cluster=1", l.target.Broker())
	}
	return err
}
