//go:build integration

package pruner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Half of the records are expired.
const benchmarkRecords = 3_000_000

// newBenchmarkInbox is a table with its records in the order of time, freshly vacuumed.
func newBenchmarkInbox(b *testing.B) *inbox {
	b.Helper()
	i := newInbox(b, "timestamp(0) without time zone")
	// Indexes are built faster than filled.
	i.exec("ALTER TABLE " + i.table + " DROP CONSTRAINT messenger_inbox_pkey")
	i.exec("DROP INDEX messenger_inbox_processed_at_idx")
	i.fill(benchmarkRecords, 0)
	i.exec("ALTER TABLE " + i.table + " ADD PRIMARY KEY (transport, message_id)")
	i.exec("CREATE INDEX ON " + i.table + " (processed_at)")
	i.exec("VACUUM (ANALYZE) " + i.table)
	i.exec("CHECKPOINT")
	return i
}

// BenchmarkPruneAgainstBareDelete prunes 1.5 of 3 million records, and deletes the same
// ones of an equal table with one statement. speed is the bare DELETE's time divided by the run's.
func BenchmarkPruneAgainstBareDelete(b *testing.B) {
	for _, pace := range []time.Duration{0, 10 * time.Millisecond} {
		b.Run("pace="+pace.String(), func(b *testing.B) {
			var bare, pruned, working, longest float64
			for n := range b.N {
				steps := []func(){
					func() { bare += bareDelete(b) },
					func() {
						report := pruneOnce(b, pace)
						pruned += report.DurationSeconds
						working += report.DurationSeconds - report.YieldedSeconds
						longest = max(longest, report.LongestTransactionSeconds)
					},
				}
				if n%2 == 1 { // neither always has the warmer cache
					slices.Reverse(steps)
				}
				for _, step := range steps {
					step()
				}
			}
			b.ReportMetric(bare/pruned, "speed")
			b.ReportMetric(bare/working, "speed-without-pauses")
			b.ReportMetric(bare/float64(b.N), "bare-s")
			b.ReportMetric(pruned/float64(b.N), "prune-s")
			b.ReportMetric(longest*1000, "longest-transaction-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func bareDelete(b *testing.B) float64 {
	i := newBenchmarkInbox(b)
	started := time.Now()
	i.exec("DELETE FROM " + i.table + " WHERE processed_at < now() - interval '7 days'")
	took := time.Since(started).Seconds()
	i.exec("DROP TABLE " + i.table)
	return took
}

func pruneOnce(b *testing.B, pace time.Duration) Report {
	i := newBenchmarkInbox(b)
	o := i.options()
	o.Pace = pace
	report := i.prune(o)
	if report.Result != ResultDone || report.RowsDeleted < benchmarkRecords/2-1000 {
		b.Fatalf("%+v", report)
	}
	i.exec("DROP TABLE " + i.table)
	return report
}

// BenchmarkInsertLatencyWhilePruning measures 500 inserts per second from four clients:
// alone, then beside a run with the default pace.
func BenchmarkInsertLatencyWhilePruning(b *testing.B) {
	var idle, during []time.Duration
	longest := 0.0
	for range b.N {
		i := newBenchmarkInbox(b)
		idle = append(idle, insertWhile(i, func() { time.Sleep(5 * time.Second) })...)
		during = append(during, insertWhile(i, func() {
			o := i.options()
			o.Pace = 10 * time.Millisecond
			longest = max(longest, i.prune(o).LongestTransactionSeconds)
		})...)
	}
	b.ReportMetric(milliseconds99(idle), "p99-idle-ms")
	b.ReportMetric(milliseconds99(during), "p99-during-ms")
	b.ReportMetric(milliseconds99(during)/milliseconds99(idle), "p99-ratio")
	b.ReportMetric(longest*1000, "longest-transaction-ms")
	b.ReportMetric(0, "ns/op")
}

// insertWhile returns the latencies of the inserts made while work runs.
func insertWhile(i *inbox, work func()) []time.Duration {
	const clients, perSecond = 4, 500
	ctx, cancel := context.WithCancel(context.Background())
	results := make([][]time.Duration, clients)
	var group sync.WaitGroup
	for client := range clients {
		conn := i.connect(i.url)
		group.Go(func() {
			ticker := time.NewTicker(time.Second * clients / perSecond)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					results[client] = append(results[client], insertOne(ctx, i, conn))
				}
			}
		})
	}
	work()
	cancel()
	group.Wait()
	return slices.Concat(results...)
}

func insertOne(ctx context.Context, i *inbox, conn *pgx.Conn) time.Duration {
	started := time.Now()
	id := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) // #nosec G404 -- not a secret
	if _, err := conn.Exec(context.WithoutCancel(ctx), "INSERT INTO "+i.table+" VALUES ('orders', $1, now())", id); err != nil {
		i.t.Error(err)
	}
	return time.Since(started)
}

func milliseconds99(latencies []time.Duration) float64 {
	slices.Sort(latencies)
	return float64(latencies[len(latencies)*99/100].Microseconds()) / 1000
}
