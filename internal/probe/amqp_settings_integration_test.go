//go:build integration

package probe_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
)

// policiesOfAMQP sets each value in three places, of which another one is the strictest.
func policiesOfAMQP(t *testing.T, server *brokers.RabbitMQ) {
	put(t, server, "policies/%2F/team", `{"pattern": "^strict", "definition": {"message-ttl": 7200000, "expires": 90000000, "delivery-limit": 9}, "apply-to": "queues"}`)
	put(t, server, "operator-policies/%2F/house", `{"pattern": "^strict", "definition": {"message-ttl": 3600000, "expires": 95000000, "delivery-limit": 8}, "apply-to": "queues"}`)
	publish(t, channelOf(t, server.URL()), "strict", amqp.Table{
		"x-queue-type": "quorum", "x-message-ttl": int64(10_800_000), "x-expires": int64(99_000_000), "x-delivery-limit": int64(7),
	})
	eventually(t, target(t, redelivery.AMQP, server.ManagementURL(), probe.Place{Queue: "strict"}), probe.Observation{
		Redelivered: of(int64(0)),
		Settings:    probe.Settings{MessageTTL: of(time.Hour), QueueExpiry: of(25 * time.Hour), DeliveryLimit: of(int64(7))},
	})
}

// dsnOfAMQP looks through a DSN, which knows the virtual host, several queues and how the
// delay queues are called. The management API is then expected at its usual port.
func dsnOfAMQP(t *testing.T, server *brokers.RabbitMQ) {
	put(t, server, "vhosts/shop%2Feu", "")
	put(t, server, "permissions/shop%2Feu/guest", `{"configure": ".*", "write": ".*", "read": ".*"}`)
	channel := channelOf(t, server.URL()+"shop%2Feu")
	first := time.Unix(1700000000, 0).UTC()
	publish(t, channel, "high", nil, amqp.Publishing{Timestamp: first.Add(time.Minute)})
	publish(t, channel, "low", amqp.Table{"x-message-ttl": int64(7_200_000)}, amqp.Publishing{Timestamp: first}, amqp.Publishing{Timestamp: first})
	publish(t, channel, "other", nil, amqp.Publishing{})
	publish(t, channel, "wait_orders_1000", nil, amqp.Publishing{}, amqp.Publishing{}, amqp.Publishing{})
	publish(t, channel, "delay_orders__1000_delay", nil, amqp.Publishing{})
	host := atUsualPort(t, server.ManagementURL())
	dsn := fmt.Sprintf("amqp://guest:guest@%s:5672/shop%%2Feu/orders?queues[high][binding_keys][]=a&queues[low]&delay[queue_name_pattern]=wait_%%25exchange_name%%25_%%25delay%%25", host)
	eventually(t, target(t, redelivery.AMQP, dsn, probe.Place{}), probe.Observation{
		Pending: 3, Delayed: 3, Oldest: of(first), Redelivered: of(int64(0)), Settings: probe.Settings{MessageTTL: of(2 * time.Hour)},
	})
	mustFail(t, target(t, redelivery.AMQP, fmt.Sprintf("amqp://guest:hunter2@%s/shop%%2Feu/orders?queues[high]", host), probe.Place{}), probe.ReasonAuthenticationFailed)
}

// atUsualPort makes the management API answer on its usual port too, of a loopback address
// that no other test has.
func atUsualPort(t *testing.T, managementURL string) (host string) {
	t.Helper()
	management, err := url.Parse(managementURL)
	if err != nil {
		t.Fatal(err)
	}
	host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	listener, err := net.Listen("tcp", host+":15672")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", management.Host)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() { _, _ = io.Copy(broker, client); _ = broker.Close() }()
			go func() { _, _ = io.Copy(client, broker); _ = client.Close() }()
		}
	}()
	return host
}
