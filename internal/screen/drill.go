package screen

import (
	"fmt"
	"io"
	"strings"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// Drill writes the result of one drill, check by check.
func Drill(out io.Writer, status *v1alpha1.DrillStatus, options Options) error {
	p := painter{options.Color}
	rows := [][]cell{{{"", plain}, {"CONNECTION", faint}, {"CHECK", faint}, {"TIME", faint}, {"WHAT HAPPENED", faint}}}
	for _, check := range status.Checks {
		mark, happened := cell{"ok", green}, ""
		if !check.Passed {
			mark, happened = cell{"no", red}, printable(fmt.Sprintf("%s: expected %s; %s", check.Reason, check.Expected, check.Happened))
		}
		rows = append(rows, []cell{mark, {text: printable(check.Connection)}, {text: printable(check.Name)}, {text: check.Duration.Duration.String()}, {text: happened}})
	}
	var text strings.Builder
	if len(status.Checks) > 0 {
		p.table(&text, "", rows)
		text.WriteByte('\n')
	}
	text.WriteString(DrillOutcome(status) + "\n")
	if status.Message != "" {
		text.WriteString(wrap(status.Message, "", "", options.Width))
	}
	if status.LockWait != nil {
		text.WriteString(wrap(fmt.Sprintf("The second of two workers waited %s for the first.", status.LockWait.Duration), "", "", options.Width))
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("showing the drill: %w", err)
	}
	return nil
}
