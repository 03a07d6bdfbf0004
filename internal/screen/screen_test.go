package screen

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// now is the time of the golden files.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func options() Options { return Options{Now: now, Width: 100, Command: "kubectl inbox"} }

func read(t *testing.T, name string) *v1alpha1.MessagingInbox {
	t.Helper()
	document, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	inbox := &v1alpha1.MessagingInbox{}
	if err := yaml.UnmarshalStrict(document, inbox); err != nil {
		t.Fatal(err)
	}
	return inbox
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant (%s; -update writes it anew)\n%s", got, file, want)
	}
}

func show(t *testing.T, inbox *v1alpha1.MessagingInbox, o Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := Show(&out, inbox, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestScreens(t *testing.T) {
	for _, name := range []string{"ready", "too-short", "unbounded", "paused", "new", "out-of-date"} {
		t.Run(name, func(t *testing.T) { compare(t, name, show(t, read(t, name), options())) })
	}
	t.Run("wide", func(t *testing.T) {
		o := options()
		o.Wide = true
		compare(t, "ready-wide", show(t, read(t, "ready"), o))
	})
}

func TestLists(t *testing.T) {
	var all []v1alpha1.MessagingInbox
	for _, name := range []string{"ready", "too-short", "unbounded", "paused", "new"} {
		all = append(all, *read(t, name))
	}
	for name, test := range map[string]struct{ withNamespace, wide bool }{
		"list": {false, false}, "list-of-all-namespaces": {true, false}, "list-wide": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := options()
			o.Wide = test.wide
			if err := List(&out, all, test.withNamespace, o); err != nil {
				t.Fatal(err)
			}
			compare(t, name, out.String())
		})
	}
}

func TestColorsChangeNothingElse(t *testing.T) {
	o := options()
	o.Color = true
	colored := show(t, read(t, "too-short"), o)
	if !strings.Contains(colored, "\x1b[31mNOT READY\x1b[0m") {
		t.Errorf("the verdict is not red in %q", colored)
	}
	stripped := colored
	for _, style := range []string{bold, red, green, yellow, faint, "0"} {
		stripped = strings.ReplaceAll(stripped, "\x1b["+style+"m", "")
	}
	if without := show(t, read(t, "too-short"), options()); stripped != without {
		t.Errorf("without its colours the screen is\n%s\nwant\n%s", stripped, without)
	}
}

func TestNothingThatWasReportedCommandsTheTerminal(t *testing.T) {
	inbox := read(t, "too-short")
	for i := range inbox.Status.Conditions {
		inbox.Status.Conditions[i].Message = "an\x1b[2Jerror\r\nof \u009b31m the database \u202e"
	}
	inbox.Status.Transports[0].Name = "orders\x1b[31m"
	o := options()
	o.Wide = true
	if text := show(t, inbox, o); strings.ContainsAny(text, "\x1b\r\u009b\u202e") {
		t.Errorf("a control character is left in %q", text)
	}
}

func TestBars(t *testing.T) {
	full := strings.Repeat("█", barWidth)
	for name, test := range map[string]struct {
		kept, required time.Duration
		wantKept       int
		wantRequired   int
	}{
		"equal":                            {time.Hour, time.Hour, barWidth, barWidth},
		"half is needed":                   {2 * time.Hour, time.Hour, barWidth, barWidth / 2},
		"a second too short shows":         {100 * time.Hour, 100*time.Hour + time.Second, barWidth - 1, barWidth},
		"a little is not nothing":          {1000 * time.Hour, time.Second, barWidth, 1},
		"nothing is needed":                {time.Hour, 0, barWidth, 0},
		"nothing is kept and none needed":  {0, 0, 0, 0},
		"the longest of all does not wrap": {time.Duration(1<<63 - 1), time.Duration(1 << 62), barWidth, barWidth / 2},
	} {
		t.Run(name, func(t *testing.T) {
			kept, required := bars(test.kept, test.required)
			if got := strings.Count(kept, "█"); got != test.wantKept {
				t.Errorf("kept %s has %d of %d; want %d", kept, got, len([]rune(full)), test.wantKept)
			}
			if got := strings.Count(required, "█"); got != test.wantRequired {
				t.Errorf("required %s has %d of %d; want %d", required, got, len([]rune(full)), test.wantRequired)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1: "-1", -1000: "-1,000", -123456: "-123,456"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) is %s; want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 300 << 20: "300 MiB", 5 << 40: "5.0 TiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) is %s; want %s", n, got, want)
		}
	}
}

func TestRunningTextBreaksBetweenWords(t *testing.T) {
	got := wrap("one two three averyveryverylongword four", "1. ", "   ", 12)
	want := "1. one two\n   three\n   averyveryverylongword\n   four\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
