// Package version says which build of the operator this is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Set at build time with -ldflags -X.
var (
	version  = "dev"
	revision = ""
)

// Build says which build this is.
type Build struct {
	// Version is the release, such as v0.1.0; "dev" for a build without one.
	Version string `json:"version"`
	// Revision is the commit.
	Revision string `json:"revision"`
	// GoVersion is the toolchain, such as go1.26.0.
	GoVersion string `json:"goVersion"`
	// Platform is operating system and architecture, such as linux/amd64.
	Platform string `json:"platform"`
}

// Of returns this build.
func Of() Build {
	return Build{Version: version, Revision: Revision(), GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// String is the version with the revision, the Go version and the platform.
func String() string {
	build := Of()
	return fmt.Sprintf("%s (revision %s, %s, %s)", build.Version, build.Revision, build.GoVersion, build.Platform)
}

// Revision is the commit of the build: stamped, else as the Go toolchain recorded it.
func Revision() string {
	if revision != "" {
		return revision
	}
	if build, found := debug.ReadBuildInfo(); found {
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return "unknown"
}
