package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
)

// barWidth is the length of the longer of the two bars, in characters.
const barWidth = 40

// retention shows how long a proof is kept over how long it is needed, as two bars on one
// scale: it is safe when the upper one is at least as long.
func (s *screen) retention() {
	status := s.inbox.Status.Retention
	if status == nil || status.Effective == nil {
		return
	}
	s.heading("Retention")
	kept := status.Effective.Duration
	required, explained := kept, "unbounded: nothing limits how late a message can come back"
	style := red
	if status.RequiredWithMargin != nil {
		required = status.RequiredWithMargin.Duration
		explained = duration(required) + origin(status, s.inbox.Spec.Retention.MarginPercent)
		if kept >= required {
			style = green
		}
	}
	keptBar, requiredBar := bars(kept, required)
	if status.RequiredWithMargin == nil {
		requiredBar = strings.Repeat("█", barWidth-1) + "▶"
	}
	s.table("  ", [][]cell{
		{{text: "kept"}, {keptBar, style}, {text: duration(kept)}},
		{{text: "required"}, {requiredBar, plain}, {text: explained}},
	})
}

func origin(status *v1alpha1.RetentionStatus, margin int32) string {
	if status.Required == nil || status.DecidingTransport == "" {
		return ""
	}
	return fmt.Sprintf(" = %s of transport %s + %d %%", duration(status.Required.Duration), printable(status.DecidingTransport), margin)
}

// bars scales two durations to the longer of them. What is longer than nothing shows, and
// two that differ never look the same.
func bars(kept, required time.Duration) (keptBar, requiredBar string) {
	longest := max(kept, required, 1)
	length := func(d time.Duration) int {
		if d <= 0 {
			return 0
		}
		cells := int(float64(barWidth) * (float64(d) / float64(longest)))
		if d < longest {
			cells = min(cells, barWidth-1)
		}
		return max(cells, 1)
	}
	draw := func(d time.Duration) string {
		cells := length(d)
		return strings.Repeat("█", cells) + strings.Repeat("·", barWidth-cells)
	}
	return draw(kept), draw(required)
}

// duration is rounded to seconds: nobody reads milliseconds of days.
func duration(d time.Duration) string {
	if d >= time.Minute {
		d = d.Round(time.Second)
	}
	return assessment.Human(d)
}
