//go:build integration

package brokers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/certificates"
)

// withAndWithoutTLS runs the test twice.
func withAndWithoutTLS(t *testing.T, test func(*testing.T, *certificates.Certificate)) {
	t.Helper()
	certificate := certificates.Must(t)(certificates.New(t).Issue("127.0.0.1"))
	t.Run("without TLS", func(t *testing.T) { test(t, nil) })
	t.Run("with TLS", func(t *testing.T) { test(t, &certificate) })
}

func TestTheReplicaTakesTheMastersPlace(t *testing.T) {
	withAndWithoutTLS(t, func(t *testing.T, certificate *certificates.Certificate) {
		sentinel := brokers.Run(t, func(ctx context.Context) (*brokers.RedisSentinel, error) {
			return brokers.StartRedisSentinel(ctx, certificate)
		})
		before, err := sentinel.Master(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		client := before.Client()
		t.Cleanup(func() { _ = client.Close() })
		if err = client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if replicas, waitErr := client.Wait(t.Context(), 1, 0).Result(); replicas != 1 || waitErr != nil {
			t.Fatal(replicas, waitErr)
		}
		if err = sentinel.FailOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		after, err := sentinel.Master(t.Context())
		if err != nil || after == before {
			t.Fatalf("the master is still %s, %v", before.Address(), err)
		}
		promoted := after.Client()
		t.Cleanup(func() { _ = promoted.Close() })
		if value, err := promoted.Get(t.Context(), "key").Result(); value != "value" || err != nil {
			t.Errorf("the new master has %q, %v", value, err)
		}
	})
}

func TestAClusterSpreadsTheKeys(t *testing.T) {
	withAndWithoutTLS(t, func(t *testing.T, certificate *certificates.Certificate) {
		cluster := brokers.Run(t, func(ctx context.Context) (*brokers.RedisCluster, error) {
			return brokers.StartRedisCluster(ctx, certificate)
		})
		client := cluster.Client()
		t.Cleanup(func() { _ = client.Close() })
		kept := map[*brokers.Redis]int64{}
		for n := range 30 {
			key := fmt.Sprint("key ", n)
			if err := client.Set(t.Context(), key, "value", 0).Err(); err != nil {
				t.Fatal(err)
			}
			owner, err := cluster.Owner(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			kept[owner]++
		}
		for _, node := range cluster.Nodes() {
			own := node.Client()
			if size, err := own.DBSize(t.Context()).Result(); err != nil || size == 0 || size != kept[node] {
				t.Errorf("%s has %d keys, %v; want %d", node.Address(), size, err, kept[node])
			}
			_ = own.Close()
		}
	})
}
