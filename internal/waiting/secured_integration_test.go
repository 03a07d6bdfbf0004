//go:build integration

package waiting

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/certificates"
	"github.com/messaginginbox/operator/test/postgres"
	"github.com/messaginginbox/operator/test/symfony"
)

func newCertificate(t *testing.T) *certificates.Certificate {
	t.Helper()
	certificate := certificates.Must(t)(certificates.New(t).Issue("127.0.0.1"))
	return &certificate
}

// seedFailed makes 500 entries, the first of which is delivered, and 300 delayed messages:
// more than a page each.
func seedFailed(t *testing.T, client redis.UniversalClient) (ids []string) {
	t.Helper()
	t.Cleanup(func() { _ = client.Close() })
	ctx := t.Context()
	for n := range 800 {
		id := "order-" + time.Duration(n).String()
		ids = append(ids, id)
		message := `{"body":"{}","headers":{"message_id":"` + id + `"}}`
		var err error
		if n < 500 {
			err = client.XAdd(ctx, &redis.XAddArgs{Stream: "failed", Values: []any{"message", message}}).Err()
		} else {
			err = client.ZAdd(ctx, "failed__queue", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli() + int64(n)), Member: message}).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(client.XGroupCreate(ctx, "failed", "symfony", "0").Err(),
		client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "symfony", Consumer: "one", Streams: []string{"failed", ">"}, Count: 1}).Err())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

func mustReadExactly(t *testing.T, target probe.Target, want []string) {
	t.Helper()
	messages := mustRead(t, Limit, target)
	if !slices.Equal(messages.IDs, want) || messages.Unidentified != 0 || messages.Exceeded != "" {
		t.Errorf("%d ids of %d, %d unidentified, exceeded %q", len(messages.IDs), len(want), messages.Unidentified, messages.Exceeded)
	}
}

func redisTarget(t *testing.T, dsn string, certificate *certificates.Certificate) probe.Target {
	t.Helper()
	target, err := probe.NewTarget("failed", redelivery.Redis, dsn, probe.Place{Stream: "failed"})
	if err == nil && certificate != nil {
		target, err = target.WithAuthorities(certificate.Authority)
	}
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func mustNotRead(t *testing.T, target probe.Target, reason string, words ...string) {
	t.Helper()
	_, err := Read(t.Context(), []probe.Target{target}, Limit)
	var failure *probe.Failure
	if !errors.As(err, &failure) || failure.Reason != reason {
		t.Fatalf("error %v, want one of reason %s", err, reason)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

func TestAStreamThroughTLS(t *testing.T) {
	certificate := newCertificate(t)
	server := brokers.RunRedisTLS(t, *certificate)
	ids := seedFailed(t, server.Client())
	mustReadExactly(t, redisTarget(t, server.URL(), certificate), ids)
	mustNotRead(t, redisTarget(t, server.URL(), nil), probe.ReasonTLSFailed, "transport failed", "not trusted", "observe.caSecretRef")
}

func TestAStreamBehindASentinel(t *testing.T) {
	for name, certificate := range map[string]*certificates.Certificate{"without TLS": nil, "with TLS": newCertificate(t)} {
		t.Run(name, func(t *testing.T) {
			sentinel := brokers.Run(t, func(ctx context.Context) (*brokers.RedisSentinel, error) {
				return brokers.StartRedisSentinel(ctx, certificate)
			})
			master, err := sentinel.Master(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			client := master.Client()
			ids := seedFailed(t, client)
			scheme := "redis://"
			if certificate != nil {
				scheme = "rediss://"
			}
			target := redisTarget(t, scheme+sentinel.Address()+"?sentinel=mymaster", certificate)
			mustReadExactly(t, target, ids)
			if replicas, waitErr := client.Wait(t.Context(), 1, 0).Result(); replicas != 1 || waitErr != nil {
				t.Fatal(replicas, waitErr)
			}
			if err = sentinel.FailOver(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustReadExactly(t, target, ids)
		})
	}
}

func TestAStreamOfACluster(t *testing.T) {
	for name, certificate := range map[string]*certificates.Certificate{"without TLS": nil, "with TLS": newCertificate(t)} {
		t.Run(name, func(t *testing.T) {
			cluster := brokers.Run(t, func(ctx context.Context) (*brokers.RedisCluster, error) {
				return brokers.StartRedisCluster(ctx, certificate)
			})
			var hosts []string
			for _, node := range cluster.Nodes() {
				hosts = append(hosts, node.URL())
			}
			stream, err := cluster.Owner(t.Context(), "failed")
			if err != nil {
				t.Fatal(err)
			}
			delayed, err := cluster.Owner(t.Context(), "failed__queue")
			if err != nil || stream == delayed {
				t.Fatalf("both keys are on one node, %v", err)
			}
			ids := seedFailed(t, cluster.Client())
			target := redisTarget(t, strings.Join(hosts, ","), certificate)
			mustReadExactly(t, target, ids)
			if err = delayed.Kill(); err != nil {
				t.Fatal(err)
			}
			mustNotRead(t, target, probe.ReasonUnreachable, "transport failed", "the node "+delayed.Address())
		})
	}
}

func TestATableOfAnotherDatabaseThroughTLS(t *testing.T) {
	server := postgres.Run(t, postgres.Options{TLS: true, HBA: []string{"hostnossl all all all reject"}})
	url := server.NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err = conn.Exec(t.Context(), symfony.MessagesTable+`; INSERT INTO messenger_messages (headers, body, queue_name) VALUES ('{"message_id":"a"}', '', 'failed'), ('{"message_id":"b"}', '', 'other')`); err != nil {
		t.Fatal(err)
	}
	inbox, err := database.Parse(postgres.Shared(t).URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	pools := database.NewPools(database.PoolOptions{MaxConns: 1})
	t.Cleanup(pools.Close)
	bare, _, _ := strings.Cut(url, "?")
	target, err := probe.NewDoctrineTarget("failed", bare+"?sslmode=verify-full", probe.Place{QueueName: "failed"}, inbox, pools, "test")
	if err != nil {
		t.Fatal(err)
	}
	mustNotRead(t, target, probe.ReasonTLSFailed, "transport failed", "not trusted", "observe.caSecretRef")
	if target, err = target.WithAuthorities(server.CAPEM()); err != nil {
		t.Fatal(err)
	}
	mustReadExactly(t, target, []string{"a"})
}
