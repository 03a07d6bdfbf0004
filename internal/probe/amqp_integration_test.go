//go:build integration

package probe_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
)

func channelOf(t testing.TB, address string) *amqp.Channel {
	t.Helper()
	connection, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return channel
}

func publish(t testing.TB, channel *amqp.Channel, queue string, arguments amqp.Table, messages ...amqp.Publishing) {
	t.Helper()
	if _, err := channel.QueueDeclare(queue, true, false, false, false, arguments); err != nil {
		t.Fatal(err)
	}
	for _, message := range messages {
		if err := channel.PublishWithContext(t.Context(), "", queue, false, false, message); err != nil {
			t.Fatal(err)
		}
	}
}

// put calls the management API, as an administrator would with rabbitmqctl.
func put(t testing.TB, server *brokers.RabbitMQ, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.ManagementURL()+"/api/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if text, _ := io.ReadAll(response.Body); response.StatusCode >= 300 {
		t.Fatalf("PUT %s: %s %s", path, response.Status, text)
	}
}

func TestAMQP(t *testing.T) {
	server := brokers.Run(t, brokers.StartRabbitMQ)
	for name, test := range map[string]func(*testing.T, *brokers.RabbitMQ){
		"counts messages by state":                                    countsOfAMQP,
		"says why it cannot look":                                     failuresOfAMQP,
		"leaves no trace on a message":                                noTraceOfAMQP,
		"takes the strictest of argument, policy and operator policy": policiesOfAMQP,
		"looks through the transport's own DSN":                       dsnOfAMQP,
		"counts many messages":                                        manyOfAMQP,
		"adds up many delay queues page by page":                      delayQueuesOfAMQP,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time they wait for the node's statistics
			test(t, server)
		})
	}
}

