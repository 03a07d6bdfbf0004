package binaries

import (
	"fmt"
	"os"
	"path/filepath"
)

// FindSource looks for this module's folder: the working directory, its hack/cluster, then the same of each parent.
func FindSource(from string) (string, error) {
	start, err := filepath.Abs(from)
	if err != nil {
		return "", fmt.Errorf("find the folder hack/cluster: %w", err)
	}
	for folder := start; ; folder = filepath.Dir(folder) {
		for _, candidate := range []string{folder, filepath.Join(folder, "hack", "cluster")} {
			if isSource(candidate) {
				return candidate, nil
			}
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("%s is not inside a checkout of the project: no folder hack/cluster there or above; change into the checkout", start)
		}
	}
}

func isSource(folder string) bool {
	for _, file := range []string{"kubernetes/go.mod", "containerd/go.mod", "pause/main.go"} {
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			return false
		}
	}
	return true
}
