// Package node runs a whole Kubernetes in namespaces of its own: processes,
// mounts and network. Its processes are children of one first process, so
// that the kernel removes all of them, their mounts, bridge, links and firewall
// rules when that one ends, and nothing of the machine's own is changed.
package node

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
)

const (
	// Name is the name of the node and of its Kubernetes Node object.
	Name = "inbox"
	// apiPort is the API server's port inside the node's network.
	apiPort = 6443
	// serviceSubnet holds the ClusterIPs; serviceAPI is its first, the Service "kubernetes".
	serviceSubnet = "10.128.0.0/24"
	serviceAPI    = "10.128.0.1"
	bridgeName    = "inbox0"
	pauseImage    = "localhost/pause:dev"
	// containerdSocket is a path in the node's own mounts: short enough for a socket wherever the state directory is.
	containerdSocket = "/run/containerd/containerd.sock"
)

// Layout knows where everything is below one state directory.
type Layout struct{ Dir string }

// Kubeconfig is the administrator's kubeconfig, valid on this machine.
func (l Layout) Kubeconfig() string { return l.path("kubeconfig") }

// Log is where a component writes.
func (l Layout) Log(component string) string { return l.path("logs", component+".log") }

func (l Layout) path(parts ...string) string {
	return filepath.Join(append([]string{l.Dir}, parts...)...)
}

func (l Layout) stateFile() string { return l.path("state.json") }

// readyFile exists from the moment at which the whole node was ready.
func (l Layout) readyFile() string { return l.path("ready") }

func (l Layout) pki(name string) string { return l.path("pki", name) }

// componentKubeconfig is valid inside the node.
func (l Layout) componentKubeconfig(component string) string {
	return l.path("pki", component+".kubeconfig")
}

// id tells apart the clusters of one machine by their state directories.
func (l Layout) id() string {
	sum := sha256.Sum256([]byte(l.Dir))
	return hex.EncodeToString(sum[:])[:8]
}

// linkName is the machine's end of the link to the node; the kernel allows 15 bytes.
func (l Layout) linkName() string { return "inbox" + l.id() }

// peerName is the link's other end before the node has it.
func (l Layout) peerName() string { return l.linkName() + "n" }

// cgroupName is the cgroup above all pods, in each hierarchy.
func (l Layout) cgroupName() string { return "messaginginbox-" + l.id() }
