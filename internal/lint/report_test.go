package lint

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/messaginginbox/operator/internal/messenger"
)

func reportOf(t *testing.T, content string) *Report {
	t.Helper()
	sources := []messenger.Source{{Name: "config/m y.yaml", Content: []byte(content)}}
	configuration, err := messenger.Load(sources, messenger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return NewReport(Run(configuration, Facts{}), sources, configuration)
}

const withSecrets = `
framework:
    messenger:
        transports:
            orders: { dsn: 'amqp://user:hidden-1@rabbit/%2f/o?auto_setup=1', options: { password: hidden-2, sslpassword: "hidden-3" } }
            mail: { dsn: 'redis://redis?auth=hidden%2D4', inbox: true }
            slash: 'amqp://user:a/hidden-5@rabbit/%%2f/o?credentials=hidden-6&api-key=hidden-7&sasl_%%70assword=hidden-8'
            custom: { dsn: 'kafka://broker', options: { pin: 'hidden-9' }, failure_transport: 'user:hidden-10@rabbit' } # hidden-11
`

func TestNoFormatShowsACredential(t *testing.T) {
	report := reportOf(t, withSecrets)
	for name, write := range map[string]func(*strings.Builder) error{
		"text":  func(out *strings.Builder) error { return report.WriteText(out) },
		"JSON":  func(out *strings.Builder) error { return report.WriteJSON(out) },
		"SARIF": func(out *strings.Builder) error { return report.WriteSARIF(out, "1") },
	} {
		var out strings.Builder
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "credentials-written-out") {
			t.Errorf("%s does not report the credentials", name)
		}
		for _, hidden := range []string{"hidden-1", "hidden-2", "hidden-3", "hidden-4", "hidden%2D4", "hidden-5", "hidden-6", "hidden-7", "hidden-8", "hidden-9", "hidden-10", "hidden-11"} {
			if strings.Contains(out.String(), hidden) {
				t.Errorf("%s shows %s:\n%s", name, hidden, out.String())
			}
		}
	}
}

func TestSARIFHasTheShapeOfTheStandard(t *testing.T) {
	var out strings.Builder
	report := reportOf(t, withSecrets)
	if err := report.WriteSARIF(&out, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name, Version string
					Rules         []struct {
						ID                   string
						ShortDescription     struct{ Text string }
						DefaultConfiguration struct{ Level string }
					}
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	decoder := json.NewDecoder(strings.NewReader(out.String()))
	if err := decoder.Decode(&log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || !strings.Contains(log.Schema, "sarif") || len(log.Runs) != 1 {
		t.Fatalf("version %q, schema %q, %d runs", log.Version, log.Schema, len(log.Runs))
	}
	run := log.Runs[0]
	if run.Tool.Driver.Name == "" || len(run.Tool.Driver.Rules) != len(Rules()) || len(run.Results) != len(report.Findings) {
		t.Fatalf("driver %+v with %d results", run.Tool.Driver, len(run.Results))
	}
	levels := map[string]bool{"none": true, "note": true, "warning": true, "error": true}
	for _, result := range run.Results {
		rule := run.Tool.Driver.Rules[result.RuleIndex]
		if rule.ID != result.RuleID || !levels[result.Level] || result.Level != rule.DefaultConfiguration.Level || result.Message.Text == "" {
			t.Errorf("result %+v of rule %+v", result, rule)
		}
		location := result.Locations[0].PhysicalLocation
		if location.ArtifactLocation.URI != "config/m%20y.yaml" || location.Region.StartLine < 1 || location.Region.StartColumn < 1 {
			t.Errorf("%s is at %+v", result.RuleID, location)
		}
	}
}

func TestFilesInSARIF(t *testing.T) {
	for path, want := range map[string]string{
		"config/packages/messenger.yaml": "config/packages/messenger.yaml",
		"./messenger.yaml":               "messenger.yaml",
		"a:b.yaml":                       "a:b.yaml",
		"/srv/app/messenger.yaml":        "file:///srv/app/messenger.yaml",
	} {
		if got := artifactURI(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

func TestTheDocumentationHasTheRulesAsTheyAre(t *testing.T) {
	page, err := os.ReadFile("../../docs/lint.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), MarkdownTable()) {
		t.Errorf("docs/lint.md is not current: it must hold this table\n%s", MarkdownTable())
	}
}
