package probe

import (
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/redelivery"
)

func TestAMessageIsStuckAfterTheRedeliverTimeoutThatIsKnown(t *testing.T) {
	for name, tested := range map[string]struct {
		transportType redelivery.Type
		url           string
		declared      time.Duration
		want          time.Duration
	}{
		"neither declared nor in the DSN: Symfony's hour": {redelivery.Redis, "redis://host/orders", 0, time.Hour},
		"in the DSN":                                 {redelivery.Redis, "redis://host/orders?redeliver_timeout=120", 0, 2 * time.Minute},
		"declared shorter than the default":          {redelivery.Redis, "redis://host/orders", 2 * time.Minute, 2 * time.Minute},
		"declared longer than the default":           {redelivery.Redis, "redis://host/orders", 2 * time.Hour, 2 * time.Hour},
		"declared shorter than in the DSN":           {redelivery.Redis, "redis://host/orders?redeliver_timeout=300", 2 * time.Minute, 5 * time.Minute},
		"declared longer than in the DSN":            {redelivery.Redis, "redis://host/orders?redeliver_timeout=60", 2 * time.Minute, 2 * time.Minute},
		"declared, and no URL but that of the inbox": {redelivery.Doctrine, "", 2 * time.Minute, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := NewTarget("orders", tested.transportType, tested.url, Place{})
			if err != nil {
				t.Fatal(err)
			}
			if tested.declared > 0 {
				target.DeclareRedeliverTimeout(tested.declared)
			}
			if target.RedeliverTimeout != tested.want {
				t.Errorf("a message is stuck after %s, want %s", target.RedeliverTimeout, tested.want)
			}
		})
	}
}

// A broker that is silent for one transport is taken to be so for the others of its own only.
func TestWhichTransportsShareABroker(t *testing.T) {
	const queue = "https://sqs.eu-west-1.amazonaws.com/123/orders?access_key=a&secret_key=b"
	for name, tested := range map[string]struct {
		transportType redelivery.Type
		one, another  string
		shared        bool
	}{
		"two streams of a redis":               {redelivery.Redis, "redis://host/orders", "redis://:secret@host/billing", true},
		"redis with and without TLS":           {redelivery.Redis, "redis://host/orders", "redis://host/orders?ssl[verify_peer]=0", false},
		"two masters behind the same sentinel": {redelivery.Redis, "redis://host:26379/a?sentinel=one", "redis://host:26379/a?sentinel=two", false},
		"two queues of a region":               {redelivery.SQS, queue, queue + "&queue_name=b", true},
		"two regions":                          {redelivery.SQS, "sqs://default?access_key=a&secret_key=b&region=eu-west-1", "sqs://default?access_key=a&secret_key=b&region=eu-west-3", false},
		"the service and an endpoint":          {redelivery.SQS, "sqs://default?access_key=a&secret_key=b", "sqs://default?access_key=a&secret_key=b&endpoint=https://localhost:4566", false},
	} {
		t.Run(name, func(t *testing.T) {
			var brokers []string
			for _, url := range []string{tested.one, tested.another} {
				target, err := NewTarget("orders", tested.transportType, url, Place{})
				if err != nil {
					t.Fatal(err)
				}
				brokers = append(brokers, target.sharedBroker())
			}
			if shared := brokers[0] == brokers[1]; shared != tested.shared {
				t.Errorf("%q: shared %t, want %t", brokers, shared, tested.shared)
			}
		})
	}
}
