//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/messaginginbox/operator/test/environment"
)

// awaitSeries waits until the Service of config/manager serves each line for the
// resource of this team.
func (made team) awaitSeries(t *testing.T, wanted ...string) {
	t.Helper()
	var text string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Second) {
		text = made.scrape(t)
		missing := false
		for _, line := range wanted {
			missing = missing || !strings.Contains(text, line)
		}
		if !missing {
			return
		}
	}
	t.Fatalf("the metrics are not\n%s\nbut\n%s", strings.Join(wanted, "\n"), text)
}

// scrape returns the series of this team's resource.
func (made team) scrape(t *testing.T) string {
	t.Helper()
	text := kubectl(t, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/services/messaging-inbox-metrics:metrics/proxy/metrics", environment.Namespace))
	var own []string
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "messaginginbox_") && strings.Contains(line, fmt.Sprintf(`namespace=%q`, made.namespace)) {
			own = append(own, line)
		}
	}
	return strings.Join(own, "\n")
}

// Real Jobs delete and report what they deleted; a session of somebody else only deletes.
func TestTheMetricsTellTheOperatorsDeletionsFromOthers(t *testing.T) {
	t.Parallel()
	made := newTeam(t)
	made.apply(t, safe+everyMinute)
	made.awaitReady(t)
	made.execute(t, "INSERT INTO messenger_inbox SELECT 'orders', 'old-' || n, now() - interval '400 days' FROM generate_series(1, 40) n")
	of := func(metric string, value int) string {
		return fmt.Sprintf(`messaginginbox_%s{name="orders",namespace=%q} %d`, metric, made.namespace, value)
	}
	made.awaitSeries(t, of("pruned_rows_total", 40), of("foreign_deleted_rows_total", 0),
		fmt.Sprintf(`messaginginbox_condition_status{condition="Ready",name="orders",namespace=%q} 1`, made.namespace))
	made.execute(t, "INSERT INTO messenger_inbox SELECT 'orders', 'new-' || n, now() FROM generate_series(1, 9) n")
	made.execute(t, "DELETE FROM messenger_inbox WHERE message_id IN ('new-1', 'new-2', 'new-3')")
	made.awaitSeries(t, of("pruned_rows_total", 40), of("foreign_deleted_rows_total", 3), of("table_rows", 6))
	kubectl(t, "-n", made.namespace, "delete", "inbox", "orders", "--wait=true")
	for deadline := time.Now().Add(patience); made.scrape(t) != ""; time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatalf("the resource is gone, its series are not:\n%s", made.scrape(t))
		}
	}
}
