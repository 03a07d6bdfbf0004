//go:build integration

package probe_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/certificates"
)

func runSentinel(t testing.TB, certificate *certificates.Certificate) *brokers.RedisSentinel {
	t.Helper()
	return brokers.Run(t, func(ctx context.Context) (*brokers.RedisSentinel, error) {
		return brokers.StartRedisSentinel(ctx, certificate)
	})
}

func master(t testing.TB, sentinel *brokers.RedisSentinel) *brokers.Redis {
	t.Helper()
	found, err := sentinel.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRedisBehindASentinel(t *testing.T) {
	sentinel := runSentinel(t, nil)
	client := master(t, sentinel).Client()
	seedOrders(t, client)
	// Hosts of sentinels are asked all at once, so that one that is down delays nothing.
	const down, silentHost = "127.0.0.1:1", "192.0.2.1:26379"
	at := sentinel.Address()
	dsns := map[string]string{
		"by sentinel":                  "redis://" + at + "/orders/workers?sentinel=mymaster",
		"by redis_sentinel":            "redis://" + at + "/orders/workers?redis_sentinel=mymaster",
		"by sentinel_master":           "redis://" + at + "/orders/workers?sentinel_master=mymaster",
		"by host[...]":                 "redis:?host[" + at + "]&sentinel=mymaster&stream=orders&group=workers",
		"with a sentinel that is down": "redis:?host[" + down + "]&host[" + at + "]&sentinel=mymaster&stream=orders&group=workers",
		"with one that is silent":      "redis:?host[" + silentHost + "]&host[" + at + "]&sentinel=mymaster&stream=orders&group=workers",
	}
	for name, dsn := range dsns {
		t.Run(name, func(t *testing.T) {
			mustSee(t, look(t, target(t, redelivery.Redis, dsn, probe.Place{})), seeded(1))
		})
	}
	t.Run("a name that it does not know", func(t *testing.T) {
		mustFail(t, target(t, redelivery.Redis, "redis://:hunter2@"+at+"?sentinel=nobody", probe.Place{}), probe.ReasonQueueNotFound, at, "no master of the name nobody", "sentinel in the DSN")
	})
	t.Run("no sentinel is up", func(t *testing.T) {
		mustFail(t, target(t, redelivery.Redis, "redis:?host["+down+"]&host[127.0.0.1:2]&sentinel=mymaster", probe.Place{}), probe.ReasonUnreachable, "127.0.0.1:1,127.0.0.1:2")
	})
	t.Run("TLS that is not spoken", func(t *testing.T) {
		mustFail(t, target(t, redelivery.Redis, "rediss://"+at+"?sentinel=mymaster", probe.Place{}), probe.ReasonNoAnswer, at)
	})

	if replicas, err := client.Wait(t.Context(), 1, 0).Result(); replicas != 1 || err != nil {
		t.Fatal(replicas, err) // the replica has all of it
	}
	there := target(t, redelivery.Redis, dsns["by sentinel"], probe.Place{})
	if err := sentinel.FailOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("the new master after a failover", func(t *testing.T) { mustSee(t, look(t, there), seeded(1)) })
	t.Run("a master that is dead, and has no replica", func(t *testing.T) {
		last := master(t, sentinel)
		kill(t, last)
		mustFail(t, there, probe.ReasonUnreachable, at, "the master mymaster at "+last.Address(), "refused")
	})
}

func TestASilentMasterIsNotTheOtherMastersSilence(t *testing.T) {
	sentinel := runSentinel(t, nil)
	seedOrders(t, master(t, sentinel).Client())
	silentAddress, connections := silent(t)
	ip, port, err := net.SplitHostPort(silentAddress)
	if err != nil {
		t.Fatal(err)
	}
	if err = sentinel.Watch(t.Context(), "other", ip, port); err != nil {
		t.Fatal(err)
	}
	news := make(chan string, 10)
	observer := probe.NewObserver(time.Hour, time.Now, func(owner string) { news <- owner })
	t.Cleanup(observer.Close)
	at := func(name string) []probe.Target {
		return []probe.Target{target(t, redelivery.Redis, "redis://"+sentinel.Address()+"/orders/workers?sentinel="+name, probe.Place{})}
	}
	for _, owner := range []string{"one", "two", "three"} {
		observer.Results(owner, at("other"))
	}
	for connections.Load() == 0 { // the silent one has its first turn
		time.Sleep(10 * time.Millisecond)
	}
	observer.Results("alive", at("mymaster"))
	for range 4 {
		<-news
	}
	result := observer.Results("alive", at("mymaster"))[0]
	if result.Failure != nil {
		t.Fatal(result.Failure)
	}
	mustSee(t, *result.Seen, seeded(1))
	if dead := observer.Results("three", at("other"))[0]; dead.Failure == nil || dead.Failure.Reason != probe.ReasonNoAnswer || !strings.Contains(dead.Failure.Message, "the master other") {
		t.Errorf("the silent master: %v", dead.Failure)
	}
}

func TestRedisBehindASentinelThroughTLS(t *testing.T) {
	authority := certificates.New(t)
	certificate := certificates.Must(t)(authority.Issue("127.0.0.1"))
	sentinel := runSentinel(t, &certificate)
	seedOrders(t, master(t, sentinel).Client())
	dsn := "rediss://" + sentinel.Address() + "/orders/workers?sentinel=mymaster"
	there := target(t, redelivery.Redis, dsn, probe.Place{})
	mustSee(t, look(t, trusting(t, there, authority.PEM)), seeded(1))
	mustFail(t, there, probe.ReasonTLSFailed, sentinel.Address(), untrusted, nextStep)
	unverified := target(t, redelivery.Redis, dsn+"&ssl[verify_peer]=0", probe.Place{})
	mustSee(t, look(t, unverified), seeded(1))
	mustFail(t, target(t, redelivery.Redis, "redis://"+sentinel.Address()+"?sentinel=mymaster", probe.Place{}), probe.ReasonUnreachable, sentinel.Address())
}
