package probe

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/redelivery"
)

func TestWhereTheManagementAPIOfADSNIs(t *testing.T) {
	for dsn, want := range map[string]struct{ endpoint, user, virtualHost, queues string }{
		"amqp://app:hunter2@rabbit":                                            {"http://rabbit:15672", "app", "/", "messages"},
		"amqp://rabbit:5673/%2f/orders":                                        {"http://rabbit:15672", "guest", "/", "orders"},
		"amqps://app:hunter2@rabbit:5671/shop/orders?queues[high]&queues[low]": {"https://rabbit:15671", "app", "shop", "high,low"},
		"amqp://app:hunter2@[fd00::1]:5672/shop":                               {"http://[fd00::1]:15672", "app", "shop", "messages"},
		"amqp://app:hunter2@[fd00::1]/shop?exchange[name]=sales":               {"http://[fd00::1]:15672", "app", "shop", "sales"},
	} {
		target, err := NewTarget("orders", redelivery.AMQP, dsn, Place{})
		if err != nil {
			t.Fatal(err)
		}
		look := &queueLook{target: target, transport: &managementTransport{}}
		if err := look.connect(); err != nil {
			t.Fatalf("%s: %v", dsn, err)
		}
		if look.client.Endpoint != want.endpoint || look.client.Username != want.user || look.virtualHost() != want.virtualHost || strings.Join(look.queues(), ",") != want.queues {
			t.Errorf("%s: at %s as %s, virtual host %s, queues %q; want %+v", dsn, look.client.Endpoint, look.client.Username, look.virtualHost(), look.queues(), want)
		}
	}
}

func TestNamesOfDelayQueues(t *testing.T) {
	names := []string{
		"delay_orders__1000_delay", "delay_orders_key_60000_retry", "delay_orders__1000", "delay_payments__1000_delay", "delay_orders__soon_delay",
		"delay_orders.eu__1000_delay", "wait-1000-orders", "wait-1000-orders_retry", "wait-1000-payments", "orders",
	}
	for dsn, want := range map[string]string{
		"amqp://rabbit/%2f/orders":    "delay_orders__1000_delay delay_orders_key_60000_retry delay_orders__1000",
		"amqp://rabbit/%2f/orders.eu": "delay_orders.eu__1000_delay",
		"amqp://rabbit/%2f/orders?delay[queue_name_pattern]=wait-%25delay%25-%25exchange_name%25": "wait-1000-orders wait-1000-orders_retry",
	} {
		target, err := NewTarget("orders", redelivery.AMQP, dsn, Place{})
		if err != nil {
			t.Fatal(err)
		}
		pattern := regexp.MustCompile((&queueLook{target: target}).delayQueues())
		found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !pattern.MatchString(name) })
		if strings.Join(found, " ") != want {
			t.Errorf("%s: %q, want %q", dsn, found, want)
		}
	}
}

// RabbitMQ knows consumer-timeout in a policy since 3.12, and every value as a number of JSON.
func TestTheStricterOfArgumentsAndPolicyOfEachQueueAndTheLaterOfTheQueues(t *testing.T) {
	var settings Settings
	settings.readArguments(map[string]any{"x-message-ttl": 7_200_000.0, "x-consumer-timeout": 3_600_000.0}, map[string]any{"message-ttl": 3_600_000.0, "consumer-timeout": 1_800_000.0})
	settings.readArguments(map[string]any{"x-expires": "soon", "x-delivery-limit": -1.0}, map[string]any{"message-ttl": 1_800_000.0, "consumer-timeout": 5_400_000.0, "delivery-limit": 5.0})
	want := Settings{MessageTTL: of(time.Hour), ConsumerTimeout: of(90 * time.Minute), DeliveryLimit: of(int64(5))}
	if !reflect.DeepEqual(settings, want) {
		t.Errorf("settings %+v, want %+v", settings, want)
	}
}

func of[T any](value T) *T { return &value }
