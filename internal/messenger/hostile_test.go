package messenger

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The promise of the command line is a second and 100 MB; the process itself needs
// some 40 MB of these. The time is that of the processor, so that a busy machine
// does not fail the test.
const (
	hostileTime   = 2 * time.Second
	hostileMemory = 60 << 20
)

func TestHostileSources(t *testing.T) {
	nested := func(levels, width int) string {
		var bomb strings.Builder
		bomb.WriteString("a0: &a0 [x]\n")
		for i := 1; i < levels; i++ {
			fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), width), ","))
		}
		return bomb.String()
	}
	merges := func(maps, entries int) string {
		var text strings.Builder
		text.WriteString("base: &b\n")
		for i := range entries {
			fmt.Fprintf(&text, "  k%d: 1\n", i)
		}
		for i := range maps {
			fmt.Fprintf(&text, "m%d: {<<: *b}\n", i)
		}
		return text.String()
	}
	const full = MaxBytes - 64
	for name, test := range map[string]struct{ content, want string }{
		"billion laughs":                {nested(12, 10), "written out, this is more than 100000 values"},
		"two to the power of thousands": {nested(2000, 2), "written out, this is more than 100000 values"},
		"merges of merges":              {merges(2000, 2000), "written out, this is more than 100000 values"},
		"an anchor in itself":           {"a: &a\n  b: &b\n    c: [*b, *a]", "contains itself"},
		"a merge of itself":             {"a: &a\n  <<: *a", "contains itself"},
		"50 MB":                         {strings.Repeat("a: b\n", 10<<20), "m.yaml: the file is larger than 2 MiB"},
		"NUL bytes":                     {"a: b\n\x00\x00", "m.yaml:2:1: the file holds a NUL byte"},
		"an image":                      {"\x89PNG\r\n\x1a\n", "m.yaml:1:1: the file is not valid UTF-8"},
		"UTF-16":                        {"\xff\xfea\x00:\x00", "m.yaml:1:4: the file holds a NUL byte"},
		"deep flow":                     {strings.Repeat("[", 100_000), "m.yaml:1:101: lists and maps are nested more than 100 deep"},
		"deep flow, closed":             {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested more than 100 deep"},
		"deep blocks":                   {strings.Repeat("- ", 70_000), "m.yaml:1:201: lists and maps are nested more than 100 deep"},
		"deep maps":                     {strings.Repeat("{a: ", 30_000), "m.yaml:1:401: lists and maps are nested more than 100 deep"},
		"many keys":                     {strings.Repeat("k: 1\n", 45_000), `the key "k" is repeated`},
		"too many values":               {strings.Repeat("- a\n", full/4), "holds more than 100000 values"},
		"many small values":             {"[" + strings.Repeat("a,", 98_000) + "]", "the file holds a list"},
		"many aliases":                  {"a: &a x\nb: [" + strings.Repeat("*a,", 98_000) + "]", ""},
		"one long line":                 {"a: " + strings.Repeat("x", full), ""},
		"one long quoted line":          {"a: \"" + strings.Repeat(`\\`, full/2-8) + "\"", ""},
		"an open quote":                 {"a: '" + strings.Repeat("x\n", 95_000), "m.yaml"},
		"a long comment":                {"#" + strings.Repeat("x", full), ""},
		"many comments":                 {strings.Repeat("# x\n", 45_000) + "a: b", ""},
		"comments behind values":        {strings.Repeat("- a # x\n", 32_000), "the file holds a list"},
		"blank lines":                   {strings.Repeat("\n", 99_000) + "a: b", ""},
		"blanks":                        {strings.Repeat(" ", full) + "a: b", ""},
		"tabs":                          {strings.Repeat("\t", full), "m.yaml:1:1: a tab in the indentation"},
		"a tag without end":             {"a: !" + strings.Repeat("x", full), ""},
		"block scalars":                 {strings.Repeat("- |\n x\n", 32_000), "the file holds a list"},
		"question marks":                {strings.Repeat("? a\n", 45_000), ""}, // null, which Symfony lets a later key replace
		"percent signs":                 {"framework: { messenger: { transports: { a: '" + strings.Repeat("%", full-64) + "' } } }", "KiB together"},
		"parameters in a row":           {"framework: { messenger: { transports: { a: '" + strings.Repeat("%a%", full/3-64) + "' } } }", "KiB together"},
		"a query of a million options":  {"framework: { messenger: { transports: { a: 'amqp://h?" + strings.Repeat("a&", full/2-64) + "' } } }", ""},
		"a list of a million nodes":     {"framework: { messenger: { transports: { a: 'redis://h" + strings.Repeat("+", full-200) + "' } } }", ""},
		"brackets in a query":           {"framework: { messenger: { transports: { a: 'amqp://h?x" + strings.Repeat("[", 95_000) + "=1' } } }", ""},
	} {
		t.Run(name, func(t *testing.T) {
			source := Source{Name: "m.yaml", Content: []byte(test.content)}
			var err error
			duration, memory := measure(func() {
				_, err = Load([]Source{source}, Options{})
			})
			t.Logf("%s, %d MB, %.120v", duration.Round(time.Millisecond), memory>>20, err)
			if duration > hostileTime || memory > hostileMemory {
				t.Errorf("took %s and %d MB", duration, memory>>20)
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %.200v, want %q", err, test.want)
			}
		})
	}
}

func TestALargeFileIsNotReadToItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.yaml")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err = file.Truncate(4 << 30); err != nil { // sparse: it takes no space
		t.Fatal(err)
	}
	if err = file.Close(); err != nil {
		t.Fatal(err)
	}
	duration, memory := measure(func() { _, err = ReadSource(path) })
	if err == nil || err.Error() != path+": the file is larger than 2 MiB: this is no configuration of Messenger" {
		t.Errorf("got %v", err)
	}
	if duration > hostileTime || memory > hostileMemory {
		t.Errorf("took %s and %d MB", duration, memory>>20)
	}
}

// measure returns the processor time that work takes and the most memory that lives meanwhile,
// beyond what lived before.
func measure(work func()) (time.Duration, uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak.Store(max(peak.Load(), now.HeapAlloc))
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	start := processorTime()
	work()
	duration := processorTime() - start
	close(stop)
	<-stopped
	if peak.Load() < before.HeapAlloc {
		return duration, 0
	}
	return duration, peak.Load() - before.HeapAlloc
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
