//go:build integration

package probe_test

import (
	"context"
	"strings"
	"testing"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/certificates"
)

func runCluster(t testing.TB, certificate *certificates.Certificate) (cluster *brokers.RedisCluster, addresses []string) {
	t.Helper()
	cluster = brokers.Run(t, func(ctx context.Context) (*brokers.RedisCluster, error) {
		return brokers.StartRedisCluster(ctx, certificate)
	})
	for _, node := range cluster.Nodes() {
		addresses = append(addresses, node.Address())
	}
	return cluster, addresses
}

func owner(t testing.TB, cluster *brokers.RedisCluster, key string) *brokers.Redis {
	t.Helper()
	found, err := cluster.Owner(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRedisCluster(t *testing.T) {
	cluster, addresses := runCluster(t, nil)
	seedOrders(t, cluster.Client())
	stream, delayed := owner(t, cluster, "orders"), owner(t, cluster, "orders__queue")
	if stream == delayed {
		t.Fatal("both keys are on one node")
	}
	for _, node := range cluster.Nodes() {
		doOnce(t, node, "ACL SETUSER prober on >hunter2prober ~* +xinfo|groups +xlen +xpending +xrange +zcount +zcard +cluster|slots")
		doOnce(t, node, "ACL SETUSER blind on >hunter2blind ~* +xinfo|groups +xlen +xpending +xrange +zcount +zcard")
	}
	list := func(login string) string {
		return "redis://" + login + strings.Join(addresses, ",redis://") + "/orders/workers"
	}
	for name, dsn := range map[string]string{
		"by all its nodes":                list(""),
		"by all its nodes, as a user":     list("prober:hunter2prober@"),
		"by host[...]":                    "redis:?host[" + strings.Join(addresses, "]&host[") + "]&stream=orders&group=workers",
		"by one host[...]":                "redis:?host[" + delayed.Address() + "]&stream=orders&group=workers",
		"by one node, with redis_cluster": "redis://" + delayed.Address() + "/orders/workers?redis_cluster=1",
		"with a node that is not there":   "redis://127.0.0.1:1," + stream.Address() + "/orders/workers",
	} {
		t.Run(name, func(t *testing.T) {
			mustSee(t, look(t, target(t, redelivery.Redis, dsn, probe.Place{})), seeded(1))
		})
	}
	t.Run("a node of it, taken for a server", func(t *testing.T) {
		mustFail(t, target(t, redelivery.Redis, "redis://"+delayed.Address()+"/orders/workers", probe.Place{}), probe.ReasonInvalidURL, "redis_cluster=1")
	})
	t.Run("a stream that no node has", func(t *testing.T) {
		mustFail(t, target(t, redelivery.Redis, list(""), probe.Place{Stream: "nothing"}), probe.ReasonQueueNotFound, "no stream nothing")
	})
	t.Run("no right to find the nodes", func(t *testing.T) {
		mustFail(t, target(t, redelivery.Redis, list("blind:hunter2blind@"), probe.Place{}), probe.ReasonPermissionDenied, "CLUSTER SLOTS", "+cluster|slots")
	})
	there := target(t, redelivery.Redis, list(""), probe.Place{})
	t.Run("slots without a node", func(t *testing.T) {
		for _, node := range cluster.Nodes() {
			doOnce(t, node, "CLUSTER DELSLOTS 0")
		}
		mustFail(t, there, probe.ReasonUnreachable, "slots have no node", "redis-cli cluster info")
		doOnce(t, cluster.Nodes()[0], "CLUSTER ADDSLOTS 0")
	})
	t.Run("a node that is down", func(t *testing.T) {
		kill(t, delayed)
		want := "redis://" + strings.Join(addresses, ",") + ", the node " + delayed.Address() + ": the connection was refused"
		for range 10 { // in the same words each time
			mustFail(t, there, probe.ReasonUnreachable, want)
		}
	})
	t.Run("all its nodes are down", func(t *testing.T) {
		kill(t, cluster.Nodes()...)
		want := "redis://" + strings.Join(addresses, ",") + ": the connection was refused"
		for range 10 { // in the same words each time
			mustFail(t, there, probe.ReasonUnreachable, want)
		}
	})
}

func doOnce(t testing.TB, node *brokers.Redis, command string) {
	t.Helper()
	client := node.Client()
	defer func() { _ = client.Close() }()
	do(t, client, command)
}

func kill(t testing.TB, nodes ...*brokers.Redis) {
	t.Helper()
	for _, node := range nodes {
		if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRedisClusterThroughTLS(t *testing.T) {
	authority := certificates.New(t)
	certificate := certificates.Must(t)(authority.Issue("127.0.0.1"))
	cluster, addresses := runCluster(t, &certificate)
	seedOrders(t, cluster.Client())
	there := target(t, redelivery.Redis, "rediss://"+strings.Join(addresses, ",rediss://")+"/orders/workers", probe.Place{})
	mustSee(t, look(t, trusting(t, there, authority.PEM)), seeded(1))
	mustFail(t, there, probe.ReasonTLSFailed, strings.Join(addresses, ","), untrusted, nextStep)
}
