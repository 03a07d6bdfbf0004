package metrics

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var update = flag.Bool("update", false, "write testdata/scrape.txt and the table of docs/metrics.md")

func ptr[T any](value T) *T { return &value }

// whole is a snapshot in which everything is known.
func whole() *Snapshot {
	at := time.Unix(1_750_000_000, 500_000_000)
	return &Snapshot{
		Table: &Table{
			Bytes: 4096, IndexBytes: 1024, Rows: 100, DeadRows: 7, BloatBytes: ptr[int64](512), Oldest: at, LastVacuum: at.Add(time.Second),
			GrowthPerDay: ptr[int64](50), GrowthBytesPerDay: ptr[int64](1600), ProjectedBytes: ptr[int64](8192), ForeignDeletes: ptr[int64](3), SkippedRedeliveries: ptr[int64](9),
			ObservedRetention: ptr(time.Hour),
		},
		Period: 168 * time.Hour, Effective: 160 * time.Hour, ApplicationPeriod: ptr(160 * time.Hour), Required: 30 * time.Hour, MaxTableBytes: ptr[int64](1 << 20), HeldProofs: ptr[int64](2),
		Pruning:    Pruning{RowsDeleted: 77, LastDuration: ptr(1500 * time.Millisecond), LastEnd: at, NextRun: at.Add(time.Minute)},
		Drill:      Drill{LastEnd: at, LastDuration: ptr(250 * time.Millisecond), LockWait: ptr(60 * time.Millisecond)},
		Conditions: map[string]float64{"RetentionSafe": 1, "PruningHealthy": 0, "ContractProven": -1},
		Transports: []Transport{
			{Name: "orders", Window: ptr(30 * time.Hour), Observed: ptr(true), ProbeFailures: ptr[int64](4), Messages: &Messages{Pending: 11, Delayed: 12, InFlight: 13, Stuck: 14}, OldestAge: ptr(time.Minute), Redelivered: ptr[int64](5)},
			{Name: "db_outbox", Outbox: true, Observed: ptr(false), Messages: &Messages{Pending: 21, Stuck: 24}, OldestAge: ptr(2 * time.Minute)},
			{Name: "failed", Failure: true, MaxAge: ptr(336 * time.Hour), Messages: &Messages{Pending: 31}, OldestAge: ptr(3 * time.Minute)},
		},
	}
}

// exposition is what Prometheus would read.
func exposition(t testing.TB, collector *Collector) []byte {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(collector); err != nil {
		t.Fatal(err)
	}
	response := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if response.Code != http.StatusOK {
		t.Fatalf("the scrape failed: %s", response.Body)
	}
	return response.Body.Bytes()
}

// series are the lines of a scrape without its comments.
func series(t testing.TB, collector *Collector) []string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(string(exposition(t, collector))), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" || line[0] == '#' })
}

// hack/promtool tests the alerts and the dashboard against this scrape.
const scrapeFile = "testdata/scrape.txt"

func TestEverySeriesOfAResource(t *testing.T) {
	collector := &Collector{}
	collector.Set("shop", "orders", whole())
	got := exposition(t, collector)
	if *update {
		if err := os.WriteFile(scrapeFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(scrapeFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the scrape is\n%s\nwant\n%s", got, want)
	}
	for _, metric := range Descriptions() {
		if !bytes.Contains(want, []byte("\n"+metric.Name+"{")) {
			t.Errorf("%s has no series although everything is known", metric.Name)
		}
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
	if got := series(t, collector); !slices.Equal(got, want) {
		t.Errorf("the series are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSeriesVanishWithTheirResource(t *testing.T) {
	collector := &Collector{}
	collector.Set("shop", "orders", whole())
	collector.Set("shop", "billing", whole())
	both := len(series(t, collector))
	collector.Forget("shop", "orders")
	left := series(t, collector)
	if len(left) != both/2 || strings.Contains(strings.Join(left, "\n"), `name="orders"`) {
		t.Errorf("of %d series %d are left", both, len(left))
	}
	collector.Forget("shop", "billing")
	if left = series(t, collector); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
}

func TestScrapesBesideReconciles(t *testing.T) {
	collector := &Collector{}
	var reconciles sync.WaitGroup
	for worker := range 4 {
		reconciles.Go(func() {
			for i := range 50 {
				name := fmt.Sprintf("inbox-%d", (worker+i)%8)
				collector.Set("shop", name, whole())
				if i%5 == 0 {
					collector.Forget("shop", name)
				}
			}
		})
	}
	for range 20 {
		exposition(t, collector) // fails on a series that is there twice
	}
	reconciles.Wait()
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
		table += "| `" + metric.Name + "` | " + strings.Join([]string{metric.Type, strings.Join(metric.Labels, ", "), metric.Help}, " | ") + " |\n"
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
