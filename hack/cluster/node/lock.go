package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock keeps two commands from changing the same cluster at once. It is on the
// folder above the state directory, which comes and goes.
func (l Layout) lock() (unlock func(), err error) {
	parent := filepath.Dir(l.Dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the state directory: %w", err)
	}
	return lockFolder(parent)
}

// lockFolder waits for the lock on a folder; the kernel releases it when the process ends.
func lockFolder(folder string) (unlock func(), err error) {
	file, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", folder, err)
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", folder, err)
	}
	return func() { _ = file.Close() }, nil
}
