//go:build integration

package promtool

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/teststorage"

	"github.com/messaginginbox/operator/internal/metrics"
)

const dashboardFile = "../../config/grafana/inbox.json"

// panel is what the tests need of a dashboard's panel.
type panel struct {
	Title   string `json:"title"`
	Type    string `json:"type"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
	Panels []panel `json:"panels"`
}

type dashboard struct {
	Title      string  `json:"title"`
	UID        string  `json:"uid"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Query any    `json:"query"`
			Type  string `json:"type"`
		} `json:"list"`
	} `json:"templating"`
}

func inboxDashboard(t *testing.T) dashboard {
	t.Helper()
	content, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var board dashboard
	if err := json.Unmarshal(content, &board); err != nil {
		t.Fatal(err)
	}
	return board
}

// queries are the dashboard's, with its variables filled in as Grafana does for "all".
func (d dashboard) queries() map[string][]string {
	variables := strings.NewReplacer("$namespace", ".*", "$name", ".*", "$__rate_interval", "5m", "$__range", "1h")
	found := map[string][]string{}
	var collect func([]panel)
	collect = func(panels []panel) {
		for _, p := range panels {
			for _, target := range p.Targets {
				found[p.Title] = append(found[p.Title], variables.Replace(target.Expr))
			}
			collect(p.Panels)
		}
	}
	collect(d.Panels)
	return found
}

func TestTheDashboardUsesMetricsThatExist(t *testing.T) {
	board := inboxDashboard(t)
	queries := board.queries()
	if len(queries) < 10 {
		t.Fatalf("the dashboard has only %d panels with queries", len(queries))
	}
	for title, list := range queries {
		for _, query := range list {
			mustExist(t, title, query)
		}
	}
	for _, variable := range board.Templating.List {
		if variable.Type != "query" {
			continue
		}
		text, err := json.Marshal(variable.Query)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(string(text), "label_values(")
		name = name[:strings.IndexAny(name, "{,")]
		if described(name) == nil {
			t.Errorf("variable %s uses a metric that does not exist: %s", variable.Name, name)
		}
	}
}

// Over an hour of real samples every query must answer: an empty panel is a broken one.
func TestEveryPanelOfTheDashboardShowsSomething(t *testing.T) {
	storage := teststorage.New(t)
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	for elapsed := time.Duration(0); elapsed <= time.Hour; elapsed += 30 * time.Second {
		appender := storage.Appender(t.Context())
		for _, sample := range gathered(t, int64(elapsed/time.Second)) {
			if _, err := appender.Append(0, sample.Metric, start.Add(elapsed).UnixMilli(), sample.F); err != nil {
				t.Fatal(err)
			}
		}
		if err := appender.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	for title, list := range inboxDashboard(t).queries() {
		for _, text := range list {
			query, err := engine.NewInstantQuery(t.Context(), storage, nil, text, start.Add(time.Hour))
			if err != nil {
				t.Fatalf("%s: %v", title, err)
			}
			result := query.Exec(t.Context())
			vector, err := result.Vector()
			if err != nil || len(vector) == 0 {
				t.Errorf("%s: %s answers nothing (%v)", title, text, err)
			}
			query.Close()
		}
	}
}

// collector is that of the operator, with one resource of which everything is known
// after so many seconds.
func collector(second int64) *metrics.Collector {
	number := func(n int64) *int64 { return &n }
	length := func(d time.Duration) *time.Duration { return &d }
	yes := true
	now := time.Now()
	c := &metrics.Collector{}
	c.Set("shop", "orders", &metrics.Snapshot{
		Table: &metrics.Table{
			Bytes: 3 << 30, IndexBytes: 1 << 30, Rows: 20_000_000, DeadRows: 100_000, BloatBytes: number(200 << 20), Oldest: now.Add(-160 * time.Hour),
			LastVacuum: now.Add(-time.Hour), GrowthPerDay: number(3_000_000), ProjectedBytes: number(4 << 30),
			ForeignDeletes: number(second), SkippedRedeliveries: number(second * 2), ObservedRetention: length(100 * time.Hour),
		},
		Period: 168 * time.Hour, Effective: 160 * time.Hour, ApplicationPeriod: length(160 * time.Hour), Required: 100 * time.Hour,
		MaxTableBytes: number(5 << 30), HeldProofs: number(3),
		Pruning:    metrics.Pruning{RowsDeleted: second * 10, LastDuration: length(time.Minute), LastEnd: now, NextRun: now.Add(time.Minute)},
		Conditions: map[string]float64{"Ready": 1, "RetentionSafe": 1, "PruningHealthy": 1, "DatabaseReachable": 1},
		Transports: []metrics.Transport{
			{Name: "orders", Window: length(100 * time.Hour), Observed: &yes, ProbeFailures: number(second / 60), Redeliveries: number(second),
				Messages: &metrics.Messages{Pending: 10, Delayed: 1, InFlight: 2, Stuck: 1}, OldestAge: length(time.Minute)},
			{Name: "outbox", Window: length(time.Hour), Outbox: true, Observed: &yes, Messages: &metrics.Messages{Pending: 5}, OldestAge: length(time.Second)},
			{Name: "failed", Window: length(time.Hour), Failure: true, MaxAge: length(72 * time.Hour), Observed: &yes, Messages: &metrics.Messages{Pending: 2}, OldestAge: length(20 * time.Hour)},
		},
	})
	return c
}

func gathered(t *testing.T, second int64) []promql.Sample {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(collector(second)); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var samples []promql.Sample
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			builder := labels.NewBuilder(labels.FromStrings("__name__", family.GetName()))
			for _, pair := range metric.GetLabel() {
				builder.Set(pair.GetName(), pair.GetValue())
			}
			value := metric.GetGauge().GetValue()
			if metric.GetCounter() != nil {
				value = metric.GetCounter().GetValue()
			}
			samples = append(samples, promql.Sample{Metric: builder.Labels(), F: value})
		}
	}
	return samples
}

// exposition is the text of one scrape.
func exposition(t *testing.T) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(collector(60)); err != nil {
		t.Fatal(err)
	}
	response := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
