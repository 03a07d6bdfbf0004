package screen

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
)

// Options say how the text is laid out.
type Options struct {
	// Now is the time that ages are counted to.
	Now time.Time
	// Color adds the terminal's colours.
	Color bool
	// Width is the longest line of running text, in characters.
	Width int
	// Wide shows more: the terms of each window, and what every condition says.
	Wide bool
	// Command is how the reader calls the commands that the screen recommends, such as
	// "kubectl inbox".
	Command string
}

// screen is one resource being written down.
type screen struct {
	painter
	inbox   *v1alpha1.MessagingInbox
	options Options
	text    strings.Builder
}

// Show writes one resource's screen.
func Show(out io.Writer, inbox *v1alpha1.MessagingInbox, options Options) error {
	s := &screen{painter: painter{options.Color}, inbox: inbox, options: options}
	s.verdict()
	if len(inbox.Status.Conditions) > 0 {
		s.retention()
		s.activity()
		s.transports()
		s.conditions()
	}
	s.whatToDo()
	if _, err := io.WriteString(out, s.text.String()); err != nil {
		return fmt.Errorf("showing the status: %w", err)
	}
	return nil
}

func (s *screen) table(indent string, rows [][]cell) { s.painter.table(&s.text, indent, rows) }

func (s *screen) heading(title string) {
	s.text.WriteString("\n" + s.paint(bold, title) + "\n")
}

func (s *screen) verdict() {
	word, style, why := Verdict(s.inbox)
	s.text.WriteString(s.paint(bold, s.inbox.Namespace+"/"+s.inbox.Name) + "  " + s.paint(style, word) + "\n")
	s.text.WriteString(wrap(why, "  ", "  ", s.options.Width))
}

// Verdict is the answer to "is it all right?": a word with its colour, and the reason.
func Verdict(inbox *v1alpha1.MessagingInbox) (word, style, why string) {
	ready := meta.FindStatusCondition(inbox.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return "NOT ASSESSED", yellow, "No operator has looked at this resource yet. Does one run, and does it watch this namespace?"
	case inbox.Status.ObservedGeneration != inbox.Generation:
		return "OUT OF DATE", yellow, fmt.Sprintf("The operator has yet to look at the newest spec (generation %d); what follows is about generation %d.", inbox.Generation, inbox.Status.ObservedGeneration)
	}
	word, style = "UNKNOWN", yellow
	switch ready.Status {
	case metav1.ConditionTrue:
		word, style = "READY", green
	case metav1.ConditionFalse:
		word, style = "NOT READY", red
	}
	if inbox.Spec.Suspend {
		word += ", PAUSED"
	}
	return word, style, ready.Message
}

// transports shows each transport's window, and its messages when they are observed.
func (s *screen) transports() {
	statuses := s.inbox.Status.Transports
	if len(statuses) == 0 {
		return
	}
	s.heading("Transports")
	observed := false
	for i := range statuses {
		observed = observed || statuses[i].Messages != nil
	}
	header := []cell{{"NAME", faint}, {"TYPE", faint}, {"PROTECTED", faint}, {"WINDOW", faint}}
	if observed {
		header = append(header, cell{"PENDING", faint}, cell{"DELAYED", faint}, cell{"IN FLIGHT", faint}, cell{"STUCK", faint}, cell{"OLDEST", faint})
	}
	rows := [][]cell{header}
	roles := assessment.Roles(&s.inbox.Spec)
	for i := range statuses {
		rows = append(rows, s.transport(&statuses[i], roles[statuses[i].Name].Is, observed))
		if s.options.Wide {
			rows = append(rows, terms(&statuses[i])...)
		}
	}
	s.table("  ", rows)
}

