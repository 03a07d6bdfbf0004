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