func countsOfAMQP(t *testing.T, server *brokers.RabbitMQ) {
	channel := channelOf(t, server.URL())
	first := time.Unix(1700000000, 0).UTC()
	var messages []amqp.Publishing
	for n := range 7 {
		messages = append(messages, amqp.Publishing{Timestamp: first.Add(time.Duration(n) * time.Second), Body: []byte("x")})
	}
	put(t, server, "policies/%2F/short", `{"pattern": "^orders$", "definition": {"message-ttl": 3600000}, "apply-to": "queues"}`)
	publish(t, channel, "orders", amqp.Table{"x-message-ttl": int64(7_200_000), "x-expires": int64(86_400_000), "x-consumer-timeout": int64(7_200_000)}, messages...)
	publish(t, channel, "delay_orders__1000_delay", nil, amqp.Publishing{}, amqp.Publishing{})
	publish(t, channel, "delay_orders_key_60000_retry", nil, amqp.Publishing{})
	publish(t, channel, "delay_orders_7000", nil, amqp.Publishing{}) // no routing key between the underscores: another exchange's
	publish(t, channel, "delay_payments__1000_delay", nil, amqp.Publishing{}, amqp.Publishing{})
	for n := range 3 { // taken; one of them is given back, to its place, and taken again
		delivery, ok, err := channel.Get("orders", false)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if n == 2 {
			if err = delivery.Nack(false, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, ok, err := channel.Get("orders", false); err != nil || !ok {
		t.Fatal(ok, err)
	}
	want := probe.Observation{
		Pending: 4, InFlight: 3, Delayed: 3, Oldest: of(first), Redelivered: of(int64(1)),
		Settings: probe.Settings{MessageTTL: of(time.Hour), QueueExpiry: of(24 * time.Hour), ConsumerTimeout: of(2 * time.Hour)},
	}
	eventually(t, target(t, redelivery.AMQP, server.ManagementURL(), probe.Place{Queue: "orders"}), want)
}

func noTraceOfAMQP(t *testing.T, server *brokers.RabbitMQ) {
	channel := channelOf(t, server.URL())
	publish(t, channel, "untouched", nil, amqp.Publishing{Body: []byte("x")})
	there := target(t, redelivery.AMQP, server.ManagementURL(), probe.Place{Queue: "untouched"})
	eventually(t, there, probe.Observation{Pending: 1, AgeUnknown: true, Redelivered: of(int64(0)), Gaps: []string{
		"the age of the oldest message of untouched is not known: its messages carry no timestamp, or a queue of type classic does not tell it"}})
	delivery, ok, err := channel.Get("untouched", true)
	if err != nil || !ok || delivery.Redelivered {
		t.Errorf("the message was marked: %v %v %v", ok, delivery.Redelivered, err)
	}
	if _, err := channel.QueueDelete("untouched", false, false, false); err != nil {
		t.Fatal(err)
	}
	mustFail(t, there, probe.ReasonQueueNotFound, "the queue untouched")
}

func failuresOfAMQP(t *testing.T, server *brokers.RabbitMQ) {
	publish(t, channelOf(t, server.URL()), "orders", amqp.Table{"x-message-ttl": int64(7_200_000), "x-expires": int64(86_400_000), "x-consumer-timeout": int64(7_200_000)})
	put(t, server, "vhosts/shop", "")
	put(t, server, "users/untagged", `{"password": "hunter2", "tags": ""}`)
	put(t, server, "users/stranger", `{"password": "hunter2", "tags": "management"}`)
	as := func(user string) string {
		parsed, err := url.Parse(server.ManagementURL())
		if err != nil {
			t.Fatal(err)
		}
		parsed.User = url.UserPassword(user, "hunter2")
		return parsed.String()
	}
	for name, tested := range map[string]struct {
		url    string
		place  probe.Place
		reason string
		says   []string
	}{
		"no such queue":                 {server.ManagementURL(), probe.Place{Queue: "nothing"}, probe.ReasonQueueNotFound, []string{"queue nothing"}},
		"no such virtual host":          {server.ManagementURL(), probe.Place{Queue: "orders", VirtualHost: "nowhere"}, probe.ReasonQueueNotFound, []string{"virtual host nowhere"}},
		"a queue of another host":       {server.ManagementURL(), probe.Place{Queue: "orders", VirtualHost: "shop"}, probe.ReasonQueueNotFound, []string{"shop"}},
		"a wrong password":              {as("guest"), probe.Place{Queue: "orders"}, probe.ReasonAuthenticationFailed, []string{"user or the password"}},
		"a user without the tag":        {as("untagged"), probe.Place{Queue: "orders"}, probe.ReasonAuthenticationFailed, []string{"monitoring"}},
		"a user of no virtual host":     {as("stranger"), probe.Place{Queue: "orders"}, probe.ReasonPermissionDenied, []string{"permission", "/"}},
		"nobody on the port":            {"http://guest:hunter2@127.0.0.1:1", probe.Place{Queue: "orders"}, probe.ReasonUnreachable, []string{"127.0.0.1:1"}},
		"TLS that is not spoken":        {strings.Replace(server.ManagementURL(), "http:", "https:", 1), probe.Place{Queue: "orders"}, probe.ReasonTLSFailed, nil},
		"a name that needs an escape":   {server.ManagementURL(), probe.Place{Queue: "or/de?rs%"}, probe.ReasonQueueNotFound, []string{"or/de?rs%"}},
		"the broker's port, not HTTP's": {strings.Replace(strings.TrimSuffix(server.URL(), "/"), "amqp:", "http:", 1), probe.Place{Queue: "orders"}, probe.ReasonUnexpectedError, nil},
	} {
		t.Run(name, func(t *testing.T) {
			mustFail(t, target(t, redelivery.AMQP, tested.url, tested.place), tested.reason, tested.says...)
		})
	}
}

// RabbitMQ itself keeps the counts, so its answer is as long for a million messages, as the
// benchmark has, as for these.
func manyOfAMQP(t *testing.T, server *brokers.RabbitMQ) {
	if seen := measured(t, fillQueue(t, server, "many", 100_000)); seen.Pending != 100_000 {
		t.Errorf("seen %s", shown(seen))
	}
}

// fillQueue publishes so many messages, and returns once RabbitMQ has counted them.
func fillQueue(t testing.TB, server *brokers.RabbitMQ, queue string, messages int) probe.Target {
	t.Helper()
	channel := channelOf(t, server.URL())
	publish(t, channel, queue, nil)
	entered := time.Unix(1700000000, 0).UTC()
	for range messages {
		if err := channel.PublishWithContext(t.Context(), "", queue, false, false, amqp.Publishing{Body: []byte("x"), Timestamp: entered}); err != nil {
			t.Fatal(err)
		}
	}
	there := target(t, redelivery.AMQP, server.ManagementURL(), probe.Place{Queue: queue})
	eventually(t, there, probe.Observation{Pending: int64(messages), Redelivered: of(int64(0)), Oldest: &entered})
	return there
}

func delayQueuesOfAMQP(t *testing.T, server *brokers.RabbitMQ) {
	channel := channelOf(t, server.URL())
	publish(t, channel, "parcels", nil)
	for n := range 110 {
		publish(t, channel, fmt.Sprintf("delay_parcels__%d_delay", n+1), nil, amqp.Publishing{})
	}
	eventually(t, target(t, redelivery.AMQP, server.ManagementURL(), probe.Place{Queue: "parcels"}), probe.Observation{Delayed: 110, Redelivered: of(int64(0))})
}
