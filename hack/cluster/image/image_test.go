package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func archive(t *testing.T, entrypoint string) []byte {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(binary, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(binary, time.Now(), time.Now().Add(-time.Duration(len(t.Name()))*time.Hour)); err != nil {
		t.Fatal(err)
	}
	spec, err := ParseSpec("localhost/inbox:dev="+binary, entrypoint)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Write(spec, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestTheSameProgramGivesTheSameBytes(t *testing.T) {
	if !bytes.Equal(archive(t, "/inbox"), archive(t, "/inbox")) {
		t.Error("two images of the same program differ")
	}
}

func TestImageRunsTheProgramWithoutPrivileges(t *testing.T) {
	raw := archive(t, "/usr/bin/inbox")
	tag, err := name.NewTag("localhost/inbox:dev")
	if err != nil {
		t.Fatal(err)
	}
	read, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }, &tag)
	if err != nil {
		t.Fatalf("the archive does not hold %s: %v", tag, err)
	}
	config, err := read.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.OS != "linux" || len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != "/usr/bin/inbox" {
		t.Errorf("config %+v", config.Config)
	}
	filesystem := mutate.Extract(read)
	defer func() { _ = filesystem.Close() }()
	modes := map[string]int64{}
	for reader := tar.NewReader(filesystem); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[filepath.Clean(header.Name)] = header.Mode
	}
	want := map[string]int64{"tmp": 0o1777, "usr": 0o755, "usr/bin": 0o755, "usr/bin/inbox": 0o755}
	for path, mode := range want {
		if modes[path] != mode {
			t.Errorf("%s has mode %o, want %o", path, modes[path], mode)
		}
	}
	if len(modes) != len(want) {
		t.Errorf("the image holds %v, want %v", modes, want)
	}
}

func TestBadSpecsAreRefused(t *testing.T) {
	for _, bad := range [][2]string{{"inbox:dev", ""}, {"=binary", ""}, {"inbox:dev=", ""}, {"Upper Case=binary", ""}, {"inbox:dev=binary", "relative"}, {"inbox:dev=binary", "/"}, {"inbox:dev=binary", "/a/../b"}} {
		if spec, err := ParseSpec(bad[0], bad[1]); err == nil {
			t.Errorf("%q with entrypoint %q gives %+v, want an error", bad[0], bad[1], spec)
		}
	}
	spec, err := ParseSpec("inbox:dev=/some/where/inbox", "")
	if err != nil || spec.Entrypoint != "/inbox" {
		t.Errorf("default entrypoint: %+v, %v", spec, err)
	}
}
