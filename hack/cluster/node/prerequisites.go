package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Programs are the machine's own and the built programs that the node runs.
type Programs struct {
	Binaries string `json:"binaries"` // folder of the built programs
	Runc     string `json:"runc"`
	Plugins  string `json:"plugins"` // folder of the CNI plugins
	IP       string `json:"ip"`
	// Snapshotter is how containerd keeps the layers of an image.
	Snapshotter string `json:"snapshotter"`
}

// searchPath is where the node's programs look for others; a user's PATH often lacks the sbin folders.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

var pluginFolders = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// FindPrograms looks for what the machine must have and names everything that is missing, with what to install.
func FindPrograms(binaries string) (Programs, error) {
	if runtime.GOOS != "linux" {
		return Programs{}, fmt.Errorf("a node needs Linux, this is %s: use kind or another cluster and set KUBECONFIG", runtime.GOOS)
	}
	found := Programs{Binaries: binaries, Runc: find("runc"), IP: find("ip"), Plugins: findPlugins()}
	var missing, packages []string
	for _, need := range []struct{ program, at, from string }{
		{"runc", found.Runc, "runc"},
		{"the CNI plugins bridge, host-local and loopback", found.Plugins, "containernetworking-plugins"},
		{"iptables", find("iptables"), "iptables"},
		{"ip", found.IP, "iproute2"},
	} {
		if need.at == "" {
			missing = append(missing, need.program)
			packages = append(packages, need.from)
		}
	}
	if len(missing) > 0 {
		return Programs{}, fmt.Errorf("missing on this machine: %s; install with: apt-get install %s (or run hack/install-dependencies)",
			strings.Join(missing, ", "), strings.Join(packages, " "))
	}
	return found, nil
}

func find(program string) string {
	for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), filepath.SplitList(searchPath)...) {
		at := filepath.Join(folder, program)
		if _, err := exec.LookPath(at); err == nil && filepath.IsAbs(at) {
			return at
		}
	}
	return ""
}

func findPlugins() string {
	for _, folder := range pluginFolders {
		complete := true
		for _, plugin := range []string{"bridge", "host-local", "loopback"} {
			_, err := exec.LookPath(filepath.Join(folder, plugin))
			complete = complete && err == nil
		}
		if complete {
			return folder
		}
	}
	return ""
}

// snapshotterFor is overlayfs where the kernel can do it: not on top of another overlay, as inside most containers.
func snapshotterFor(folder string) (string, error) {
	var statistics unix.Statfs_t
	if err := unix.Statfs(folder, &statistics); err != nil {
		return "", fmt.Errorf("look at the file system of %s: %w", folder, err)
	}
	if statistics.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native", nil
	}
	return "overlayfs", nil
}
