//go:build integration

package probe_test

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/postgres"
)

// messagesTable is what Symfony's doctrine transport makes.
const messagesTable = `CREATE TABLE messenger_messages (id bigserial PRIMARY KEY, body text NOT NULL, headers text NOT NULL,
	queue_name varchar(190) NOT NULL, created_at timestamp(0) NOT NULL, available_at timestamp(0) NOT NULL, delivered_at timestamp(0));
	CREATE INDEX ON messenger_messages (queue_name, available_at, delivered_at, id)`

func execute(t testing.TB, target, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also in a cleanup
	connection, err := pgx.Connect(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(ctx) }()
	if _, err := connection.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

// inDatabase is a target whose messages are in the database of the URL.
func inDatabase(t testing.TB, dsn, databaseURL string, place probe.Place) probe.Target {
	t.Helper()
	config, err := database.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	pools := database.NewPools(database.PoolOptions{})
	t.Cleanup(pools.Close)
	made, err := probe.NewDoctrineTarget("orders", cmp.Or(dsn, databaseURL), place, config, pools, "test")
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestDoctrineCountsMessagesByState(t *testing.T) {
	server := postgres.Shared(t)
	target := server.NewDatabase(t)
	execute(t, target, messagesTable+`; ALTER DATABASE `+pgx.Identifier{nameOf(t, target)}.Sanitize()+` SET timezone = 'America/New_York'`)
	execute(t, target, `INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at, delivered_at)
		SELECT '', '[]', queue, u - age, u - age + later, u - delivered FROM (SELECT now() AT TIME ZONE 'utc' AS u) now, (VALUES
		('orders', interval '3 hours',   interval '0',      NULL::interval),
		('orders', interval '2 hours',   interval '0',      NULL),
		('orders', interval '1 minute',  interval '2 hour', NULL),
		('orders', interval '1 day',     interval '0',      interval '30 minutes'),
		('orders', interval '2 days',    interval '0',      interval '2 hours'),
		('orders', interval '2 days',    interval '0',      interval '3 hours'),
		('failed', interval '30 days',   interval '0',      NULL)) seed (queue, age, later, delivered)`)
	execute(t, target, `INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at, delivered_at)
		VALUES ('', '[]', 'orders', '2020-01-01', '2020-01-01', '9999-12-31')`) // a tombstone
	for name, tested := range map[string]struct {
		dsn             string
		place           probe.Place
		stuck, inFlight int64
	}{
		"by the DSN's query":                           {"doctrine://default?queue_name=orders", probe.Place{}, 2, 1},
		"by the resource":                              {"", probe.Place{QueueName: "orders"}, 2, 1},
		"by its schema":                                {"doctrine://default?table_name=public.messenger_messages&queue_name=orders", probe.Place{}, 2, 1},
		"by a redeliver_timeout of 1m":                 {"doctrine://default?redeliver_timeout=60&queue_name=orders", probe.Place{}, 3, 0},
		"by a redeliver_timeout of half a millisecond": {"doctrine://default?redeliver_timeout=0.0005&queue_name=orders", probe.Place{}, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			seen := look(t, inDatabase(t, tested.dsn, target, tested.place))
			if age := time.Since(*seen.Oldest); age < 48*time.Hour-time.Minute || age > 48*time.Hour+time.Minute {
				t.Errorf("the oldest is %s old, want two days", age)
			}
			seen.Oldest = nil
			mustSee(t, seen, probe.Observation{Pending: 2, Delayed: 1, InFlight: tested.inFlight, Stuck: tested.stuck})
		})
	}
	t.Run("an empty queue", func(t *testing.T) {
		mustSee(t, look(t, inDatabase(t, "doctrine://default?queue_name=nothing", target, probe.Place{})), probe.Observation{})
	})
}

func nameOf(t testing.TB, target string) string {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Path[1:]
}

func TestDoctrineThatCannotBeLookedAtSaysWhy(t *testing.T) {
	server := postgres.Shared(t)
	good := server.NewDatabase(t)
	execute(t, good, messagesTable+`; CREATE TABLE other (id bigint)`)
	execute(t, good, `CREATE ROLE blind LOGIN PASSWORD 'hunter2'`)
	t.Cleanup(func() { execute(t, server.URL("postgres"), `DROP ROLE blind`) })
	as := func(user, password, host string) string {
		parsed, err := url.Parse(good)
		if err != nil {
			t.Fatal(err)
		}
		parsed.User = url.UserPassword(user, password)
		if host != "" {
			parsed.Host = host
		}
		return parsed.String()
	}
	for name, tested := range map[string]struct {
		url    string
		place  probe.Place
		reason string
		says   []string
	}{
		"no such table":      {good, probe.Place{Table: "nothing"}, probe.ReasonQueueNotFound, []string{`"nothing"`}},
		"no such schema":     {good, probe.Place{Table: "nowhere.messenger_messages"}, probe.ReasonQueueNotFound, []string{`"nowhere"`}},
		"another table":      {good, probe.Place{Table: "other"}, probe.ReasonQueueNotFound, []string{`"other"`, "not one of Symfony's"}},
		"no right to read":   {as("blind", "hunter2", ""), probe.Place{}, probe.ReasonPermissionDenied, []string{"GRANT SELECT", "messenger_messages"}},
		"a wrong password":   {as("blind", "hunter2x", ""), probe.Place{}, probe.ReasonAuthenticationFailed, nil},
		"nobody on the port": {as("blind", "hunter2", "127.0.0.1:1"), probe.Place{}, probe.ReasonUnreachable, []string{"127.0.0.1:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			mustFail(t, inDatabase(t, "", tested.url, tested.place), tested.reason, tested.says...)
		})
	}
}

func TestDoctrineWithAMillionMessages(t *testing.T) {
	target := postgres.Shared(t).NewDatabase(t)
	execute(t, target, messagesTable)
	execute(t, target, `INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at, delivered_at)
		SELECT repeat('x', 300), '{"type":"App\\Message\\Order"}', 'default', '2024-01-01', CASE WHEN n % 10 = 0 THEN '2999-01-01' ELSE '2024-01-01' END::timestamp,
			CASE n % 10 WHEN 1 THEN '2024-01-02' WHEN 2 THEN now() AT TIME ZONE 'UTC' END
		FROM generate_series(1, 1000000) n`)
	execute(t, target, `VACUUM ANALYZE messenger_messages`)
	there := inDatabase(t, "", target, probe.Place{})
	look(t, there) // opens the pool
	mustSee(t, measured(t, there), probe.Observation{
		Pending: 700_000, Delayed: 100_000, InFlight: 100_000, Stuck: 100_000, Oldest: of(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)),
	})
}

