package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/messaginginbox/operator/internal/messenger"
)

// Report is what a run found, ready to be written.
type Report struct {
	Findings []Finding
	Sources  []messenger.Source
	secrets  []string
}

// NewReport of a configuration; nil when it could not be read.
func NewReport(findings []Finding, sources []messenger.Source, configuration *messenger.Configuration) *Report {
	return &Report{Findings: findings, Sources: sources, secrets: secretsOf(configuration)}
}

// linesByFile are the lines of all sources, split once: there may be as many findings as lines.
func (r *Report) linesByFile() map[string][]string {
	lines := map[string][]string{}
	for _, source := range r.Sources {
		if _, first := lines[source.Name]; !first {
			lines[source.Name] = source.Lines()
		}
	}
	return lines
}

// message hides what a message could have quoted.
func (r *Report) message(finding Finding) string {
	return hide(messenger.MaskText(finding.Message), r.secrets)
}

// WriteText writes for a person: each finding with its line, and why it matters where
// a rule comes up for the first time.
func (r *Report) WriteText(out io.Writer) error {
	var text strings.Builder
	explained, lines := map[string]bool{}, r.linesByFile()
	for _, finding := range r.Findings {
		_, _ = fmt.Fprintf(&text, "%s: %s: %s [%s]\n", finding.At, finding.Severity, r.message(finding), finding.Rule)
		if line := r.excerpt(lines[finding.At.File], finding.At.Line); line != "" {
			gutter := strings.Repeat(" ", len(fmt.Sprint(finding.At.Line)))
			_, _ = fmt.Fprintf(&text, "  %d | %s\n", finding.At.Line, line)
			if column := finding.At.Column; column > 0 && column <= len([]rune(line)) {
				_, _ = fmt.Fprintf(&text, "  %s | %s^\n", gutter, strings.Repeat(" ", column-1))
			}
		}
		if !explained[finding.Rule] {
			explained[finding.Rule] = true
			_, _ = fmt.Fprintf(&text, "  why: %s\n  fix: %s\n", finding.Why, finding.Fix)
		}
		text.WriteByte('\n')
	}
	errors, warnings := r.count()
	_, _ = fmt.Fprintf(&text, "%s, %s\n", plural(errors, "error"), plural(warnings, "warning"))
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("printing the findings: %w", err)
	}
	return nil
}

// excerpt is "" when there is no such line.
func (r *Report) excerpt(lines []string, number int) string {
	if number < 1 || number > len(lines) {
		return ""
	}
	return excerpt(lines[number-1], r.secrets)
}

func (r *Report) count() (errors, warnings int) {
	for _, finding := range r.Findings {
		if finding.Severity == Error {
			errors++
		} else {
			warnings++
		}
	}
	return errors, warnings
}

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

// findingJSON is the documented shape of one finding in "inbox lint -o json".
type findingJSON struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Key      string   `json:"key,omitempty"`
	Message  string   `json:"message"`
	Why      string   `json:"why"`
	Fix      string   `json:"fix"`
}

// WriteJSON writes {"errors":N,"warnings":N,"findings":[...]}.
func (r *Report) WriteJSON(out io.Writer) error {
	errors, warnings := r.count()
	findings := make([]findingJSON, 0, len(r.Findings))
	for _, finding := range r.Findings {
		findings = append(findings, findingJSON{
			Rule: finding.Rule, Severity: finding.Severity,
			File: finding.At.File, Line: finding.At.Line, Column: finding.At.Column, Key: finding.Key,
			Message: r.message(finding), Why: finding.Why, Fix: finding.Fix,
		})
	}
	return writeJSON(out, struct {
		Errors   int           `json:"errors"`
		Warnings int           `json:"warnings"`
		Findings []findingJSON `json:"findings"`
	}{errors, warnings, findings})
}

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	return nil
}
