package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// errPortTaken says that another process took the port between our choice and the bind.
var errPortTaken = errors.New("the port is taken")

// process is a running postmaster.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed when it was waited for
}

// launch starts the postmaster and waits until it answers. A port that the kernel picked
// can be taken by someone else before the server binds it: then it tries the next one.
func (s *Server) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		pick := s.port == 0
		if pick {
			port, err := freePort(ctx, s.Host())
			if err != nil {
				return err
			}
			s.port = port
		}
		err := s.launchOnce(ctx)
		if !pick || !errors.Is(err, errPortTaken) {
			return err
		}
		s.port = 0
	}
}

func (s *Server) launchOnce(ctx context.Context) error {
	settings, err := s.settings()
	if err != nil {
		return err
	}
	arguments := []string{"-D", s.data, "-p", strconv.Itoa(s.port)}
	for name, value := range settings {
		arguments = append(arguments, "-c", name+"="+value)
	}
	// The server outlives the context of its start.
	command := s.command(context.WithoutCancel(ctx), "postgres", arguments...)
	command.SysProcAttr.Setpgid = true // a Ctrl-C on the terminal is for the one who started us
	var log tail
	command.Stdout = &log
	if s.options.Log != nil {
		command.Stdout = io.MultiWriter(&log, s.options.Log)
	}
	file, err := os.OpenFile(s.path("postgres.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	command.Stdout = io.MultiWriter(command.Stdout, file)
	command.Stderr = command.Stdout
	s.process, err = startProcess(command, file)
	if err != nil {
		return err
	}
	return s.awaitReady(ctx, &log)
}

// startProcess starts the command from a thread that lives as long as the command does: the
// kernel sends the parent-death signal when the thread ends that started the child.
func startProcess(command *exec.Cmd, log io.Closer) (*process, error) {
	p := &process{command: command, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // its status says nothing that the log does not
		}
		_ = log.Close()
	}()
	return p, <-started
}

func (s *Server) awaitReady(ctx context.Context, log *tail) error {
	for {
		connection, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return connection.Close(ctx)
		}
		select {
		case <-s.process.ended:
			if strings.Contains(log.String(), "Address already in use") {
				return fmt.Errorf("postgres on port %d: %w", s.port, errPortTaken)
			}
			return fmt.Errorf("postgres ended while it started:\n%s", log)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("postgres does not answer: %w\n%s", err, log), s.process.stop())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop shuts the postmaster down, the fast way first, and waits for its end.
func (p *process) stop() error {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-p.ended:
			return nil
		case <-time.After(stopTimeout):
		}
	}
	return fmt.Errorf("postgres (process %d) did not stop", p.command.Process.Pid)
}

// Pause stops the postmaster and all its children from running, as a hung machine would:
// connections stay open, and new ones are accepted by the kernel, but nobody answers.
func (s *Server) Pause() error { return s.signalAll(syscall.SIGSTOP) }

// Resume undoes Pause.
func (s *Server) Resume() error { return s.signalAll(syscall.SIGCONT) }

func (s *Server) signalAll(signal syscall.Signal) error {
	postmaster := s.process.command.Process.Pid
	if err := signalProcess(postmaster, signal); err != nil {
		return err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", postmaster, postmaster))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, field := range strings.Fields(string(children)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			return err
		}
		if err := signalProcess(child, signal); err != nil {
			return err
		}
	}
	return nil
}

// signalProcess signals a process; one that has ended is no error.
func signalProcess(pid int, signal syscall.Signal) error {
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

func freePort(ctx context.Context, host string) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err = errors.Join(err, listener.Close()); err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}

// tail keeps the end of what is written to it, for error messages.
type tail struct {
	mutex   sync.Mutex
	content []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.content = append(t.content, p...)
	if extra := len(t.content) - 4096; extra > 0 {
		t.content = slices.Clone(t.content[extra:])
	}
	return len(p), nil
}

// String is the end of what was written.
func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return string(bytes.TrimSpace(t.content))
}
