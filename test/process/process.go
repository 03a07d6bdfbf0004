// Package process runs a real server for the tests, as a child that ends with the process
// that started it.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
)

// Process is a running server.
type Process struct {
	command *exec.Cmd
	log     string
	before  int64 // where in the log its own output begins
	ended   chan struct{}
}

// Start runs the command in its directory. Its output goes to the end of NAME.log there,
// and to the other writer when there is one. Unless the command says otherwise it gets
// SIGTERM when we end. The thread that starts it lives as long as it does, since the kernel
// sends the parent-death signal when that thread ends.
func Start(command *exec.Cmd, name string, also io.Writer) (*Process, error) {
	p := &Process{command: command, log: filepath.Join(command.Dir, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if p.before, err = log.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	command.Stdout = log
	if also != nil {
		command.Stdout = io.MultiWriter(log, also)
	}
	command.Stderr = command.Stdout
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	}
	command.SysProcAttr.Setpgid = true // a Ctrl-C on the terminal is for the one who started us
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
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// AwaitReady asks until the server answers. One that does not in time is stopped.
func (p *Process) AwaitReady(ctx context.Context, answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended while it started:\n%s", p.command.Path, p.Output())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s does not answer: %w\n%s", p.command.Path, err, p.Output()), p.Stop(syscall.SIGKILL))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop sends the signals, each when the one before did not help, and waits for the end.
// Without any it asks with SIGTERM and then kills. One that has ended is no error.
func (p *Process) Stop(signals ...syscall.Signal) error {
	if len(signals) == 0 {
		signals = []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}
	}
	for _, signal := range signals {
		if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-p.ended:
			return nil
		case <-time.After(stopTimeout):
		}
	}
	return fmt.Errorf("%s (process %d) did not stop", p.command.Path, p.PID())
}

// PID is its process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Output is the end of what it wrote.
func (p *Process) Output() string {
	const most = 4096
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	written := content[min(p.before, int64(len(content))):]
	return strings.TrimSpace(string(written[max(len(written)-most, 0):]))
}

// FreePorts returns TCP ports of the host that were free a moment ago.
func FreePorts(ctx context.Context, host string, count int) ([]int, error) {
	ports := make([]int, 0, count)
	var listeners []net.Listener // held until all are known, so that they differ
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close() // nobody has connected
		}
	}()
	for range count {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, listener)
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("%s is no TCP address", listener.Addr())
		}
		ports = append(ports, address.Port)
	}
	return ports, nil
}

// Find looks for a program at the paths where packages put it, and on PATH.
func Find(name, debianPackage string, paths ...string) (string, error) {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed: install the package %s", name, debianPackage)
	}
	return path, nil
}
