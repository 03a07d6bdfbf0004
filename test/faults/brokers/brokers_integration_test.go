//go:build integration

package brokers_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/database"
	services "github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/consumer"
	"github.com/messaginginbox/operator/test/faults/brokers"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m, postgres.Options{})) }

// addresses starts every broker.
func addresses(t *testing.T) []brokers.Address {
	t.Helper()
	rabbitmq, err := services.StartRabbitMQ(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	redis, err := services.StartRedis(t.Context())
	if err != nil {
		t.Fatal(errors.Join(err, rabbitmq.Stop()))
	}
	t.Cleanup(func() {
		if err := errors.Join(rabbitmq.Stop(), redis.Stop()); err != nil {
			t.Error(err)
		}
	})
	common := brokers.Address{RedeliverTimeout: time.Second, ClaimInterval: 50 * time.Millisecond, Heartbeat: 10 * time.Second, RetryDelay: time.Second, MaxRetries: 1}
	result := []brokers.Address{common, common, common}
	result[0].Kind, result[0].URL = brokers.RabbitMQ, rabbitmq.URL()
	result[1].Kind, result[1].URL = brokers.RedisStreams, redis.URL()
	result[2].Kind, result[2].URL = brokers.Doctrine, databaseWithQueues(t)
	return result
}

func databaseWithQueues(t *testing.T) string {
	t.Helper()
	url := postgres.Shared(t).NewDatabase(t)
	target, err := database.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := target.Connect(t.Context(), database.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	transport := consumer.NewDoctrine(connection, "any", time.Second)
	if err := errors.Join(transport.Setup(t.Context()), transport.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return url
}

// worker is one consumer's connection.
type worker struct {
	t *testing.T
	consumer.Broker
}

func open(t *testing.T, address brokers.Address, queue, name string) worker {
	t.Helper()
	address.Consumer = name
	broker, err := address.Open(t.Context(), queue)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close(context.Background()) }) // some tests have closed it
	return worker{t, broker}
}

func (w worker) publish(message consumer.Message, delay time.Duration) {
	w.t.Helper()
	if err := w.Publish(w.t.Context(), message, delay); err != nil {
		w.t.Fatal(err)
	}
}

// next waits for a message.
func (w worker) next() consumer.Delivery {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		delivery, ready, err := w.Receive(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if ready {
			return delivery
		}
	}
	w.t.Fatal("no message within 20 s")
	return consumer.Delivery{}
}

func (w worker) expectNothing() {
	w.t.Helper()
	if delivery, ready, err := w.Receive(w.t.Context()); err != nil || ready {
		w.t.Fatalf("%+v, %v", delivery, err)
	}
}

func (w worker) expectWaiting(expected int64) {
	w.t.Helper()
	if waiting, err := w.Waiting(w.t.Context()); err != nil || waiting != expected {
		w.t.Fatalf("%d messages are waiting instead of %d, %v", waiting, expected, err)
	}
}

var message = consumer.Message{ID: consumer.NewMessageID(), Retries: 2, Body: `{"order": "é"}`}

func TestBrokersDeliverAtLeastOnce(t *testing.T) {
	for _, address := range addresses(t) {
		name := string(address.Kind)
		t.Run(name+" delivers what was published, until it is acknowledged", func(t *testing.T) { deliversUntilAcknowledged(t, address) })
		t.Run(name+" delivers to another worker what was not acknowledged", func(t *testing.T) { redelivers(t, address) })
		t.Run(name+" drops what is rejected", func(t *testing.T) { dropsRejected(t, address) })
		t.Run(name+" holds back what is delayed", func(t *testing.T) { holdsBack(t, address) })
	}
}

func deliversUntilAcknowledged(t *testing.T, address brokers.Address) {
	w := open(t, address, "acknowledged", "one")
	w.expectNothing()
	w.publish(message, 0)
	w.expectWaiting(1)
	delivery := w.next()
	if delivery.Message != message {
		t.Errorf("%+v", delivery.Message)
	}
	w.expectNothing()
	if err := w.Acknowledge(t.Context(), delivery); err != nil {
		t.Fatal(err)
	}
	w.expectWaiting(0)
}

func redelivers(t *testing.T, address brokers.Address) {
	dead := open(t, address, "lost", "dead")
	dead.publish(message, 0)
	first := dead.next()
	if err := dead.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := open(t, address, "lost", "alive").next()
	if again.Message != first.Message || again.Redelivered != (address.Kind == brokers.RabbitMQ) {
		t.Errorf("%+v", again)
	}
}

func dropsRejected(t *testing.T, address brokers.Address) {
	w := open(t, address, "rejected", "one")
	w.publish(message, 0)
	if err := w.Reject(t.Context(), w.next()); err != nil {
		t.Fatal(err)
	}
	w.expectWaiting(0)
}

func holdsBack(t *testing.T, address brokers.Address) {
	w := open(t, address, "delayed", "one")
	published := time.Now()
	w.publish(message, time.Second)
	w.publish(message, time.Second) // equal messages stay two
	w.expectWaiting(2)
	w.next()
	// The Doctrine transport counts in whole seconds, from the one that has begun.
	if early := time.Until(published.Add(time.Second)); early > 0 && address.Kind != brokers.Doctrine {
		t.Errorf("it came %s too early", early)
	}
	w.next()
}
