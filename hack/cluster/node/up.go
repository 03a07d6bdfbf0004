package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/messaginginbox/operator/hack/cluster/image"
	"github.com/messaginginbox/operator/hack/cluster/process"
	"github.com/messaginginbox/operator/hack/cluster/progress"
)

// logTail is how many of the last lines of a failed component's log an error shows.
const logTail = 20

// Up brings the cluster up and waits until a pod can run, at most for the given
// patience. It reports whether the cluster was up before. The processes outlive the caller.
func Up(ctx context.Context, layout Layout, programs Programs, patience time.Duration, show *progress.Printer) (already bool, err error) {
	unlock, err := layout.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	state, err := layout.load()
	if err != nil {
		return false, err
	}
	if state != nil {
		var alive bool
		if alive, err = state.First.Alive(); err != nil {
			return false, err
		}
		if alive && layout.ready() {
			return true, nil
		}
		show.Step("removing what is left of a cluster that ended")
		if err = remove(layout, state); err != nil {
			return false, err
		}
	}
	defer show.Done()
	show.Step("preparing certificates and configuration")
	state, listener, err := prepare(layout, programs)
	if err != nil {
		return false, err
	}
	defer func() { _ = listener.Close() }()
	if err := start(ctx, layout, state, listener, patience, show); err != nil {
		// The state directory stays for its logs; the next up or down removes it.
		return false, errors.Join(err, stop(layout, state))
	}
	return false, nil
}

// prepare makes the state directory and everything in it that the node reads.
func prepare(layout Layout, programs Programs) (*State, *os.File, error) {
	if err := makeDirectories(layout); err != nil {
		return nil, nil, err
	}
	state, listener, err := choose(layout, programs)
	if err != nil {
		return nil, nil, err
	}
	for _, write := range []func() error{
		func() error { return layout.save(state) },
		func() (err error) { state.Network, err = claim(layout, state.Programs); return err },
		func() error { return layout.save(state) },
		func() error { return writeCredentials(layout, state, time.Now()) },
		func() error { return writeConfigurations(layout, state) },
		func() error { return writePauseImage(layout, state) },
		func() error { return createCgroups(layout.cgroupName()) },
	} {
		if err := write(); err != nil {
			_ = listener.Close()
			return nil, nil, err
		}
	}
	for _, folder := range state.Created {
		if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			_ = listener.Close()
			return nil, nil, fmt.Errorf("make a mount point: %w", err)
		}
	}
	return state, listener, nil
}

// makeDirectories refuses a directory that holds something else: down removes it with all that is in it.
func makeDirectories(layout Layout) error {
	entries, err := os.ReadDir(layout.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look into the state directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty and holds no cluster: choose another directory with --dir", layout.Dir)
	}
	for _, folder := range []string{"logs/pods", "logs/containers", "cni", "cni-cache", "cni-addresses", "kubelet", "settings", "opt"} {
		if err := os.MkdirAll(layout.path(folder), 0o755); err != nil {
			return fmt.Errorf("make the state directory: %w", err)
		}
	}
	if err := os.Mkdir(layout.path("pki"), 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	return nil
}

// choose takes what must be free on this machine: a port and the mount points that are missing. The subnet is claimed later.
func choose(layout Layout, programs Programs) (*State, *os.File, error) {
	created, err := foldersToMake()
	if err != nil {
		return nil, nil, err
	}
	if programs.Snapshotter, err = snapshotterFor(layout.Dir); err != nil {
		return nil, nil, err
	}
	listener, port, err := listenOnLoopback()
	if err != nil {
		return nil, nil, err
	}
	return &State{Port: port, Programs: programs, Created: created}, listener, nil
}

// listenOnLoopback opens a port that the kernel chooses and keeps it open, so that nobody else can take it.
func listenOnLoopback() (*os.File, int, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, 0, fmt.Errorf("open a port for the API server: %w", err)
	}
	defer func() { _ = listener.Close() }()
	file, err := listener.File()
	if err != nil {
		return nil, 0, fmt.Errorf("hand over the API server's port: %w", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, 0, fmt.Errorf("%s is not a TCP address", listener.Addr())
	}
	return file, address.Port, nil
}

func writePauseImage(layout Layout, state *State) error {
	file, err := os.Create(layout.path("pause.tar"))
	if err != nil {
		return fmt.Errorf("write the image of the pods' first process: %w", err)
	}
	err = image.Write(image.Spec{Tag: pauseImage, Binary: program(state, "pause"), Entrypoint: "/pause"}, file)
	return errors.Join(err, file.Close())
}

// start runs the node's first process, links it to the machine's network, and listens to its reports.
func start(ctx context.Context, layout Layout, state *State, listener *os.File, patience time.Duration, show *progress.Printer) error {
	starting, goAhead, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the node: %w", err)
	}
	defer func() { _ = goAhead.Close() }()
	reports, reporting, err := os.Pipe()
	if err != nil {
		_ = starting.Close()
		return fmt.Errorf("start the node: %w", err)
	}
	defer func() { _ = reports.Close() }()
	err = startFirst(layout, state, patience, starting, reporting, listener)
	_ = starting.Close()
	_ = reporting.Close()
	if err != nil {
		return err
	}
	if err = connect(layout, state); err != nil {
		return err
	}
	if _, err = goAhead.Write([]byte{1}); err != nil {
		return fmt.Errorf("start the node: %w", err)
	}
	stopReading := context.AfterFunc(ctx, func() { _ = reports.SetReadDeadline(time.Now()) })
	defer stopReading()
	err = readReports(reports, func(step string) { show.Step("%s", step) })
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %w", ctx.Err())
	}
	return withLog(layout, err)
}

// startFirst runs this very program again as the first process of new namespaces and notes who it is.
func startFirst(layout Layout, state *State, patience time.Duration, inherited ...*os.File) error {
	output, err := os.OpenFile(layout.Log(firstName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open the node's log: %w", err)
	}
	defer func() { _ = output.Close() }()
	cmd := exec.Command("/proc/self/exe", FirstCommand, "--dir", layout.Dir, "--timeout", patience.String())
	cmd.Args[0] = "messaginginbox-node"
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = inherited
	cmd.Env = environment(state)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	if err = cmd.Start(); err != nil {
		return fmt.Errorf("start the node in namespaces of its own: %w (inside a container it must be privileged)", err)
	}
	if state.First, err = process.Of(cmd.Process.Pid); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	return layout.save(state)
}

// withLog adds the end of the log of the component that failed.
func withLog(layout Layout, err error) error {
	var failed *componentError
	if !errors.As(err, &failed) {
		return err
	}
	path := layout.Log(failed.component)
	raw, readErr := os.ReadFile(path)
	if readErr != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	lines = lines[max(0, len(lines)-logTail):]
	return fmt.Errorf("%w\nthe end of %s:\n  %s", err, path, strings.Join(lines, "\n  "))
}
