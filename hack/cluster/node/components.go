package node

import (
	"path/filepath"
	"strconv"
)

// Components lists the node's long-lived parts in the order in which they start.
func Components() []string {
	return []string{"etcd", "containerd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"}
}

const etcdURL = "http://127.0.0.1:2379"

// arguments are the command line of each component.
func arguments(layout Layout, state *State) map[string][]string {
	return map[string][]string{
		"etcd": {
			"--data-dir", layout.path("etcd"),
			"--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL, "--listen-peer-urls", "http://127.0.0.1:2380",
			"--unsafe-no-fsync", // the data need not outlive a crash of the machine
		},
		"containerd":     {"--config", layout.path("containerd.toml")},
		"kube-apiserver": apiServerArguments(layout, state),
		"kube-controller-manager": {
			"--kubeconfig", layout.componentKubeconfig("kube-controller-manager"),
			"--service-account-private-key-file", layout.pki("service-account.key"),
			"--root-ca-file", layout.pki("ca.crt"),
			"--use-service-account-credentials", "--leader-elect=false", "--bind-address", "127.0.0.1",
			"--flex-volume-plugin-dir", layout.path("kubelet", "volume-plugins"),
		},
		"kube-scheduler": {"--kubeconfig", layout.componentKubeconfig("kube-scheduler"), "--leader-elect=false", "--bind-address", "127.0.0.1"},
		"kube-proxy":     {"--config", layout.path("kube-proxy.json")},
		"kubelet": {
			"--config", layout.path("kubelet.json"), "--kubeconfig", layout.componentKubeconfig("kubelet"),
			"--hostname-override", Name, "--node-ip", state.Network.Node().String(),
		},
	}
}

func apiServerArguments(layout Layout, state *State) []string {
	return []string{
		"--etcd-servers", etcdURL,
		"--secure-port", strconv.Itoa(apiPort), "--bind-address", "0.0.0.0", "--advertise-address", state.Network.Node().String(),
		"--tls-cert-file", layout.pki("kube-apiserver.crt"), "--tls-private-key-file", layout.pki("kube-apiserver.key"),
		"--client-ca-file", layout.pki("ca.crt"),
		"--kubelet-certificate-authority", layout.pki("ca.crt"),
		"--kubelet-client-certificate", layout.pki("kubelet-client.crt"), "--kubelet-client-key", layout.pki("kubelet-client.key"),
		"--kubelet-preferred-address-types", "InternalIP",
		"--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction",
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", layout.pki("service-account.pub"),
		"--service-account-signing-key-file", layout.pki("service-account.key"),
		"--service-cluster-ip-range", serviceSubnet,
		"--allow-privileged",
	}
}

// importArguments load an image archive with ctr through containerd's socket.
func importArguments(socket, archive string) []string {
	return []string{"--address", socket, "--namespace", "k8s.io", "images", "import", archive}
}

// environment is what the node's programs get: nothing of the caller's, in particular no proxy.
func environment(state *State) []string {
	return []string{"PATH=" + state.Programs.Binaries + ":" + searchPath, "HOME=/root"}
}

func program(state *State, name string) string { return filepath.Join(state.Programs.Binaries, name) }
