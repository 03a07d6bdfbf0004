package brokers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/test/consumer"
)

const (
	// group is the consumer group that all workers share.
	group = "symfony"
	// messageField of a stream's entry holds the message.
	messageField = "message"
)

// moveDue takes one due message from the sorted set of the delayed ones and appends it to
// the stream, both or neither. (Symfony sends two commands: a crash between them loses the message.)
var moveDue = redis.NewScript(`
	local due = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, 1)
	if #due == 0 then return 0 end
	redis.call('ZREM', KEYS[1], due[1])
	redis.call('XADD', KEYS[2], '*', ARGV[2], string.sub(due[1], 34))
	return 1`)

// Redis is the redis transport: a stream with one consumer group, and a sorted set of
// delayed messages. Acknowledged entries are deleted, as Symfony's delete_after_ack does.
type Redis struct {
	client           *redis.Client
	stream           string
	consumer         string
	redeliverTimeout time.Duration
	claimInterval    time.Duration
	nextClaim        time.Time
	ownPending       bool
}

// OpenRedis connects and makes the consumer group. A worker that starts again under the
// same consumer name gets its own unacknowledged entries at once. Those of others it claims
// when they are older than redeliverTimeout, one per claimInterval.
func OpenRedis(ctx context.Context, url, stream, name string, redeliverTimeout, claimInterval time.Duration) (*Redis, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("the URL of Redis: %w", err)
	}
	options.PoolSize = 1
	options.DisableIdentity = true
	b := &Redis{
		client: redis.NewClient(options), stream: stream, consumer: name,
		redeliverTimeout: redeliverTimeout, claimInterval: claimInterval, ownPending: true,
	}
	err = b.client.XGroupCreateMkStream(ctx, stream, group, "0").Err()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return nil, errors.Join(fmt.Errorf("make the consumer group of the stream %s: %w", stream, err), b.client.Close())
	}
	return b, nil
}

func (b *Redis) delayed() string { return b.stream + "__queue" }

// Publish appends to the stream, or adds to the delayed messages. Scores are the due time in
// milliseconds since 1970.
func (b *Redis) Publish(ctx context.Context, message consumer.Message, delay time.Duration) error {
	text, err := encode(message)
	if err != nil {
		return err
	}
	if delay > 0 {
		due := float64(time.Now().Add(delay).UnixMilli())
		// A prefix of 33 bytes keeps equal messages apart.
		member := consumer.NewMessageID() + ":" + text
		err = b.client.ZAdd(ctx, b.delayed(), redis.Z{Score: due, Member: member}).Err()
	} else {
		err = b.client.XAdd(ctx, &redis.XAddArgs{Stream: b.stream, Values: []string{messageField, text}}).Err()
	}
	if err != nil {
		return fmt.Errorf("send message %s to the stream %s: %w", message.ID, b.stream, err)
	}
	return nil
}

// Receive moves due messages to the stream, then reads an own pending entry, else a new one.
func (b *Redis) Receive(ctx context.Context) (consumer.Delivery, bool, error) {
	if err := b.moveDue(ctx); err != nil {
		return consumer.Delivery{}, false, err
	}
	if !b.ownPending && !time.Now().Before(b.nextClaim) {
		if err := b.claimOldest(ctx); err != nil {
			return consumer.Delivery{}, false, err
		}
	}
	if b.ownPending {
		delivery, ready, err := b.read(ctx, "0")
		if err != nil || ready {
			return delivery, ready, err
		}
		b.ownPending = false
	}
	return b.read(ctx, ">")
}

func (b *Redis) moveDue(ctx context.Context) error {
	for {
		moved, err := moveDue.Run(ctx, b.client, []string{b.delayed(), b.stream}, time.Now().UnixMilli(), messageField).Int()
		if err != nil {
			return fmt.Errorf("move delayed messages to the stream %s: %w", b.stream, err)
		}
		if moved == 0 {
			return nil
		}
	}
}

// claimOldest looks at the oldest pending entry of the group only, as Symfony does.
func (b *Redis) claimOldest(ctx context.Context) error {
	pending, err := b.client.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: b.stream, Group: group, Start: "-", End: "+", Count: 1}).Result()
	if err != nil {
		return fmt.Errorf("look for pending entries of the stream %s: %w", b.stream, err)
	}
	for _, entry := range pending {
		switch {
		case entry.Consumer == b.consumer:
			b.ownPending = true
			return nil
		case entry.Idle >= b.redeliverTimeout:
			err := b.client.XClaimJustID(ctx, &redis.XClaimArgs{
				Stream: b.stream, Group: group, Consumer: b.consumer, MinIdle: b.redeliverTimeout, Messages: []string{entry.ID},
			}).Err()
			if err != nil {
				return fmt.Errorf("claim entry %s of the stream %s: %w", entry.ID, b.stream, err)
			}
			b.ownPending = true
		}
	}
	b.nextClaim = time.Now().Add(b.claimInterval)
	return nil
}

func (b *Redis) read(ctx context.Context, from string) (consumer.Delivery, bool, error) {
	streams, err := b.client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: group, Consumer: b.consumer, Streams: []string{b.stream, from}, Count: 1, Block: -1,
	}).Result()
	if errors.Is(err, redis.Nil) || (err == nil && (len(streams) == 0 || len(streams[0].Messages) == 0)) {
		return consumer.Delivery{}, false, nil
	}
	if err != nil {
		return consumer.Delivery{}, false, fmt.Errorf("read the stream %s: %w", b.stream, err)
	}
	entry := streams[0].Messages[0]
	text, ok := entry.Values[messageField].(string)
	if !ok {
		return consumer.Delivery{}, false, fmt.Errorf("entry %s of the stream %s has no field %s", entry.ID, b.stream, messageField)
	}
	message, err := decode(text)
	if err != nil {
		return consumer.Delivery{}, false, fmt.Errorf("entry %s of the stream %s: %w", entry.ID, b.stream, err)
	}
	return consumer.Delivery{Message: message, Tag: entry.ID}, true, nil
}

// Acknowledge removes the entry from the group's pending ones and from the stream, both or neither.
func (b *Redis) Acknowledge(ctx context.Context, delivery consumer.Delivery) error {
	_, err := b.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.XAck(ctx, b.stream, group, delivery.Tag)
		pipe.XDel(ctx, b.stream, delivery.Tag)
		return nil
	})
	if err != nil {
		return fmt.Errorf("acknowledge message %s: %w", delivery.ID, err)
	}
	return nil
}

// Reject does the same as Acknowledge, as Symfony's delete_after_reject does.
func (b *Redis) Reject(ctx context.Context, delivery consumer.Delivery) error {
	return b.Acknowledge(ctx, delivery)
}

// Waiting counts the entries of the stream and the delayed messages.
func (b *Redis) Waiting(ctx context.Context) (int64, error) {
	delayed, err := b.client.ZCard(ctx, b.delayed()).Result()
	if err != nil {
		return 0, err
	}
	// Last, since messages move from the delayed ones to the stream.
	entries, err := b.client.XLen(ctx, b.stream).Result()
	return delayed + entries, err
}

// Close ends the connection.
func (b *Redis) Close(context.Context) error { return b.client.Close() }
