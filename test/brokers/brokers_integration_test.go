//go:build integration

package brokers_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/messaginginbox/operator/test/brokers"
)

// service is a running server.
type service interface {
	URL() string
	Stop() error
}

func TestServiceAnswersUntilItIsStopped(t *testing.T) {
	starts := map[string]func() (service, error){
		"RabbitMQ": func() (service, error) { return brokers.StartRabbitMQ(t.Context()) },
		"Redis":    func() (service, error) { return brokers.StartRedis(t.Context()) },
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			s, err := start()
			if err != nil {
				t.Fatal(err)
			}
			target, err := url.Parse(s.URL())
			if err != nil {
				t.Fatal(err)
			}
			var dialer net.Dialer
			connection, err := dialer.DialContext(t.Context(), "tcp", target.Host)
			if err != nil {
				t.Error(err)
			} else if err := connection.Close(); err != nil {
				t.Error(err)
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if _, err := dialer.DialContext(t.Context(), "tcp", target.Host); err == nil {
				t.Error("it still listens")
			}
		})
	}
}
