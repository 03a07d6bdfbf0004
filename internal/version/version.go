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

// Version of the operator, such as v0.1.0; "dev" for a build without a release.
func Version() string { return version }

// String is the version with the revision, the Go version and the platform.
func String() string {
	return fmt.Sprintf("%s (revision %s, %s, %s/%s)", version, Revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
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
