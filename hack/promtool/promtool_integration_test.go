//go:build integration

package promtool

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const (
	alertsFile  = "../../config/prometheus/alerts.yaml"
	testsFile   = "../../config/prometheus/alerts_test.yaml"
	runbookFile = "../../docs/runbook.md"
	runbookURL  = "https://github.com/messaginginbox/operator/blob/main/docs/runbook.md#"
)

// promtool runs the tool; the tag leaves out the service discoveries, most of its code.
func promtool(t *testing.T, directory, input string, arguments ...string) {
	t.Helper()
	build := exec.Command("go", "build", "-tags", "remove_all_sd,netgo", "-o", t.TempDir(), "github.com/prometheus/prometheus/cmd/promtool")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building promtool: %v\n%s", err, output)
	}
	command := exec.Command(filepath.Join(build.Args[5], "promtool"), arguments...)
	command.Dir, command.Stdin = directory, strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}

// rule is one alert of the PrometheusRule.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func alerts(t *testing.T) ruleFile {
	t.Helper()
	var resource struct {
		Kind string   `json:"kind"`
		Spec ruleFile `json:"spec"`
	}
	read(t, alertsFile, &resource)
	if resource.Kind != "PrometheusRule" || len(resource.Spec.Groups) == 0 {
		t.Fatalf("%s holds no rules", alertsFile)
	}
	return resource.Spec
}

func TestPromtoolAcceptsAndTestsTheAlerts(t *testing.T) {
	directory := t.TempDir()
	rules, err := json.Marshal(alerts(t)) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(testsFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"alerts.yaml": rules, "alerts_test.yaml": tests} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool(t, directory, "", "check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml")
	promtool(t, directory, "", "test", "rules", "alerts_test.yaml")
}

func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	scrape, err := os.ReadFile(scrapeFile)
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, "", string(scrape), "check", "metrics")
}

func TestEveryAlertIsTestedBothWays(t *testing.T) {
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name     string `json:"alertname"`
				Expected []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	read(t, testsFile, &file)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, alert := range test.Alerts {
			if len(alert.Expected) > 0 {
				fires[alert.Name] = true
			} else {
				silent[alert.Name] = true
			}
		}
	}
	for _, group := range alerts(t).Groups {
		for _, rule := range group.Rules {
			if !fires[rule.Alert] || !silent[rule.Alert] {
				t.Errorf("%s: a test fires it: %t, a test keeps it silent: %t", rule.Alert, fires[rule.Alert], silent[rule.Alert])
			}
		}
	}
}

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	runbook, err := os.ReadFile(runbookFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range alerts(t).Groups {
		for _, rule := range group.Rules {
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%s lacks summary, description or severity", rule.Alert)
			}
			if want := runbookURL + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
				t.Errorf("%s points to %s, want %s", rule.Alert, rule.Annotations["runbook_url"], want)
			}
			if !strings.Contains(string(runbook), "\n### "+rule.Alert+"\n") {
				t.Errorf("%s has no section in the runbook", rule.Alert)
			}
		}
	}
}

func TestAlertsUseMetricsThatExist(t *testing.T) {
	for _, group := range alerts(t).Groups {
		for _, rule := range group.Rules {
			mustExist(t, rule.Alert, rule.Expr)
		}
	}
}

// mustExist fails for each metric of a query that the operator does not expose, or does
// not expose with a label that the query selects.
func mustExist(t *testing.T, where, query string) {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %s: %v", where, query, err)
		return
	}
	selectors := parser.ExtractSelectors(expression)
	if len(selectors) == 0 {
		t.Errorf("%s: %s selects nothing", where, query)
	}
	for _, matchers := range selectors {
		name := ""
		for _, matcher := range matchers {
			if matcher.Name == "__name__" {
				name = matcher.Value
			}
		}
		known := labelsOf(t, name)
		if len(known) == 0 {
			t.Errorf("%s: %s uses a metric that does not exist: %s", where, query, name)
			continue
		}
		for _, matcher := range matchers {
			if !slices.Contains(known, matcher.Name) {
				t.Errorf("%s: %s has no label %s", where, name, matcher.Name)
			}
		}
	}
}
