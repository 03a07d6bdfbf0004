package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/test/process"
)

// errPortTaken says that another process took the port between our choice and the bind.
var errPortTaken = errors.New("the port is taken")

// launch starts the postmaster and waits until it answers. A port that the kernel picked
// can be taken by someone else before the server binds it: then it tries the next one.
func (s *Server) launch(ctx context.Context) error {
	for {
		pick := s.port == 0
		if pick {
			ports, err := process.FreePorts(ctx, s.Host(), 1)
			if err != nil {
				return err
			}
			s.port = ports[0]
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
	if s.process, err = process.Start(command, "postgres", s.options.Log); err != nil {
		return err
	}
	err = s.process.AwaitReady(ctx, func(ctx context.Context) error {
		connection, connectErr := pgx.Connect(ctx, s.URL("postgres"))
		if connectErr != nil {
			return connectErr
		}
		return connection.Close(ctx)
	})
	if err != nil && strings.Contains(s.process.Output(), "Address already in use") {
		return fmt.Errorf("postgres on port %d: %w", s.port, errPortTaken)
	}
	return err
}

// shutDown ends the postmaster and its sessions, the fast way first.
func (s *Server) shutDown() error { return s.process.Stop(syscall.SIGINT, syscall.SIGQUIT) }

// Pause stops the postmaster and all its children from running, as a hung machine would:
// connections stay open, and new ones are accepted by the kernel, but nobody answers.
func (s *Server) Pause() error { return s.signalAll(syscall.SIGSTOP) }

// Resume undoes Pause.
func (s *Server) Resume() error { return s.signalAll(syscall.SIGCONT) }

func (s *Server) signalAll(signal syscall.Signal) error {
	postmaster := s.process.PID()
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
