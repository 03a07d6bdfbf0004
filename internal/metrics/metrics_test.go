package metrics

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var update = flag.Bool("update", false, "write the table of docs/metrics.md")

func ptr[T any](value T) *T { return &value }

// whole is a snapshot in which everything is known.
func whole() *Snapshot {
	at := time.Unix(1_750_000_000, 500_000_000)
	return &Snapshot{
		Table: &Table{
			Bytes: 4096, IndexBytes: 1024, Rows: 100, DeadRows: 7, BloatBytes: ptr[int64](512), Oldest: at, LastVacuum: at.Add(time.Second),
			GrowthPerDay: ptr[int64](50), ProjectedBytes: ptr[int64](8192), ForeignDeletes: ptr[int64](3), SkippedRedeliveries: ptr[int64](9),
			ObservedRetention: ptr(time.Hour),
		},
		Period: 168 * time.Hour, Effective: 160 * time.Hour, ApplicationPeriod: ptr(160 * time.Hour), Required: 30 * time.Hour, MaxTableBytes: ptr[int64](1 << 20), HeldProofs: ptr[int64](2),
		Pruning:    Pruning{RowsDeleted: 77, LastDuration: ptr(1500 * time.Millisecond), LastEnd: at, NextRun: at.Add(time.Minute)},
		Conditions: map[string]float64{"Ready": 1, "PruningHealthy": 0, "ContractProven": -1},
		Transports: []Transport{
			{Name: "orders", Window: ptr(30 * time.Hour), Observed: ptr(true), ProbeFailures: ptr[int64](4), Messages: &Messages{Pending: 11, Delayed: 12, InFlight: 13, Stuck: 14}, OldestAge: ptr(time.Minute), Redeliveries: ptr[int64](5)},
			{Name: "db_outbox", Outbox: true, Observed: ptr(false), Messages: &Messages{Pending: 21, Stuck: 24}, OldestAge: ptr(2 * time.Minute)},
			{Name: "failed", Failure: true, MaxAge: ptr(336 * time.Hour), OldestAge: ptr(3 * time.Minute)},
		},
	}
}

// scrape is what Prometheus would read, without comments.
func scrape(t testing.TB, collector *Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(collector); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the scrape failed: %s", body)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(body)), "\n"), func(line string) bool { return line == "" || line[0] == '#' })
}

