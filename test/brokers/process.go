// Package brokers runs private instances of RabbitMQ, Redis and beanstalkd on loopback ports that the
// kernel picks. They end with the process that started them.
package brokers

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
	"syscall"
	"time"
)

const (
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
)

// process is a running server.
type process struct {
	command *exec.Cmd
	log     string
	ended   chan struct{} // closed when it was waited for
}

// start runs the command with its output in a file of dir. The thread that starts it lives as long as
// it does, since the kernel sends the parent-death signal when that thread ends.
func start(command *exec.Cmd, dir, name string) (*process, error) {
	p := &process{command: command, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	command.Dir = dir
	command.Stdout, command.Stderr = log, log
	// A Ctrl-C on the terminal is for the one who started us.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
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

// awaitReady asks until the server answers.
func (p *process) awaitReady(ctx context.Context, answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended while it started:\n%s", p.command.Path, p.tail())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s does not answer: %w\n%s", p.command.Path, err, p.tail()), p.stop())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stop ends the server and waits for it.
func (p *process) stop() error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-p.ended:
			return nil
		case <-time.After(stopTimeout):
		}
	}
	return fmt.Errorf("%s (process %d) did not stop", p.command.Path, p.command.Process.Pid)
}

// tail is the end of the log.
func (p *process) tail() string {
	const size = 4096
	file, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }() // only read
	text, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	return string(text[max(len(text)-size, 0):])
}

// freePorts returns ports that were free a moment ago.
func freePorts(ctx context.Context, count int) ([]int, error) {
	ports := make([]int, 0, count)
	var listeners []net.Listener // held until all are known, so that they differ
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close() // nobody has connected
		}
	}()
	for range count {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
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

// find looks for a program on PATH and among the paths where packages put it.
func find(name, debianPackage string, paths ...string) (string, error) {
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
