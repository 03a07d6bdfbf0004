package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// keyFiles decide, with the flags and the platform, what the built programs are.
var keyFiles = []string{"kubernetes/go.mod", "kubernetes/go.sum", "containerd/go.mod", "containerd/go.sum", "pause/main.go"}

// Directory is where the programs of this source are kept below the user's cache
// directory. Another version, flag or platform gives another directory.
func Directory(cache, source string) (string, error) {
	key, err := cacheKey(source, runtime.GOOS, runtime.GOARCH, All())
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "messaginginbox-operator", key), nil
}

func cacheKey(source, goos, goarch string, set []Binary) (string, error) {
	hash := sha256.New()
	for _, name := range keyFiles {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("read what pins the cluster's programs: %w", err)
		}
		writePart(hash, name, content)
	}
	for _, binary := range set {
		writePart(hash, binary.Name, []byte(binary.Package+" "+binary.LDFlags))
	}
	writePart(hash, "platform", []byte(goos+"/"+goarch))
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// writePart puts the length before the content, so that no two inputs run together. A hash never fails to write.
func writePart(hash io.Writer, name string, content []byte) {
	_, _ = fmt.Fprintf(hash, "%s %d\n", name, len(content))
	_, _ = hash.Write(content)
}
