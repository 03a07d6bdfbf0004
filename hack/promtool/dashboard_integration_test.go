//go:build integration

package promtool

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/teststorage"
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
		if len(labelsOf(t, name)) == 0 {
			t.Errorf("variable %s uses a metric that does not exist: %s", variable.Name, name)
		}
	}
}

// Over an hour of what the operator exposes every query must answer: an empty panel is
// a broken one.
func TestEveryPanelOfTheDashboardShowsSomething(t *testing.T) {
	end := time.Now().Truncate(time.Second)
	storage := hourOfScrapes(t, end)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, EnableAtModifier: true, Parser: parser.NewParser(parser.Options{})})
	for title, list := range inboxDashboard(t).queries() {
		for _, text := range list {
			query, err := engine.NewInstantQuery(t.Context(), storage, nil, text, end)
			if err != nil {
				t.Fatalf("%s: %v", title, err)
			}
			vector, err := query.Exec(t.Context()).Vector()
			if err != nil || len(vector) == 0 {
				t.Errorf("%s: %s answers nothing (%v)", title, text, err)
			}
			query.Close()
		}
	}
}

// hourOfScrapes holds a scrape every 30 seconds, with counters that count on.
func hourOfScrapes(t *testing.T, end time.Time) *teststorage.TestStorage {
	t.Helper()
	storage, scrape := teststorage.New(t), exposition(t)
	for ago := time.Hour; ago >= 0; ago -= 30 * time.Second {
		appender := storage.Appender(t.Context())
		for _, sample := range scrape {
			value := sample.value
			if strings.HasSuffix(sample.labels.Get("__name__"), "_total") {
				value += (time.Hour - ago).Seconds()
			}
			if _, err := appender.Append(0, sample.labels, end.Add(-ago).UnixMilli(), value); err != nil {
				t.Fatal(err)
			}
		}
		if err := appender.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return storage
}
