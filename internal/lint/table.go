package lint

import (
	"fmt"
	"strings"
)

// MarkdownTable is the table of all rules for the documentation.
func MarkdownTable() string {
	var table strings.Builder
	table.WriteString("| Rule | Severity | The mistake | Why it matters | What to change |\n|---|---|---|---|---|\n")
	for _, rule := range rules {
		_, _ = fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", rule.ID, rule.Severity, rule.Summary, rule.Why, rule.Fix)
	}
	return table.String()
}
