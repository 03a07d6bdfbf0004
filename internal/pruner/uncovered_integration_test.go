//go:build integration

package pruner

import (
	"strings"
	"testing"
)

// Nobody knows how late a message of a transport that is not declared can come back.
func TestOnlyTheProofsOfCoveredTransportsGo(t *testing.T) {
	for _, walk := range walks {
		t.Run(walk.name, func(t *testing.T) {
			i := newInbox(t, "timestamp(0) without time zone")
			i.exec(`INSERT INTO messenger_inbox SELECT CASE n % 4 WHEN 0 THEN 'forgotten' WHEN 1 THEN 'exports' ELSE 'orders' END, 'm' || n, '2020-01-01'::timestamp + (n / 7) * interval '1 second' FROM generate_series(1, 4000) n`)
			i.exec(`INSERT INTO messenger_inbox SELECT CASE n % 2 WHEN 0 THEN 'forgotten' ELSE 'orders' END, 'same' || n, '2020-02-01' FROM generate_series(1, 500) n`)
			if !walk.indexed {
				i.exec("DROP INDEX messenger_inbox_processed_at_idx")
			}
			o := i.options()
			o.BatchSize, o.Transports = 100, []string{"orders", "exports"}
			report := i.prune(o)
			i.expect(report, ResultDone, ReasonCompleted, 3250)
			if kept := i.number("SELECT count(*) FROM messenger_inbox WHERE transport = 'forgotten'"); kept != 1250 || i.count() != 1250 {
				t.Errorf("%d of 1250 records of the other transport are left, and %d of all", kept, i.count())
			}
			// Without the index, to count them would be to read the table once more.
			if walk.indexed && (!strings.Contains(report.Message, "kept 1250 expired records") || !strings.Contains(report.Message, `"forgotten"`)) {
				t.Errorf("the report says %q", report.Message)
			}
		})
	}
}

func TestRunsWithoutANameOfATransportPruneAll(t *testing.T) {
	i := newInbox(t, "timestamptz")
	i.exec(`INSERT INTO messenger_inbox SELECT 'transport ' || n, 'm', '2020-01-01' FROM generate_series(1, 50) n`)
	i.expect(i.prune(i.options()), ResultDone, ReasonCompleted, 50)
}
