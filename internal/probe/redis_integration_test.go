//go:build integration

package probe_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
)

// dial returns a client for the seeding of a test.
func dial(t testing.TB, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func do(t testing.TB, client redis.UniversalClient, command string) {
	t.Helper()
	var arguments []any
	for word := range strings.FieldsSeq(command) {
		arguments = append(arguments, word)
	}
	if err := client.Do(t.Context(), arguments...).Err(); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
}

// seedOrders makes the stream orders with the group workers, in every state that there is.
func seedOrders(t testing.TB, client redis.UniversalClient) {
	t.Helper()
	t.Cleanup(func() { _ = client.Close() })
	do(t, client, "XGROUP CREATE orders workers 0 MKSTREAM")
	for id := 1; id <= 10; id++ {
		do(t, client, fmt.Sprintf("XADD orders 17000000000%02d-0 message x", id))
	}
	do(t, client, "XREADGROUP GROUP workers one COUNT 4 STREAMS orders >")
	do(t, client, "XACK orders workers 1700000000001-0")
	do(t, client, "XDEL orders 1700000000001-0")
	// Two hours idle, after three deliveries: stuck behind a redeliver_timeout of one.
	do(t, client, "XCLAIM orders workers one 0 1700000000002-0 IDLE 7200000 RETRYCOUNT 3")
	now := time.Now()
	do(t, client, fmt.Sprintf("ZADD orders__queue %d later1 %d later2 %d due", now.Add(time.Hour).UnixMilli(), now.Add(time.Minute).UnixMilli(), now.Add(-time.Minute).UnixMilli()))
}

// seeded is what seedOrders makes, behind a redeliver_timeout that so many outlasted.
func seeded(stuck int64) probe.Observation {
	return probe.Observation{
		Pending: 6 + 1, Delayed: 2, InFlight: 3 - stuck, Stuck: stuck,
		Oldest:      of(time.UnixMilli(1700000000002).UTC()),
		Redelivered: of(int64(1)),
		Settings:    probe.Settings{PendingEntries: of(int64(3)), StreamLength: of(int64(9))},
	}
}

func TestRedisCountsMessagesByState(t *testing.T) {
	server := brokers.RunRedis(t)
	seedOrders(t, server.Client())
	for name, tested := range map[string]struct {
		dsn   string
		place probe.Place
		stuck int64
	}{
		"by the DSN's path":             {server.URL() + "/orders/workers", probe.Place{}, 1},
		"by the DSN's query":            {server.URL() + "?stream=orders&group=workers", probe.Place{}, 1},
		"by the resource":               {server.URL(), probe.Place{Stream: "orders", Group: "workers"}, 1},
		"by a redeliver_timeout of 3 h": {server.URL() + "/orders/workers?redeliver_timeout=10800", probe.Place{}, 0},
		"by valkey's scheme":            {"valkey://" + server.Address() + "/orders/workers", probe.Place{}, 1},
		"by its socket":                 {server.SocketURL() + "?stream=orders&group=workers", probe.Place{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			mustSee(t, look(t, target(t, redelivery.Redis, tested.dsn, tested.place)), seeded(tested.stuck))
		})
	}
}

func TestRedisCountsWhatWaitsWhenItDoesNotKnowTheLag(t *testing.T) {
	server := brokers.RunRedis(t)
	client := dial(t, server.URL())
	do(t, client, "XGROUP CREATE messages symfony 0 MKSTREAM")
	for id := 1; id <= 1200; id++ {
		do(t, client, fmt.Sprintf("XADD messages 1700000000000-%d message x", id))
	}
	do(t, client, "XDEL messages 1700000000000-700") // a hole among what waits: the lag is unknown
	groups, err := client.XInfoGroups(t.Context(), "messages").Result()
	if err != nil || groups[0].Lag != -1 {
		t.Fatalf("the lag is known: %+v, %v", groups, err)
	}
	if seen := look(t, target(t, redelivery.Redis, server.URL(), probe.Place{})); seen.Pending != 1199 || len(seen.Gaps) > 0 {
		t.Errorf("seen %s, want 1199 pending", shown(seen))
	}
}

func TestRedisThatCannotBeLookedAtSaysWhy(t *testing.T) {
	server := brokers.RunRedis(t)
	client := dial(t, server.URL())
	do(t, client, "XADD alone * message x")
	do(t, client, "SET text value")
	do(t, client, "XGROUP CREATE orders symfony 0 MKSTREAM")
	do(t, client, "ACL SETUSER blind on >hunter2 ~* +ping +hello")
	do(t, client, "ACL SETUSER limited on >hunter2 ~* +xinfo|groups +xlen +zcard +zcount +xpending")
	host := strings.TrimPrefix(server.URL(), "redis://")

	for name, tested := range map[string]struct {
		dsn, reason string
		says        []string
	}{
		"no such stream":         {"redis://" + host + "/nothing", probe.ReasonQueueNotFound, []string{"no stream nothing", host}},
		"a stream without group": {"redis://" + host + "/alone/workers", probe.ReasonQueueNotFound, []string{"no group workers"}},
		"a key of another type":  {"redis://" + host + "/text", probe.ReasonQueueNotFound, []string{"not a stream"}},
		"a wrong password":       {"redis://limited:hunter2wrong@" + host + "/orders", probe.ReasonAuthenticationFailed, nil},
		"no right at all":        {"redis://blind:hunter2@" + host + "/orders", probe.ReasonPermissionDenied, []string{"+xinfo|groups"}},
		"nobody on the port":     {"redis://:hunter2@127.0.0.1:1/orders", probe.ReasonUnreachable, []string{"127.0.0.1:1"}},
		"TLS that is not spoken": {"rediss://" + host + "/orders", probe.ReasonNoAnswer, []string{host, "2s to connect"}},
		"no cluster":             {"redis:?host[" + host + "]&stream=orders", probe.ReasonInvalidURL, []string{host, "no cluster"}},
		"no sentinel":            {"redis://" + host + "?sentinel=mymaster", probe.ReasonInvalidURL, []string{host, "no sentinel", "26379"}},
	} {
		t.Run(name, func(t *testing.T) {
			mustFail(t, target(t, redelivery.Redis, tested.dsn, probe.Place{}), tested.reason, tested.says...)
		})
	}
	t.Run("one missing right", func(t *testing.T) {
		do(t, client, "XADD orders * message x")
		seen := look(t, target(t, redelivery.Redis, "redis://limited:hunter2@"+host+"/orders", probe.Place{}))
		if len(seen.Gaps) != 1 || !strings.Contains(seen.Gaps[0], "+xrange") || seen.Pending != 1 {
			t.Errorf("seen %s, want a gap that names XRANGE, and 1 pending", shown(seen))
		}
	})
}

func TestRedisStreamThatIsRemovedMeanwhile(t *testing.T) {
	server := brokers.RunRedis(t)
	client := dial(t, server.URL())
	do(t, client, "XGROUP CREATE orders symfony 0 MKSTREAM")
	there := target(t, redelivery.Redis, server.URL()+"/orders", probe.Place{})
	look(t, there)
	do(t, client, "DEL orders")
	mustFail(t, there, probe.ReasonQueueNotFound, "orders")
}

func TestRedisWithAMillionMessages(t *testing.T) {
	server := brokers.RunRedis(t)
	client := dial(t, server.URL())
	body := strings.Repeat("x", 300)
	do(t, client, "XGROUP CREATE orders symfony 0 MKSTREAM")
	for range 100 {
		_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			for range 10_000 {
				pipe.XAdd(context.Background(), &redis.XAddArgs{Stream: "orders", Values: []any{"message", body}})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	do(t, client, "XREADGROUP GROUP symfony one COUNT 50000 NOACK STREAMS orders >")
	seen := measured(t, target(t, redelivery.Redis, server.URL()+"/orders", probe.Place{}))
	if seen.Pending != 950_000 || *seen.Settings.StreamLength != 1_000_000 {
		t.Errorf("seen %s, want 950000 pending of 1000000", shown(seen))
	}
	t.Run("of which half a million are pending and the lag is unknown", func(t *testing.T) {
		if err := client.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "symfony", Consumer: "one", Streams: []string{"orders", ">"}, Count: 500_000}).Err(); err != nil {
			t.Fatal(err)
		}
		waiting, err := client.XRevRangeN(t.Context(), "orders", "+", "-", 10).Result()
		if err != nil {
			t.Fatal(err)
		}
		do(t, client, "XDEL orders "+waiting[9].ID)
		seen := measured(t, target(t, redelivery.Redis, server.URL()+"/orders", probe.Place{}))
		// 999,999 entries less 500,000 pending: the 50,000 that were read without
		// acknowledgement are still in the stream, which the gap says.
		if seen.Pending != 499_999 || seen.InFlight != 500_000 || len(seen.Gaps) != 2 {
			t.Errorf("seen %s, want 499999 pending, 500000 in flight and two gaps", shown(seen))
		}
	})
}

// measured looks once and expects under a second, and under 20 MB of live memory more.
func measured(t testing.TB, target probe.Target) probe.Observation {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	started, peak := time.Now(), make(chan uint64)
	done := make(chan struct{})
	go func() {
		highest := before.HeapAlloc
		for {
			select {
			case <-done:
				peak <- highest
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&after)
				highest = max(highest, after.HeapAlloc)
			}
		}
	}()
	seen := look(t, target)
	took := time.Since(started)
	close(done)
	used := <-peak - before.HeapAlloc
	t.Logf("%s, at most %d KB of heap, garbage included", took.Round(time.Millisecond), used>>10)
	if took > time.Second || used > 20<<20 {
		t.Errorf("took %s and %d bytes, want under 1 s and 20 MB", took, used)
	}
	return seen
}