func TestEverySeriesOfAResource(t *testing.T) {
	collector := &Collector{}
	collector.Set("shop", "orders", whole())
	want := []string{
		`messaginginbox_condition_status{condition="ContractProven",name="orders",namespace="shop"} -1`,
		`messaginginbox_condition_status{condition="PruningHealthy",name="orders",namespace="shop"} 0`,
		`messaginginbox_condition_status{condition="Ready",name="orders",namespace="shop"} 1`,
		`messaginginbox_failure_max_age_seconds{name="orders",namespace="shop",transport="failed"} 1.2096e+06`,
		`messaginginbox_failure_oldest_message_age_seconds{name="orders",namespace="shop",transport="failed"} 180`,
		`messaginginbox_foreign_deleted_rows_total{name="orders",namespace="shop"} 3`,
		`messaginginbox_held_proofs{name="orders",namespace="shop"} 2`,
		`messaginginbox_observed_retention_seconds{name="orders",namespace="shop"} 3600`,
		`messaginginbox_outbox_oldest_message_age_seconds{name="orders",namespace="shop",transport="db_outbox"} 120`,
		`messaginginbox_outbox_pending_messages{name="orders",namespace="shop",transport="db_outbox"} 21`,
		`messaginginbox_outbox_stuck_messages{name="orders",namespace="shop",transport="db_outbox"} 24`,
		`messaginginbox_prune_last_duration_seconds{name="orders",namespace="shop"} 1.5`,
		`messaginginbox_prune_last_end_timestamp_seconds{name="orders",namespace="shop"} 1.7500000005e+09`,
		`messaginginbox_prune_next_run_timestamp_seconds{name="orders",namespace="shop"} 1.7500000605e+09`,
		`messaginginbox_pruned_rows_total{name="orders",namespace="shop"} 77`,
		`messaginginbox_required_window_seconds{name="orders",namespace="shop"} 108000`,
		`messaginginbox_retention_application_seconds{name="orders",namespace="shop"} 576000`,
		`messaginginbox_retention_effective_seconds{name="orders",namespace="shop"} 576000`,
		`messaginginbox_retention_margin_seconds{name="orders",namespace="shop"} 468000`,
		`messaginginbox_retention_period_seconds{name="orders",namespace="shop"} 604800`,
		`messaginginbox_skipped_redeliveries_total{name="orders",namespace="shop"} 9`,
		`messaginginbox_table_bloat_bytes{name="orders",namespace="shop"} 512`,
		`messaginginbox_table_daily_growth_rows{name="orders",namespace="shop"} 50`,
		`messaginginbox_table_dead_rows{name="orders",namespace="shop"} 7`,
		`messaginginbox_table_index_size_bytes{name="orders",namespace="shop"} 1024`,
		`messaginginbox_table_last_vacuum_timestamp_seconds{name="orders",namespace="shop"} 1.7500000015e+09`,
		`messaginginbox_table_max_size_bytes{name="orders",namespace="shop"} 1.048576e+06`,
		`messaginginbox_table_oldest_record_timestamp_seconds{name="orders",namespace="shop"} 1.7500000005e+09`,
		`messaginginbox_table_projected_size_bytes{name="orders",namespace="shop"} 8192`,
		`messaginginbox_table_rows{name="orders",namespace="shop"} 100`,
		`messaginginbox_table_size_bytes{name="orders",namespace="shop"} 4096`,
		`messaginginbox_transport_delayed_messages{name="orders",namespace="shop",transport="db_outbox"} 0`,
		`messaginginbox_transport_delayed_messages{name="orders",namespace="shop",transport="orders"} 12`,
		`messaginginbox_transport_in_flight_messages{name="orders",namespace="shop",transport="db_outbox"} 0`,
		`messaginginbox_transport_in_flight_messages{name="orders",namespace="shop",transport="orders"} 13`,
		`messaginginbox_transport_observed{name="orders",namespace="shop",transport="db_outbox"} 0`,
		`messaginginbox_transport_observed{name="orders",namespace="shop",transport="orders"} 1`,
		`messaginginbox_transport_oldest_message_age_seconds{name="orders",namespace="shop",transport="db_outbox"} 120`,
		`messaginginbox_transport_oldest_message_age_seconds{name="orders",namespace="shop",transport="failed"} 180`,
		`messaginginbox_transport_oldest_message_age_seconds{name="orders",namespace="shop",transport="orders"} 60`,
		`messaginginbox_transport_pending_messages{name="orders",namespace="shop",transport="db_outbox"} 21`,
		`messaginginbox_transport_pending_messages{name="orders",namespace="shop",transport="orders"} 11`,
		`messaginginbox_transport_probe_failures_total{name="orders",namespace="shop",transport="orders"} 4`,
		`messaginginbox_transport_redeliveries_total{name="orders",namespace="shop",transport="orders"} 5`,
		`messaginginbox_transport_stuck_messages{name="orders",namespace="shop",transport="db_outbox"} 24`,
		`messaginginbox_transport_stuck_messages{name="orders",namespace="shop",transport="orders"} 14`,
		`messaginginbox_transport_window_seconds{name="orders",namespace="shop",transport="db_outbox"} +Inf`,
		`messaginginbox_transport_window_seconds{name="orders",namespace="shop",transport="failed"} +Inf`,
		`messaginginbox_transport_window_seconds{name="orders",namespace="shop",transport="orders"} 108000`,
	}
	if got := scrape(t, collector); !slices.Equal(got, want) {
		t.Errorf("the series are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatIsNotKnownHasNoSeries(t *testing.T) {
	collector := &Collector{}
	collector.Set("shop", "orders", &Snapshot{Period: time.Hour, Effective: time.Hour, Unbounded: true, Transports: []Transport{{Name: "ä"}}})
	want := []string{
		`messaginginbox_pruned_rows_total{name="orders",namespace="shop"} 0`,
		`messaginginbox_required_window_seconds{name="orders",namespace="shop"} +Inf`,
		`messaginginbox_retention_effective_seconds{name="orders",namespace="shop"} 3600`,
		`messaginginbox_retention_margin_seconds{name="orders",namespace="shop"} -Inf`,
		`messaginginbox_retention_period_seconds{name="orders",namespace="shop"} 3600`,
		`messaginginbox_transport_window_seconds{name="orders",namespace="shop",transport="ä"} +Inf`,
	}
	if got := scrape(t, collector); !slices.Equal(got, want) {
		t.Errorf("the series are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSeriesVanishWithTheirResource(t *testing.T) {
	collector := &Collector{}
	collector.Set("shop", "orders", whole())
	collector.Set("shop", "billing", whole())
	both := len(scrape(t, collector))
	collector.Forget("shop", "orders")
	left := scrape(t, collector)
	if len(left) != both/2 || strings.Contains(strings.Join(left, "\n"), `name="orders"`) {
		t.Errorf("of %d series %d are left", both, len(left))
	}
	collector.Forget("shop", "billing")
	if left = scrape(t, collector); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
}

func TestNamesFollowPrometheus(t *testing.T) {
	for _, metric := range Descriptions() {
		if !strings.HasPrefix(metric.Name, "messaginginbox_") || (metric.Type == "counter") != strings.HasSuffix(metric.Name, "_total") {
			t.Errorf("%s is a %s", metric.Name, metric.Type)
		}
		if !strings.HasSuffix(metric.Help, ".") {
			t.Errorf("the help of %s is no sentence", metric.Name)
		}
	}
}

func TestTheDocumentationIsCurrent(t *testing.T) {
	const file, begin, end = "../../docs/metrics.md", "<!-- generated: go test ./internal/metrics -run Documentation -update -->\n", "<!-- end -->"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := bytes.Cut(page, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		t.Fatalf("%s lacks its markers", file)
	}
	table := "| metric | type | labels | meaning |\n|---|---|---|---|\n"
	for _, metric := range Descriptions() {
		table += fmt.Sprintf("| `%s` | %s | %s | %s |\n", metric.Name, metric.Type, strings.Join(metric.Labels, ", "), metric.Help)
	}
	current := slices.Concat(before, []byte(begin), []byte(table), []byte(end), after)
	if *update {
		if err := os.WriteFile(file, current, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(page, current) {
		t.Errorf("%s is not current: run go test ./internal/metrics -run Documentation -update", file)
	}
}

func BenchmarkScrape100Resources(b *testing.B) {
	collector := &Collector{}
	for i := range 100 {
		collector.Set("shop", fmt.Sprintf("inbox-%d", i), whole())
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	size := 0
	b.ReportAllocs()
	for b.Loop() {
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		size = response.Body.Len()
	}
	b.ReportMetric(float64(size), "bytes/scrape")
}
