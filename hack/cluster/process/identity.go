// Package process names a running process so that a later command can end that
// very process, and never another one that got the same number.
package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Identity is a process for all time: its number, when it started (clock ticks
// after the boot, field 22 of proc_pid_stat(5)), and in which boot.
type Identity struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"`
	Boot    string `json:"boot"`
}

// stat holds what this package reads of /proc/PID/stat.
type stat struct {
	name    string
	state   byte
	parent  int
	started uint64
}

// Of gives the identity of the process that has this number now.
func Of(pid int) (Identity, error) {
	boot, err := bootID()
	if err != nil {
		return Identity{}, err
	}
	s, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, Started: s.started, Boot: boot}, nil
}

// Alive reports whether this very process still runs. A zombie does not run.
func (i Identity) Alive() (bool, error) {
	if i.PID <= 0 {
		return false, nil
	}
	boot, err := bootID()
	if err != nil {
		return false, err
	}
	if boot != i.Boot {
		return false, nil
	}
	s, err := readStat(i.PID)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return s.started == i.Started && s.state != 'Z' && s.state != 'X', nil
}

// Kill ends this very process and waits until it is gone, at most for the given time.
// It is no error when the process had ended before.
func (i Identity) Kill(wait time.Duration) error {
	if i.PID <= 0 {
		return nil
	}
	// The descriptor holds on to one process: between the check and the signal its number can't pass to another.
	handle, err := unix.PidfdOpen(i.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", i.PID, err)
	}
	defer func() { _ = unix.Close(handle) }()
	alive, err := i.Alive()
	if err != nil || !alive {
		return err
	}
	if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", i.PID, err)
	}
	for deadline := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		alive, err := i.Alive()
		if err != nil || !alive {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d still runs %s after it was killed", i.PID, wait)
		}
	}
}

// Children lists the running direct children of a process by the base name of their program.
func Children(parent int) (map[string][]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	children := map[string][]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		s, err := readStat(pid)
		if err != nil || s.parent != parent || s.state == 'Z' {
			continue
		}
		name := programName(pid, s.name)
		children[name] = append(children[name], pid)
	}
	return children, nil
}

// programName is the base name of a process's first argument; the kernel's own name is cut at 15 bytes.
func programName(pid int, fallback string) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(raw) == 0 {
		return fallback
	}
	first, _, _ := strings.Cut(string(raw), "\x00")
	return filepath.Base(first)
}

func bootID() (string, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot's id: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

func readStat(pid int) (stat, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return parseStat(string(raw))
}

// parseStat reads a line of /proc/PID/stat. The name is in parentheses and may itself hold any of them.
func parseStat(line string) (stat, error) {
	open, closing := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || closing < open {
		return stat{}, fmt.Errorf("process stat without a name: %q", line)
	}
	const parentField, startField = 1, 19 // counted after the name
	fields := strings.Fields(line[closing+1:])
	if len(fields) <= startField {
		return stat{}, fmt.Errorf("process stat with %d fields after the name: %q", len(fields), line)
	}
	parent, err := strconv.Atoi(fields[parentField])
	if err != nil {
		return stat{}, fmt.Errorf("parent in process stat: %w", err)
	}
	started, err := strconv.ParseUint(fields[startField], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("start time in process stat: %w", err)
	}
	return stat{name: line[open+1 : closing], state: fields[0][0], parent: parent, started: started}, nil
}
