package node

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// supervisor is what the first process of a node must be: it starts the others
// and takes note of every process that ends, also of those whose parents ended before them.
type supervisor struct {
	layout Layout
	state  *State

	mu      sync.Mutex
	waiting map[int]func(syscall.WaitStatus)

	// ended receives each component that ends; none ever should.
	ended chan error
}

func newSupervisor(layout Layout, state *State) *supervisor {
	s := &supervisor{layout: layout, state: state, waiting: map[int]func(syscall.WaitStatus){}, ended: make(chan error, len(Components()))}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	go func() {
		for range signals {
			s.reap()
		}
	}()
	return s
}

// startComponent starts a component for as long as the node lives.
func (s *supervisor) startComponent(name string) error {
	return s.start(name, name, arguments(s.layout, s.state)[name], func(status syscall.WaitStatus) {
		s.ended <- &componentError{component: name, problem: "ended with " + describe(status)}
	})
}

// run starts a short command and gives its result when it is done.
func (s *supervisor) run(log, name string, arguments []string) error {
	done := make(chan syscall.WaitStatus, 1)
	if err := s.start(log, name, arguments, func(status syscall.WaitStatus) { done <- status }); err != nil {
		return err
	}
	if status := <-done; status != 0 {
		return &componentError{component: log, problem: name + " ended with " + describe(status)}
	}
	return nil
}

func (s *supervisor) start(log, name string, arguments []string, atEnd func(syscall.WaitStatus)) error {
	output, err := os.OpenFile(s.layout.Log(log), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", log, err)
	}
	defer func() { _ = output.Close() }()
	cmd := exec.Command(program(s.state, name), arguments...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Env = environment(s.state)
	cmd.Dir = s.layout.Dir
	// The lock is held until the process is known: it can't be reaped before.
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return &componentError{component: log, problem: err.Error()}
	}
	s.waiting[cmd.Process.Pid] = atEnd
	if err := cmd.Process.Release(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return nil
}

func (s *supervisor) reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if atEnd := s.waiting[pid]; atEnd != nil {
			delete(s.waiting, pid)
			atEnd(status)
		}
	}
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// componentError is a problem of one component, whose log tells more.
type componentError struct {
	component string
	problem   string
}

func (e *componentError) Error() string { return e.component + ": " + e.problem }
