//go:build integration

package probe_test

import (
	"errors"
	"fmt"
	"strconv"
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
	do(t, client, "ACL SETUSER elsewhere on >hunter2 ~payments* +@all")
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
		"a right to other keys":  {"redis://elsewhere:hunter2@" + host + "/orders", probe.ReasonPermissionDenied, []string{"~orders ~orders__queue"}},
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
	const million = 1_000_000
	fillStream(t, client, million)
	oldest := oldestOf(t, client)
	orders := target(t, redelivery.Redis, server.URL()+"/orders", probe.Place{})
	t.Run("that all wait", func(t *testing.T) {
		mustSee(t, measured(t, orders), probe.Observation{
			Pending: million, Oldest: oldest, Redelivered: of(int64(0)),
			Settings: probe.Settings{PendingEntries: of(int64(0)), StreamLength: of(int64(million))},
		})
	})
	t.Run("behind a lag that redis does not know", func(t *testing.T) {
		deliver(t, client, "symfony", 1000, false)
		waiting, err := client.XRevRangeN(t.Context(), "orders", "+", "-", 10).Result()
		if err != nil {
			t.Fatal(err)
		}
		do(t, client, "XDEL orders "+waiting[9].ID)
		mustSee(t, measured(t, orders), probe.Observation{
			Pending: million - 1001, InFlight: 1000, Oldest: oldest, Redelivered: of(int64(0)),
			Settings: probe.Settings{PendingEntries: of(int64(1000)), StreamLength: of(int64(million - 1))},
		})
	})
	t.Run("behind such a lag, with too many before them", func(t *testing.T) {
		deliver(t, client, "symfony", 50_000, true)
		seen := measured(t, orders)
		// The 50,000 that were read without acknowledgement are still in the stream.
		if seen.Pending != million-1001 || seen.InFlight != 1000 || len(seen.Gaps) != 1 || !strings.Contains(seen.Gaps[0], "counts too many") {
			t.Errorf("seen %s, want %d pending and a gap that says that they are too many", shown(seen), million-1001)
		}
	})
	t.Run("that are all delivered and not acknowledged", func(t *testing.T) {
		do(t, client, "XGROUP CREATE orders archive 0")
		deliver(t, client, "archive", million, false)
		mustSee(t, measured(t, target(t, redelivery.Redis, server.URL()+"/orders/archive", probe.Place{})), probe.Observation{
			InFlight: million - 1, Oldest: oldest, Redelivered: of(int64(0)),
			Settings: probe.Settings{PendingEntries: of(int64(million - 1)), StreamLength: of(int64(million - 1))},
			Gaps:     []string{"orders has more than 10000 pending entries: which of them are stuck was counted among the oldest 10000 only"},
		})
	})
}

// No more of large messages is fetched than a look may hold.
func TestRedisWithLargeMessagesBehindAnUnknownLag(t *testing.T) {
	server := brokers.RunRedis(t)
	client := dial(t, server.URL())
	do(t, client, "XGROUP CREATE orders symfony 0 MKSTREAM")
	body := strings.Repeat("x", 100_000)
	for range 500 {
		if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "orders", Values: []any{"message", body}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := client.XRangeN(t.Context(), "orders", "-", "+", 300).Result()
	if err != nil {
		t.Fatal(err)
	}
	do(t, client, "XDEL orders "+entries[299].ID)
	if seen := measured(t, target(t, redelivery.Redis, server.URL()+"/orders", probe.Place{})); seen.Pending != 499 || len(seen.Gaps) > 0 {
		t.Errorf("seen %s, want 499 pending", shown(seen))
	}
	deliver(t, client, "symfony", 100, false)
	if seen := measured(t, target(t, redelivery.Redis, server.URL()+"/orders", probe.Place{})); seen.Pending != 399 || seen.InFlight != 100 || len(seen.Gaps) != 1 {
		t.Errorf("seen %s, want 399 pending, which is not sure, and 100 in flight", shown(seen))
	}
}

// fillStream makes the stream orders with a group, and adds so many messages.
func fillStream(t testing.TB, client *redis.Client, messages int) {
	t.Helper()
	do(t, client, "XGROUP CREATE orders symfony 0 MKSTREAM")
	const script = `for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'message', ARGV[2]) end`
	run(t, client, script, messages, strings.Repeat("x", 300))
}

// deliver hands messages of the stream orders to a worker, who acknowledges none of them.
// Without a trace they are delivered, and nothing knows that they are not acknowledged.
func deliver(t testing.TB, client *redis.Client, group string, messages int, withoutTrace bool) {
	t.Helper()
	const script = `
		local left, trace = tonumber(ARGV[2]), ARGV[3]
		while left > 0 do
			local count = math.min(left, 10000)
			if trace == '' then
				redis.call('XREADGROUP', 'GROUP', ARGV[1], 'one', 'COUNT', count, 'NOACK', 'STREAMS', KEYS[1], '>')
			else
				redis.call('XREADGROUP', 'GROUP', ARGV[1], 'one', 'COUNT', count, 'STREAMS', KEYS[1], '>')
			end
			left = left - count
		end`
	trace := "keep"
	if withoutTrace {
		trace = ""
	}
	run(t, client, script, group, messages, trace)
}

// run has redis itself do what would take as many commands.
func run(t testing.TB, client *redis.Client, script string, arguments ...any) {
	t.Helper()
	patient := client.WithTimeout(time.Minute)
	if err := patient.Eval(t.Context(), script, []string{"orders"}, arguments...).Err(); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
}

// oldestOf is when the first entry of the stream orders entered it.
func oldestOf(t testing.TB, client *redis.Client) *time.Time {
	t.Helper()
	first, err := client.XRangeN(t.Context(), "orders", "-", "+", 1).Result()
	if err != nil {
		t.Fatal(err)
	}
	milliseconds, _, _ := strings.Cut(first[0].ID, "-")
	number, err := strconv.ParseInt(milliseconds, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return of(time.UnixMilli(number).UTC())
}