// transport is one row. A transport that is not covered says what it is instead.
func (s *screen) transport(status *v1alpha1.TransportStatus, role string, observed bool) []cell {
	protected := cell{text: "no", style: faint}
	switch {
	case status.Covered:
		protected = cell{text: "yes"}
	case role != "":
		protected.text += ": " + printable(role)
	}
	window := cell{"unbounded", red}
	if status.Window != nil {
		window = cell{text: duration(status.Window.Duration)}
	}
	row := []cell{{text: printable(status.Name)}, {text: s.typeOf(status.Name)}, protected, window}
	if !observed {
		return row
	}
	if status.Messages == nil {
		return append(row, cell{text: "-"}, cell{text: "-"}, cell{text: "-"}, cell{text: "-"}, cell{text: "-"})
	}
	stuck := cell{text: grouped(status.Messages.Stuck)}
	if status.Messages.Stuck > 0 {
		stuck.style = yellow
	}
	oldest := cell{text: "-"}
	if status.OldestAge != nil {
		oldest.text = age(status.OldestAge.Duration)
	}
	return append(row, cell{text: grouped(status.Messages.Pending)}, cell{text: grouped(status.Messages.Delayed)},
		cell{text: grouped(status.Messages.InFlight)}, stuck, oldest)
}

func (s *screen) typeOf(name string) string {
	for i := range s.inbox.Spec.Transports {
		if string(s.inbox.Spec.Transports[i].Name) == name {
			return string(s.inbox.Spec.Transports[i].Type)
		}
	}
	return "-"
}

func terms(status *v1alpha1.TransportStatus) [][]cell {
	var rows [][]cell
	for _, term := range status.Terms {
		rows = append(rows, []cell{{text: ""}, {text: ""}, {text: ""}, {text: fmt.Sprintf("  %s %s (%s)", duration(term.Value.Duration), term.Name, term.Origin), style: faint}})
	}
	for _, field := range status.Undeclared {
		rows = append(rows, []cell{{text: ""}, {text: ""}, {text: ""}, {text: "  undeclared: " + printable(field), style: red}})
	}
	return rows
}

func (s *screen) conditions() {
	s.heading("Checks")
	var rows [][]cell
	for _, condition := range s.inbox.Status.Conditions {
		if condition.Type == v1alpha1.ConditionReady || condition.Type == v1alpha1.ConditionStalled || condition.Type == v1alpha1.ConditionReconciling {
			continue
		}
		mark := cell{"?", yellow}
		switch {
		case condition.Status == metav1.ConditionTrue:
			mark = cell{"ok", green}
		case condition.Status == metav1.ConditionFalse:
			mark = cell{"no", red}
		case condition.Reason == v1alpha1.ReasonNotDeclared:
			mark = cell{"-", faint} // there is nothing to check
		}
		row := []cell{mark, {text: condition.Type}, {text: condition.Reason}}
		if s.options.Wide {
			row = append(row, cell{text: printable(condition.Message)})
		}
		rows = append(rows, row)
	}
	s.table("  ", rows)
}

// whatToDo is the end of the screen: what a person reads who reads only the end.
func (s *screen) whatToDo() {
	s.heading("What to do")
	steps := s.steps()
	if len(steps) == 0 {
		s.text.WriteString("  Nothing.\n")
		return
	}
	for i, step := range steps {
		number := fmt.Sprintf("  %d. ", i+1)
		indent := strings.Repeat(" ", len(number))
		explanation, command, _ := strings.Cut(step, "\n")
		s.text.WriteString(wrap(explanation, number, indent, s.options.Width))
		if command != "" {
			s.text.WriteString(indent + printable(command) + "\n") // on a line of its own, to copy
		}
	}
}

func (s *screen) steps() []string {
	var steps []string
	if s.inbox.Status.ObservedGeneration != s.inbox.Generation {
		steps = append(steps, "Wait a moment. When this stays, find the operator:\nkubectl get pods -A -l app.kubernetes.io/name=messaging-inbox-operator")
	}
	for _, concern := range assessment.Concerns(s.inbox.Status.Conditions) {
		steps = append(steps, printable(fmt.Sprintf("%s (%s): %s", concern.Type, concern.Reason, concern.Message)))
	}
	if s.inbox.Spec.Suspend {
		steps = append(steps, fmt.Sprintf("It is paused. To go on:\n%s resume %s -n %s", s.options.Command, s.inbox.Name, s.inbox.Namespace))
	}
	return steps
}
