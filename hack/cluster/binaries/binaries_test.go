package binaries

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/messaginginbox/operator/hack/cluster/progress"
)

// writeSource makes a module with one tiny program, in the shape of this folder.
func writeSource(t *testing.T) string {
	t.Helper()
	source := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":            "module example.test/tools\n\ngo 1.26.0\n",
		"kubernetes/go.mod": "kubernetes 1", "kubernetes/go.sum": "", "containerd/go.mod": "containerd 1", "containerd/go.sum": "",
		"pause/main.go": "package main\n\nfunc main() {}\n",
	} {
		write(t, filepath.Join(source, name), content)
	}
	return source
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func key(t *testing.T, source, goarch string, set []Binary) string {
	t.Helper()
	got, err := cacheKey(source, "linux", goarch, set)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestKeyChangesWithEverythingThatChangesAProgram(t *testing.T) {
	source := writeSource(t)
	before := key(t, source, "amd64", All())
	if again := key(t, source, "amd64", All()); again != before {
		t.Errorf("the same source gives %s, then %s", before, again)
	}
	flags := All()
	flags[0].LDFlags += " -X a=b"
	seen := map[string]string{
		before: "the same", key(t, source, "arm64", All()): "another architecture",
		key(t, source, "amd64", flags): "another flag",
	}
	for _, file := range keyFiles {
		write(t, filepath.Join(source, file), "changed "+file)
		seen[key(t, source, "amd64", All())] = file
	}
	if want := 3 + len(keyFiles); len(seen) != want {
		t.Errorf("%d different keys, want %d: %v", len(seen), want, seen)
	}
}

func TestStampedVersionIsThePinnedOne(t *testing.T) {
	pinned, err := os.ReadFile("../kubernetes/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(pinned), "k8s.io/kubernetes "+kubernetesVersion+"\n") {
		t.Errorf("kubernetes/go.mod does not require %s", kubernetesVersion)
	}
	if want := "v" + kubernetesMajor + "." + kubernetesMinor + "."; !strings.HasPrefix(kubernetesVersion, want) {
		t.Errorf("%s does not begin with %s", kubernetesVersion, want)
	}
}

func TestEveryPinnedProgramIsBuiltAndNoOther(t *testing.T) {
	for _, binary := range All() {
		if binary.Folder == "." {
			continue
		}
		tools, err := os.ReadFile(filepath.Join("..", binary.Folder, "tools.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(tools), `"`+binary.Package+`"`) {
			t.Errorf("%s/tools.go does not pin %s", binary.Folder, binary.Package)
		}
	}
}

func TestFindSourceFromAnyFolderOfTheCheckout(t *testing.T) {
	checkout := t.TempDir()
	source := filepath.Join(checkout, "hack", "cluster")
	for _, file := range []string{"kubernetes/go.mod", "containerd/go.mod", "pause/main.go"} {
		write(t, filepath.Join(source, file), "")
	}
	deep := filepath.Join(checkout, "internal", "pruner")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{source, checkout, deep, filepath.Join(source, "pause")} {
		if got, err := FindSource(from); err != nil || got != source {
			t.Errorf("from %s: %s, %v; want %s", from, got, err, source)
		}
	}
	if got, err := FindSource(t.TempDir()); err == nil {
		t.Errorf("outside a checkout: %s, want an error", got)
	}
}

func TestTwoBuildsAtOnceLeaveOneWholeProgram(t *testing.T) {
	source, directory := writeSource(t), filepath.Join(t.TempDir(), "bin")
	set := []Binary{{Name: "pause", Folder: ".", Package: "./pause", LDFlags: strip}}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if err := Ensure(context.Background(), source, directory, set, progress.New(os.Stderr)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "pause" {
		t.Errorf("the folder holds %v, want pause alone", entries)
	}
}

func TestAFailedBuildTellsTheCompilersWordsAndLeavesNothing(t *testing.T) {
	source, directory := writeSource(t), filepath.Join(t.TempDir(), "bin")
	write(t, filepath.Join(source, "pause", "main.go"), "package main\n\nfunc main() { undefinedName() }\n")
	set := []Binary{{Name: "pause", Folder: ".", Package: "./pause", LDFlags: strip}}
	err := Ensure(context.Background(), source, directory, set, progress.New(os.Stderr))
	if err == nil || !strings.Contains(err.Error(), "undefinedName") {
		t.Fatalf("error %v, want the compiler's message", err)
	}
	if entries, readErr := os.ReadDir(directory); readErr != nil || len(entries) != 0 {
		t.Errorf("the folder holds %v (%v), want nothing", entries, readErr)
	}
}
