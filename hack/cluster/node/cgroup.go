package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// podControllers are the controllers that the kubelet needs below the cgroup of the pods in a version 2 hierarchy.
var podControllers = []string{"cpu", "cpuset", "memory", "pids", "hugetlb", "io"}

const cgroupPatience = 10 * time.Second

// createCgroups makes the cgroup above the pods in each hierarchy of this machine.
func createCgroups(name string) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		folder := filepath.Join(hierarchy.point, name)
		if hierarchy.kind == "cgroup2" {
			if err := passOnControllers(hierarchy.point); err != nil {
				return err
			}
		}
		if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the cgroup of the pods: %w", err)
		}
		if hierarchy.kind == "cgroup2" {
			if err := passOnControllers(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

func cgroupHierarchies() ([]mount, error) {
	mounts, err := mountsOf("self")
	if err != nil {
		return nil, err
	}
	var hierarchies []mount
	for _, m := range mounts {
		if m.kind == "cgroup" || m.kind == "cgroup2" {
			hierarchies = append(hierarchies, m)
		}
	}
	if len(hierarchies) == 0 {
		return nil, errors.New("no cgroup hierarchy is mounted on this machine: a kubelet can't run here")
	}
	return hierarchies, nil
}

// passOnControllers lets the children of a version 2 cgroup use the controllers that it has.
func passOnControllers(folder string) error {
	available, err := os.ReadFile(filepath.Join(folder, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read the controllers of %s: %w", folder, err)
	}
	var request []string
	for _, controller := range strings.Fields(string(available)) {
		if slices.Contains(podControllers, controller) {
			request = append(request, "+"+controller)
		}
	}
	if len(request) == 0 {
		return nil // the version 2 part of a machine whose controllers are in version 1
	}
	if err = os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte(strings.Join(request, " ")), 0o644); err != nil {
		return fmt.Errorf("enable cgroup controllers below %s: %w", folder, err)
	}
	return nil
}

// removeCgroups removes the cgroups that createCgroups and the kubelet made. Their processes have ended.
func removeCgroups(name string) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		if err := removeCgroup(filepath.Join(hierarchy.point, name), time.Now().Add(cgroupPatience)); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroup removes children first. A cgroup stays busy for a moment after its last process.
func removeCgroup(folder string, deadline time.Time) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the cgroup %s: %w", folder, err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeCgroup(filepath.Join(folder, entry.Name()), deadline); err != nil {
				return err
			}
		}
	}
	for {
		err := unix.Rmdir(folder)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove the cgroup %s: %w", folder, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
