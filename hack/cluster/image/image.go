// Package image makes a container image of one static program without a
// registry or a container engine: one layer, the same bytes each time.
package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// User is the user and the group that the program runs as: no name, no privileges.
const User = "65532:65532"

// Spec is one image to make.
type Spec struct {
	Tag        string // NAME:TAG
	Binary     string // path of the program on this machine
	Entrypoint string // absolute path of the program in the image
}

// ParseSpec reads NAME:TAG=BINARY. An empty entrypoint means the program's own name in the image's root.
func ParseSpec(argument, entrypoint string) (Spec, error) {
	tag, binary, found := strings.Cut(argument, "=")
	if !found || tag == "" || binary == "" {
		return Spec{}, fmt.Errorf("%q is not NAME:TAG=BINARY", argument)
	}
	if _, err := name.NewTag(tag); err != nil {
		return Spec{}, fmt.Errorf("%q is not an image name: %w", tag, err)
	}
	if entrypoint == "" {
		entrypoint = "/" + path.Base(binary)
	}
	if !path.IsAbs(entrypoint) || path.Clean(entrypoint) != entrypoint || entrypoint == "/" {
		return Spec{}, fmt.Errorf("the entrypoint %q is not an absolute path of a file", entrypoint)
	}
	return Spec{Tag: tag, Binary: binary, Entrypoint: entrypoint}, nil
}

// Write makes the image and writes it as a docker-archive that containerd imports.
func Write(spec Spec, out io.Writer) error {
	program, err := os.ReadFile(spec.Binary)
	if err != nil {
		return fmt.Errorf("read the program of %s: %w", spec.Tag, err)
	}
	made, err := build(spec.Entrypoint, program)
	if err != nil {
		return fmt.Errorf("make the image %s: %w", spec.Tag, err)
	}
	tag, err := name.NewTag(spec.Tag)
	if err != nil {
		return fmt.Errorf("name the image %s: %w", spec.Tag, err)
	}
	if err := tarball.Write(tag, made, out); err != nil {
		return fmt.Errorf("write the image %s: %w", spec.Tag, err)
	}
	return nil
}

func build(entrypoint string, program []byte) (v1.Image, error) {
	content, err := layer(entrypoint, program)
	if err != nil {
		return nil, err
	}
	filesystem, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		return nil, err
	}
	withLayer, err := mutate.AppendLayers(empty.Image, filesystem)
	if err != nil {
		return nil, err
	}
	file, err := withLayer.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Config = v1.Config{Entrypoint: []string{entrypoint}, User: User, WorkingDir: "/"}
	return mutate.ConfigFile(withLayer, file)
}

// layer is the image's file system: the program, the folders above it, and /tmp.
func layer(entrypoint string, program []byte) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	headers := []*tar.Header{{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}}
	headers = append(headers, parents(entrypoint)...)
	headers = append(headers, &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(entrypoint, "/"), Mode: 0o755, Size: int64(len(program))})
	for _, header := range headers {
		header.ModTime = time.Unix(0, 0)
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	if _, err := archive.Write(program); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func parents(entrypoint string) []*tar.Header {
	var headers []*tar.Header
	for folder := path.Dir(entrypoint); folder != "/" && folder != "/tmp"; folder = path.Dir(folder) {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(folder, "/") + "/", Mode: 0o755}
		headers = append([]*tar.Header{header}, headers...)
	}
	return headers
}