// A policy makes each hundredth row slow to read, as a disk would: the whole queue takes
// six seconds, a sample of it half of one.
func TestDoctrineEstimatesAQueueThatIsTooLongToCount(t *testing.T) {
	server := postgres.Shared(t)
	target := server.NewDatabase(t)
	execute(t, target, messagesTable)
	execute(t, target, `INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at, delivered_at)
		SELECT repeat('x', 900), '[]', 'default', '2024-01-01', timestamp '2024-01-01' + n * interval '1 s', CASE n % 4 WHEN 1 THEN timestamp '2024-02-01' END
		FROM generate_series(1, 60000) n`)
	execute(t, target, `CREATE ROLE slow LOGIN PASSWORD 'hunter2'; GRANT SELECT ON messenger_messages TO slow;
		ALTER TABLE messenger_messages ENABLE ROW LEVEL SECURITY;
		CREATE POLICY slow ON messenger_messages USING (CASE WHEN id % 100 = 0 THEN pg_sleep(0.01) IS NOT NULL ELSE true END)`)
	t.Cleanup(func() {
		execute(t, target, `DROP OWNED BY slow`)
		execute(t, server.URL("postgres"), `DROP ROLE slow`)
	})
	there := inDatabase(t, "", server.URLFor("slow", "hunter2", nameOf(t, target)), probe.Place{})
	seen := look(t, there)
	about := func(what string, got, want int64) {
		if got < want*4/5 || got > want*6/5 {
			t.Errorf("%d %s, want about %d", got, what, want)
		}
	}
	about("pending", seen.Pending, 45_000)
	about("stuck", seen.Stuck, 15_000)
	if seen.Delayed != 0 || seen.InFlight != 0 {
		t.Errorf("%d delayed and %d in flight, want none", seen.Delayed, seen.InFlight)
	}
	if want := time.Date(2024, 1, 1, 0, 0, 1, 0, time.UTC); seen.Oldest == nil || !seen.Oldest.Equal(want) {
		t.Errorf("the oldest is of %v, want exactly %s", seen.Oldest, want)
	}
	if want := []string{`"messenger_messages" could not be counted within 1s: the numbers are estimates from a sample of it`}; !slices.Equal(seen.Gaps, want) {
		t.Errorf("gaps %q, want %q", seen.Gaps, want)
	}
	mustSee(t, look(t, there), seen) // nothing changed
	execute(t, target, `DROP INDEX messenger_messages_queue_name_available_at_delivered_at_id_idx`)
	seen.Oldest, seen.AgeUnknown = nil, true
	seen.Gaps[0] += ", and the oldest message was not found: an index on queue_name and available_at is needed"
	mustSee(t, look(t, there), seen)
}

// Each transport's broker takes the connection and then says nothing for ten seconds.
func TestASlowBrokerIsLeftAfterTheTimeLimit(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				time.Sleep(10 * time.Second)
				_ = connection.Close()
			}()
		}
	}()
	address := listener.Addr().String()
	for name, slow := range map[string]probe.Target{
		"redis":      target(t, redelivery.Redis, "redis://"+address, probe.Place{}),
		"amqp":       target(t, redelivery.AMQP, "http://"+address, probe.Place{Queue: "orders"}),
		"beanstalkd": target(t, redelivery.Beanstalkd, "beanstalkd://"+address, probe.Place{}),
		"sqs":        target(t, redelivery.SQS, "sqs://key:secret@"+address+"/orders?sslmode=disable", probe.Place{}),
		"doctrine":   inDatabase(t, "", "postgresql://app:secret@"+address+"/shop", probe.Place{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			mustFail(t, slow, probe.ReasonNoAnswer, "3s", address)
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("left after %s", took)
			}
		})
	}
}
