package screen

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// List writes one line for each resource, with its namespace when they have several.
func List(out io.Writer, inboxes []v1alpha1.MessagingInbox, withNamespace bool, options Options) error {
	rows := [][]cell{header(withNamespace, options.Wide)}
	for i := range inboxes {
		rows = append(rows, line(&inboxes[i], withNamespace, options))
	}
	var text strings.Builder
	painter{options.Color}.table(&text, "", rows)
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("listing the resources: %w", err)
	}
	return nil
}

func header(withNamespace, wide bool) []cell {
	names := []string{"NAME", "VERDICT", "REASON", "KEPT", "REQUIRED", "ROWS", "LAST PRUNE", "NEXT PRUNE"}
	if withNamespace {
		names = append([]string{"NAMESPACE"}, names...)
	}
	if wide {
		names = append(names, "SIZE", "OLDEST", "DRILL", "MESSAGE")
	}
	cells := make([]cell, 0, len(names))
	for _, name := range names {
		cells = append(cells, cell{name, faint})
	}
	return cells
}

func line(inbox *v1alpha1.MessagingInbox, withNamespace bool, options Options) []cell {
	word, style, why := Verdict(inbox)
	reason := "-"
	if ready := meta.FindStatusCondition(inbox.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		reason = ready.Reason
	}
	kept, required := retentionCells(inbox)
	cells := []cell{{text: inbox.Name}, {word, style}, {text: reason}, kept, required, rowsCell(inbox)}
	if withNamespace {
		cells = append([]cell{{text: inbox.Namespace}}, cells...)
	}
	last, next := pruneCells(inbox, options)
	cells = append(cells, last, next)
	if options.Wide {
		cells = append(cells, wideCells(inbox, options)...)
		cells = append(cells, cell{text: printable(why)})
	}
	return cells
}

func retentionCells(inbox *v1alpha1.MessagingInbox) (kept, required cell) {
	kept, required = cell{text: "-"}, cell{text: "-"}
	status := inbox.Status.Retention
	if status == nil || status.Effective == nil {
		return kept, required
	}
	kept.text, required.text = duration(status.Effective.Duration), "unbounded"
	if status.RequiredWithMargin != nil {
		required.text = duration(status.RequiredWithMargin.Duration)
	}
	return kept, required
}

func rowsCell(inbox *v1alpha1.MessagingInbox) cell {
	if inbox.Status.Table == nil {
		return cell{text: "-"}
	}
	return cell{text: grouped(inbox.Status.Table.Rows)}
}

func pruneCells(inbox *v1alpha1.MessagingInbox, options Options) (last, next cell) {
	last, next = cell{text: "-"}, cell{text: "-"}
	status := inbox.Status.Pruning
	if status == nil {
		return last, next
	}
	if run := status.LastRun; run != nil {
		last.text = fmt.Sprintf("%s, %s", run.Result, ago(options.Now, &run.CompletedAt))
	}
	if status.NextRun != nil {
		next.text = age(status.NextRun.Sub(options.Now))
	}
	return last, next
}

func wideCells(inbox *v1alpha1.MessagingInbox, options Options) []cell {
	bytes, oldest, drill := cell{text: "-"}, cell{text: "-"}, cell{text: "-"}
	if table := inbox.Status.Table; table != nil {
		bytes.text = size(table.Bytes)
		if table.OldestRecord != nil {
			oldest.text = age(options.Now.Sub(table.OldestRecord.Time))
		}
	}
	if status := inbox.Status.Drill; status != nil && status.LastRun != nil {
		drill.text = fmt.Sprintf("%s, %s", status.Result, ago(options.Now, status.LastRun))
	}
	return []cell{bytes, oldest, drill}
}
