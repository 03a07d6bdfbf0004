// Package progress tells a person what a long command is doing: one updating
// line on a terminal, a line now and then elsewhere, so that no log is silent.
package progress

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	terminalInterval = time.Second
	plainInterval    = 20 * time.Second
)

// Printer shows one step at a time on a file, with the time it has taken.
type Printer struct {
	out      *os.File
	terminal bool

	mu      sync.Mutex
	step    string
	started time.Time
	stop    chan struct{}
	stopped chan struct{}
}

// New makes a printer on out. Call Done at the end.
func New(out *os.File) *Printer {
	return &Printer{out: out, terminal: term.IsTerminal(int(out.Fd()))}
}

// Step ends the step before and starts the named one.
func (p *Printer) Step(format string, args ...any) {
	p.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = fmt.Sprintf(format, args...)
	p.started = time.Now()
	p.stop = make(chan struct{})
	p.stopped = make(chan struct{})
	p.show()
	go p.tick(p.stop, p.stopped)
}

// Done ends the current step and leaves its time on the screen.
func (p *Printer) Done() {
	p.mu.Lock()
	stop, stopped := p.stop, p.stopped
	p.stop = nil
	p.mu.Unlock()
	if stop == nil {
		return
	}
	close(stop)
	<-stopped
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := time.Since(p.started)
	switch {
	case p.terminal:
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s (%s)\n", p.step, Elapsed(elapsed))
	case elapsed >= plainInterval:
		_, _ = fmt.Fprintf(p.out, "%s: done (%s)\n", p.step, Elapsed(elapsed))
	}
}

func (p *Printer) tick(stop <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	interval := plainInterval
	if p.terminal {
		interval = terminalInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			p.show()
			p.mu.Unlock()
		}
	}
}

func (p *Printer) show() {
	elapsed := time.Since(p.started)
	switch {
	case p.terminal:
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s (%s)", p.step, Elapsed(elapsed))
	case elapsed < terminalInterval:
		_, _ = fmt.Fprintf(p.out, "%s\n", p.step)
	default:
		_, _ = fmt.Fprintf(p.out, "%s (%s)\n", p.step, Elapsed(elapsed))
	}
}

// Elapsed writes a duration as a person reads it: tenths of a second below ten seconds, whole ones above.
func Elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
