//go:build integration

package probe_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/certificates"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestTheManagementAPIThroughTLS(t *testing.T) {
	authority, stranger := certificates.New(t), certificates.New(t)
	server := brokers.Run(t, func(ctx context.Context) (*brokers.RabbitMQ, error) { return brokers.StartRabbitMQTLS(ctx, authority) })
	first := time.Unix(1700000000, 0).UTC()
	publish(t, channelOf(t, server.URL()), "orders", nil, amqp.Publishing{Timestamp: first}, amqp.Publishing{Timestamp: first.Add(time.Minute)})
	host := server.ManagementHost()
	want := probe.Observation{Pending: 2, Redelivered: of(int64(0)), Oldest: of(first)}
	place := probe.Place{Queue: "orders"}
	for name, tested := range map[string]struct {
		url       string
		authority []byte
	}{
		"by its own URL":                   {server.SecuredURL(), authority.PEM},
		"beside an amqps DSN":              {"amqps://guest:guest@" + net.JoinHostPort(host, "5671") + "/%2f/orders", authority.PEM},
		"without TLS, beside an amqp DSN":  {"amqp://guest:guest@" + host + "/%2f/orders", nil},
		"without TLS, with an authority":   {server.ManagementURL(), authority.PEM},
		"beside an amqps DSN with no port": {"amqps://guest:guest@" + host, authority.PEM},
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, trusting(t, target(t, redelivery.AMQP, tested.url, place), tested.authority), want)
		})
	}
	for name, tested := range map[string]struct {
		url       string
		authority []byte
		says      []string
	}{
		"without the authority":               {server.SecuredURL(), nil, []string{host, untrusted, nextStep}},
		"with another authority":              {server.SecuredURL(), stranger.PEM, []string{host, untrusted, nextStep}},
		"beside an amqps DSN without it":      {"amqps://guest:hunter2@" + host, nil, []string{host, untrusted, nextStep}},
		"TLS at the port that has no TLS":     {"https://guest:hunter2@" + net.JoinHostPort(host, "15672"), authority.PEM, []string{"no TLS is spoken"}},
		"no TLS at the port that has only it": {"http://guest:hunter2@" + net.JoinHostPort(host, "15671"), authority.PEM, []string{"https"}},
	} {
		t.Run(name, func(t *testing.T) {
			mustFail(t, trusting(t, target(t, redelivery.AMQP, tested.url, place), tested.authority), probe.ReasonTLSFailed, tested.says...)
		})
	}
}

func TestDoctrineInAnotherDatabaseThroughTLS(t *testing.T) {
	inboxServer := postgres.Run(t, postgres.Options{TLS: true})
	server := postgres.Run(t, postgres.Options{TLS: true, HBA: []string{"hostnossl all all all reject"}})
	messages := server.NewDatabase(t)
	execute(t, messages, messagesTable+`; INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at)
		VALUES ('', '[]', 'default', '2024-01-01', '2024-01-01')`)
	bare, _, _ := strings.Cut(messages, "?")
	pools := database.NewPools(database.PoolOptions{})
	t.Cleanup(pools.Close)
	inboxWith := func(authority []byte) *database.Config {
		bareInbox, _, _ := strings.Cut(inboxServer.URL("postgres"), "?")
		config, err := database.Parse(bareInbox)
		if err == nil && authority != nil {
			config, err = config.WithCA(authority)
		}
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	there := func(t *testing.T, rawURL string, inbox *database.Config) probe.Target {
		t.Helper()
		made, err := probe.NewDoctrineTarget("failed", rawURL, probe.Place{}, inbox, pools, t.Name())
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	for name, seen := range map[string]probe.Target{
		"by its own authority":                    trusting(t, there(t, bare+"?sslmode=verify-full", inboxWith(nil)), server.CAPEM()),
		"by its own authority, not the inbox's":   trusting(t, there(t, bare, inboxWith(inboxServer.CAPEM())), server.CAPEM()),
		"by the inbox's authority":                there(t, bare+"?sslmode=verify-full", inboxWith(server.CAPEM())),
		"by the authority of its URL":             there(t, messages, inboxWith(inboxServer.CAPEM())),
		"without an authority, unverified by URL": there(t, bare+"?sslmode=require", inboxWith(nil)),
	} {
		t.Run(name, func(t *testing.T) {
			mustSee(t, look(t, seen), probe.Observation{Pending: 1, Oldest: of(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))})
		})
	}
	for name, tested := range map[string]struct {
		target probe.Target
		says   string
	}{
		"by the inbox's authority, which is another": {there(t, bare, inboxWith(inboxServer.CAPEM())), untrusted},
		"by another authority, before the inbox's":   {trusting(t, there(t, bare, inboxWith(server.CAPEM())), inboxServer.CAPEM()), untrusted},
		"without any": {there(t, bare+"?sslmode=verify-full", inboxWith(nil)), untrusted},
	} {
		t.Run(name, func(t *testing.T) {
			mustFail(t, tested.target, probe.ReasonTLSFailed, tested.says, nextStep, "spec.database.caSecretRef")
		})
	}
	t.Run("without TLS by its URL, whatever the inbox has", func(t *testing.T) {
		mustFail(t, there(t, bare+"?sslmode=disable", inboxWith(server.CAPEM())), probe.ReasonTLSFailed, "accepts only encrypted connections")
	})
}

func TestAuthoritiesThatAreNone(t *testing.T) {
	for name, there := range map[string]probe.Target{
		"a broker":   target(t, redelivery.Redis, "rediss://127.0.0.1", probe.Place{}),
		"a database": inDatabase(t, "", "postgresql://app:hunter2@127.0.0.1/shop", probe.Place{}),
	} {
		if _, err := there.WithAuthorities([]byte("no PEM")); err == nil || !strings.Contains(err.Error(), "PEM") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
