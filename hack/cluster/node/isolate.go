package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// fixedFolders are paths that the node's programs use whatever their configuration
// says. Inside the node each is another folder: below the state directory, or in memory when empty.
var fixedFolders = []struct{ path, inState string }{
	{"/run/containerd", ""},
	{"/var/lib/cni", "cni-cache"},
	{"/var/lib/kubelet", "kubelet"},
	{"/var/log/containers", "logs/containers"},
}

const settingsFolder = "/proc/sys/"

// machineSettings are what a kubelet sets for the whole machine. The node gets files in their place.
var machineSettings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// foldersToMake lists which of the fixed folders this machine lacks, or has only because of another node.
func foldersToMake() ([]string, error) {
	folders := []string{}
	for _, folder := range fixedFolders {
		_, err := os.Stat(folder.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look at %s: %w", folder.path, err)
		}
		used, usedErr := mountedSomewhere(folder.path)
		if usedErr != nil {
			return nil, usedErr
		}
		if err != nil || used {
			folders = append(folders, folder.path)
		}
	}
	return folders, nil
}

// removeFolders removes the mount points that were made, unless something is mounted there or in them now.
func removeFolders(created []string) error {
	for _, folder := range created {
		used, err := mountedSomewhere(folder)
		if err != nil {
			return err
		}
		if used {
			continue
		}
		err = unix.Rmdir(folder)
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("remove %s: %w", folder, err)
		}
	}
	return nil
}

// isolate gives the node mounts of its own, seen by nobody else and gone with its first process.
func isolate(layout Layout) error {
	// Private first, so that nothing comes in or goes out; then shared among the node's own mounts, as a kubelet wants.
	for _, propagation := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", unix.MS_REC|propagation, ""); err != nil {
			return fmt.Errorf("separate the node's mounts: %w", err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount the node's /proc: %w", err)
	}
	for _, folder := range fixedFolders {
		if folder.inState == "" {
			if err := unix.Mount("tmpfs", folder.path, "tmpfs", 0, "mode=0711"); err != nil {
				return fmt.Errorf("mount the node's %s: %w", folder.path, err)
			}
			continue
		}
		if err := bind(layout.path(folder.inState), folder.path); err != nil {
			return err
		}
	}
	return shieldSettings(layout)
}

func shieldSettings(layout Layout) error {
	for _, setting := range machineSettings {
		value, err := os.ReadFile(settingsFolder + setting)
		if err != nil {
			return fmt.Errorf("read the setting %s: %w", setting, err)
		}
		file := layout.path("settings", setting)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("shield the setting %s: %w", setting, err)
		}
		if err := os.WriteFile(file, value, 0o644); err != nil {
			return fmt.Errorf("shield the setting %s: %w", setting, err)
		}
		if err := bind(file, settingsFolder+setting); err != nil {
			return err
		}
	}
	return nil
}

func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s over the node's %s: %w", from, to, err)
	}
	return nil
}
