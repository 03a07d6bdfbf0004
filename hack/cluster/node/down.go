package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// endPatience is how long the kernel may take to end all processes of a node.
const endPatience = 60 * time.Second

// Down ends the cluster and removes everything that Up made. It reports whether there was one; twice is no error.
func Down(layout Layout) (existed bool, err error) {
	unlock, err := layout.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	state, err := layout.load()
	if err != nil || state == nil {
		return false, err
	}
	return true, remove(layout, state)
}

func remove(layout Layout, state *State) error {
	if err := stop(layout, state); err != nil {
		return err
	}
	return removeDirectory(layout)
}

// stop ends the first process, and with it, by the kernel, every process, mount
// and network of the node; then it removes what the kernel keeps.
func stop(layout Layout, state *State) error {
	if err := state.First.Kill(endPatience); err != nil {
		return err
	}
	if err := disconnect(layout, state); err != nil {
		return err
	}
	if err := removeCgroups(layout.cgroupName()); err != nil {
		return err
	}
	return removeFolders(state.Created)
}

// removeDirectory removes the state last: interrupted, the next down goes on. With
// anything still mounted below it removes nothing, as that could be somebody's data.
func removeDirectory(layout Layout) error {
	mounts, err := mountsOf("self")
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if isBelow(m.point, layout.Dir) {
			return fmt.Errorf("%s is still mounted: unmount it, then run down again", m.point)
		}
	}
	entries, err := os.ReadDir(layout.Dir)
	if err != nil {
		return fmt.Errorf("remove the state directory: %w", err)
	}
	for _, entry := range entries {
		if path := filepath.Join(layout.Dir, entry.Name()); path != layout.stateFile() {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	if err != nil {
		return fmt.Errorf("remove the state directory: %w", err)
	}
	if err := os.RemoveAll(layout.Dir); err != nil {
		return fmt.Errorf("remove the state directory: %w", err)
	}
	return nil
}
