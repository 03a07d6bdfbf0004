package screen

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	human "k8s.io/apimachinery/pkg/util/duration"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// activity shows the table, the last and the next run, and the last drill, a line each.
func (s *screen) activity() {
	s.text.WriteByte('\n')
	s.labelled("Table    ", s.tableLine())
	s.labelled("Pruning  ", s.pruningLine())
	s.labelled("Drill    ", s.drillLine())
}

func (s *screen) labelled(label, text string) {
	wrapped := wrap(text, label, strings.Repeat(" ", len(label)), s.options.Width)
	s.text.WriteString(s.paint(bold, strings.TrimRight(label, " ")) + strings.TrimPrefix(wrapped, strings.TrimRight(label, " ")))
}

func (s *screen) tableLine() string {
	name := printable(fmt.Sprintf("%s.%s", s.inbox.Spec.Database.Schema, s.inbox.Spec.Table.Name))
	table := s.inbox.Status.Table
	if table == nil {
		return name + ", not measured yet"
	}
	line := fmt.Sprintf("%s, about %s rows, %s with its indexes", name, grouped(table.Rows), size(table.Bytes))
	if table.OldestRecord != nil {
		line += ", oldest record " + s.ago(table.OldestRecord)
	}
	if table.GrowthPerDay != nil {
		line += fmt.Sprintf(", %s rows", grouped(*table.GrowthPerDay))
		if table.GrowthBytesPerDay != nil {
			line += fmt.Sprintf(" (%s)", size(*table.GrowthBytesPerDay))
		}
		line += " more a day"
	}
	return line
}

func (s *screen) pruningLine() string {
	status := s.inbox.Status.Pruning
	if status == nil {
		return "no run yet"
	}
	line := "no run yet"
	if last := status.LastRun; last != nil {
		line = fmt.Sprintf("last %s: %s", s.ago(&last.CompletedAt), RunOutcome(last))
	}
	return line + s.next(status.NextRun, s.whyNoPruning())
}

// whyNoPruning is said when no next run is known.
func (s *screen) whyNoPruning() string {
	switch {
	case s.inbox.Spec.Suspend, s.inbox.Spec.Pruning.Suspend:
		return "paused"
	default:
		return "none is planned"
	}
}

// RunOutcome is what a pruning run came to, in a few words.
func RunOutcome(run *v1alpha1.PruningRun) string {
	outcome := fmt.Sprintf("%s, %s rows deleted", run.Result, grouped(run.RowsDeleted))
	if run.DryRun {
		outcome = fmt.Sprintf("%s, dry run, %s rows are expired and none was deleted", run.Result, grouped(run.RowsDeleted))
	}
	if run.Duration != nil {
		outcome += " in " + run.Duration.Duration.String()
	}
	if run.Held != nil && run.HeldSince != nil {
		outcome += fmt.Sprintf(", %s expired rows held since %s for messages that wait", grouped(*run.Held), run.HeldSince.UTC().Format(time.DateOnly))
	}
	return outcome
}

func (s *screen) drillLine() string {
	status := s.inbox.Status.Drill
	line := "none yet"
	if status != nil && status.LastRun != nil {
		line = fmt.Sprintf("last %s: %s", s.ago(status.LastRun), DrillOutcome(status))
	}
	if s.inbox.Spec.Drill.Schedule == nil {
		return line + "; no schedule is declared"
	}
	var next *metav1.Time
	if status != nil {
		next = status.NextRun
	}
	return line + s.next(next, "none is planned")
}

// DrillOutcome is what a drill came to, in a few words.
func DrillOutcome(status *v1alpha1.DrillStatus) string {
	outcome := string(status.Result)
	if status.Result != v1alpha1.DrillProven && status.Reason != "" {
		outcome += " (" + printable(status.Reason) + ")"
	}
	if passed := passedChecks(status); len(status.Checks) > 0 {
		outcome += fmt.Sprintf(", %d of %d checks passed", passed, len(status.Checks))
	}
	return outcome
}

func passedChecks(status *v1alpha1.DrillStatus) int {
	passed := 0
	for _, check := range status.Checks {
		if check.Passed {
			passed++
		}
	}
	return passed
}

func (s *screen) next(at *metav1.Time, otherwise string) string {
	if at == nil {
		return "; next: " + otherwise
	}
	if wait := at.Sub(s.options.Now); wait > 0 {
		return "; next in " + age(wait)
	}
	return "; next is due"
}

func (s *screen) ago(at *metav1.Time) string { return ago(s.options.Now, at) }

func ago(now time.Time, at *metav1.Time) string { return age(now.Sub(at.Time)) + " ago" }

// age is as kubectl prints it: 3m5s, 6d, 2y.
func age(d time.Duration) string { return human.HumanDuration(max(d, 0)) }

// grouped prints 1234567 as 1,234,567.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	first := 1
	if n < 0 {
		first = 2
	}
	for i := len(digits) - 3; i >= first; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// size prints bytes in the largest binary unit of which there is at least one.
func size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	if unit == "B" || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, unit)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}
