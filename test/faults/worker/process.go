package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Process is a worker seen from its parent.
type Process struct {
	command *exec.Cmd
	stdin   io.Closer
	stderr  bytes.Buffer
	ready   chan struct{}
	ended   chan struct{}
	last    Event
	killed  bool
	err     error
}

// Start runs this program again as a worker. observe, when not nil, is called with each of
// its events, from another goroutine, one after the other.
func Start(config Config, observe func(Event)) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	p := &Process{command: exec.Command(self), ready: make(chan struct{}), ended: make(chan struct{})} // #nosec G204 -- ourselves
	p.command.Env = append(os.Environ(), configVariable+"="+string(encoded))
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for the parent
	p.command.Stderr = &p.stderr
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go p.follow(stdout, observe)
	return p, nil
}

// follow reads the events, then the end.
func (p *Process) follow(stdout io.Reader, observe func(Event)) {
	defer close(p.ended)
	isReady := false
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var event Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // the line during which it was killed
		}
		p.last = event
		if event.Ready && !isReady {
			isReady = true
			close(p.ready)
		}
		if observe != nil {
			observe(event)
		}
	}
	err := errors.Join(lines.Err(), p.command.Wait())
	status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus)
	p.killed = ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	if err != nil && !p.killed {
		p.err = fmt.Errorf("worker %d: %w\n%s", p.command.Process.Pid, err, &p.stderr)
	}
}

// AwaitReady returns when the worker has its connections; its error when it ended before.
func (p *Process) AwaitReady() error {
	select {
	case <-p.ready:
		return nil
	case <-p.ended:
		return fmt.Errorf("a worker ended before it was ready: %w", errors.Join(p.err, fmt.Errorf("killed: %t", p.killed)))
	}
}

// Kill ends the worker with SIGKILL and returns the last that it told.
func (p *Process) Kill() (Event, error) {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return Event{}, err
	}
	<-p.ended
	return p.last, p.err
}

// Stop lets the worker finish its message, and waits for its end.
func (p *Process) Stop() error {
	err := p.stdin.Close()
	<-p.ended
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(err, p.err)
}

// Ended is closed when the worker has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait returns when the worker has ended by itself, and says whether it was by SIGKILL. When
// ctx ends before, it kills the worker and returns an error.
func (p *Process) Wait(ctx context.Context) (killed bool, err error) {
	select {
	case <-p.ended:
		return p.killed, p.err
	case <-ctx.Done():
		_, err := p.Kill()
		return true, errors.Join(fmt.Errorf("a worker did not end in time: %w", ctx.Err()), err)
	}
}
