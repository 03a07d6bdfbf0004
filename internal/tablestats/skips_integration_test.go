//go:build integration

package tablestats

import (
	"fmt"
	"testing"
)

// A consumer handles one message in one transaction: it skips it when there is a proof,
// and may be rolled back.
type consumer func(run func(string, ...any), id int, rollBack bool)

func end(run func(string, ...any), rollBack bool) {
	if rollBack {
		run("ROLLBACK")
	} else {
		run("COMMIT")
	}
}

var consumers = map[string]consumer{
	"SELECT first": func(run func(string, ...any), id int, rollBack bool) {
		run("BEGIN")
		run(fmt.Sprintf(`DO $$ BEGIN
			IF NOT EXISTS (SELECT FROM messenger_inbox WHERE transport = 'orders' AND message_id = '%[1]d') THEN
				INSERT INTO messenger_inbox VALUES ('orders', '%[1]d', now() AT TIME ZONE 'utc');
			END IF; END $$`, id))
		end(run, rollBack)
	},
	"INSERT ON CONFLICT DO NOTHING": func(run func(string, ...any), id int, rollBack bool) {
		run("BEGIN")
		run(fmt.Sprintf("INSERT INTO messenger_inbox VALUES ('orders', '%d', now() AT TIME ZONE 'utc') ON CONFLICT DO NOTHING", id))
		end(run, rollBack)
	},
	"plain INSERT, unique violation": func(run func(string, ...any), id int, rollBack bool) {
		run("BEGIN")
		run(fmt.Sprintf("INSERT INTO messenger_inbox VALUES ('orders', '%d', now() AT TIME ZONE 'utc')", id))
		end(run, rollBack)
	},
}

func TestSkippedRedeliveriesOfEachStyleOfConsumer(t *testing.T) {
	for name, handle := range consumers {
		t.Run(name, func(t *testing.T) {
			w := watch(t, table+"; SET enable_seqscan = off")
			deliver := func(from, to int, rollBack bool) {
				w.session(func(run func(string, ...any)) {
					run("SET enable_seqscan = off") // as a table of some size would have it
					for id := from; id < to; id++ {
						handle(run, id, rollBack)
					}
				})
			}
			deliver(0, 200, false)
			if skips := w.look(0).Skips; skips != 0 {
				t.Errorf("after 200 new messages %d skips", skips)
			}
			deliver(0, 50, false)
			if skips := w.look(0).Skips; skips != 50 {
				t.Errorf("after 50 redeliveries %d skips", skips)
			}
			deliver(100, 130, false)
			deliver(200, 300, false)
			if skips := w.look(0).Skips; skips != 80 {
				t.Errorf("after 30 more among 100 new messages %d skips", skips)
			}
			if live := w.history.Last.Live; live != 300 {
				t.Errorf("%d live rows, want 300", live)
			}
		})
	}
}

// A handler that fails is rolled back and tried again, far more often than an
// acknowledgement is lost: that must not look like a skip to a consumer of the first two styles.
func TestRetriesOfRolledBackHandlersAreNoSkips(t *testing.T) {
	for name, want := range map[string]int64{
		"SELECT first":                   0,
		"INSERT ON CONFLICT DO NOTHING":  0,
		"plain INSERT, unique violation": 40, // the documented upper bound
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, table)
			handle := consumers[name]
			for _, rollBack := range []bool{true, true, false} {
				w.session(func(run func(string, ...any)) {
					run("SET enable_seqscan = off")
					for id := range 20 {
						handle(run, id, rollBack)
					}
				})
			}
			if skips := w.look(0).Skips; skips != want {
				t.Errorf("%d skips, want %d; %+v", skips, want, w.history.Last)
			}
		})
	}
}
