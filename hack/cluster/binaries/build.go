package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/messaginginbox/operator/hack/cluster/progress"
)

// Ensure builds what is missing of the set into directory. A second one that runs at the same time waits for the first.
func Ensure(ctx context.Context, source, directory string, set []Binary, show *progress.Printer) error {
	missing, err := missingIn(directory, set)
	if err != nil || len(missing) == 0 {
		return err
	}
	if _, err = exec.LookPath("go"); err != nil {
		return errors.New("go is not on PATH, and the cluster's programs are not built yet: install Go, see https://go.dev/doc/install")
	}
	if err = os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("make the folder of the cluster's programs: %w", err)
	}
	unlock, err := lock(directory, show)
	if err != nil {
		return err
	}
	defer unlock()
	defer show.Done()
	if missing, err = missingIn(directory, set); err != nil {
		return err
	}
	for i, binary := range missing {
		show.Step("building %s, %d of %d", binary.Name, i+1, len(missing))
		if err := build(ctx, source, directory, binary); err != nil {
			return err
		}
	}
	return nil
}

func missingIn(directory string, set []Binary) ([]Binary, error) {
	var missing []Binary
	for _, binary := range set {
		_, err := os.Stat(filepath.Join(directory, binary.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, binary)
		case err != nil:
			return nil, fmt.Errorf("look for %s: %w", binary.Name, err)
		}
	}
	return missing, nil
}

// build writes to a temporary name first: what has the final name is whole.
func build(ctx context.Context, source, directory string, binary Binary) error {
	temporary := filepath.Join(directory, "."+binary.Name+".building")
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-ldflags", binary.LDFlags, "-o", temporary, binary.Package)
	cmd.Dir = filepath.Join(source, binary.Folder)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=", "GOARCH=")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("build %s in %s: %w\n%s", binary.Package, cmd.Dir, err, strings.TrimSpace(output.String()))
	}
	if err := os.Rename(temporary, filepath.Join(directory, binary.Name)); err != nil {
		return fmt.Errorf("keep %s: %w", binary.Name, err)
	}
	return nil
}

// lock holds the directory of the programs until unlock is called; the kernel releases it when the process dies.
func lock(directory string, show *progress.Printer) (unlock func(), err error) {
	file, err := os.Open(directory)
	if err != nil {
		return nil, fmt.Errorf("lock the cluster's programs: %w", err)
	}
	descriptor := int(file.Fd())
	if err := unix.Flock(descriptor, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		show.Step("waiting for another build into %s", directory)
		for {
			if err = unix.Flock(descriptor, unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", directory, err)
		}
	} else if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", directory, err)
	}
	return func() { _ = file.Close() }, nil
}
