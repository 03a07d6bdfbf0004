package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/messaginginbox/operator/internal/pruner"
)

const (
	linePause = 10 * time.Second       // between two lines of a log
	showPause = 100 * time.Millisecond // between two changes of a line on a terminal
)

// progressPrinter shows the progress of a run: as one line that changes on a terminal,
// as a line now and then elsewhere.
type progressPrinter struct {
	out      io.Writer
	terminal bool
	last     time.Time
	dirty    bool // the line on the terminal has to be cleared
}

func newProgressPrinter(out io.Writer) *progressPrinter {
	file, isFile := out.(*os.File)
	p := &progressPrinter{out: out, last: time.Now()}
	p.terminal = isFile && term.IsTerminal(int(file.Fd())) // #nosec G115 -- descriptors are small
	return p
}

// show prints the progress, unless it printed just before. What cannot be printed is
// no reason to stop the run.
func (p *progressPrinter) show(progress pruner.Progress) {
	pause := linePause
	if p.terminal {
		pause = showPause
	}
	if time.Since(p.last) < pause {
		return
	}
	p.last = time.Now()
	line := fmt.Sprintf("%d expired records, %.0f %% of the work", progress.RowsDeleted, 100*progress.Fraction)
	if progress.Waiting != "" {
		line += "; waiting for " + progress.Waiting
	}
	if p.terminal {
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", line)
		p.dirty = true
		return
	}
	_, _ = fmt.Fprintln(p.out, line)
}

// finish clears the line on a terminal.
func (p *progressPrinter) finish() {
	if p.dirty {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
