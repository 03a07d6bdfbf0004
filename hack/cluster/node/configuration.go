package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// writeConfigurations writes the files that the node's parts read.
func writeConfigurations(layout Layout, state *State) error {
	resolver, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read this machine's resolver configuration: %w", err)
	}
	files := map[string][]byte{
		layout.path("containerd.toml"): containerdConfiguration(layout, state),
		layout.path("resolv.conf"):     resolver,
	}
	for path, value := range map[string]any{
		layout.path("kubelet.json"):              kubeletConfiguration(layout),
		layout.path("kube-proxy.json"):           proxyConfiguration(layout, state),
		layout.path("cni", "10-bridge.conflist"): podNetwork(layout, state),
	} {
		if files[path], err = json.MarshalIndent(value, "", "  "); err != nil {
			return fmt.Errorf("encode %s: %w", path, err)
		}
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("write a configuration: %w", err)
		}
	}
	return nil
}

// containerdConfiguration keeps everything below the state directory or in the
// node's own mounts. AppArmor is off because its profile would stay in the kernel.
func containerdConfiguration(layout Layout, state *State) []byte {
	return fmt.Appendf(nil, `version = 3
root = %q
state = "/run/containerd"

[grpc]
address = %q

[plugins.'io.containerd.nri.v1.nri']
disable = true

[plugins.'io.containerd.internal.v1.opt']
path = %q

[plugins.'io.containerd.cri.v1.images']
snapshotter = %q

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = %q

[plugins.'io.containerd.cri.v1.runtime']
disable_apparmor = true
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = %q

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [%q]
conf_dir = %q
`, layout.path("containerd"), containerdSocket, layout.path("opt"), state.Programs.Snapshotter, pauseImage,
		state.Programs.Runc, state.Programs.Plugins, layout.path("cni"))
}

// podNetwork puts the pods on the bridge. Nothing is masqueraded: the machine is a neighbour, and the node has no way to other networks.
func podNetwork(layout Layout, state *State) any {
	return map[string]any{
		"cniVersion": "1.0.0",
		"name":       bridgeName,
		"plugins": []any{map[string]any{
			"type":             "bridge",
			"bridge":           bridgeName,
			"isDefaultGateway": true,
			"hairpinMode":      true,
			"ipam": map[string]any{
				"type":    "host-local",
				"dataDir": layout.path("cni-addresses"),
				"ranges":  []any{[]any{map[string]any{"subnet": state.Network.Subnet, "rangeStart": state.Network.pods(), "gateway": state.Network.Node()}}},
			},
		}},
	}
}

// kubeletConfiguration never collects images: they were loaded by hand and can't be pulled again.
func kubeletConfiguration(layout Layout) any {
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": layout.pki("ca.crt")},
		},
		"authorization":               map[string]any{"mode": "Webhook"},
		"tlsCertFile":                 layout.pki("kubelet.crt"),
		"tlsPrivateKeyFile":           layout.pki("kubelet.key"),
		"cgroupDriver":                "cgroupfs",
		"cgroupRoot":                  "/" + layout.cgroupName(),
		"failCgroupV1":                false,
		"failSwapOn":                  false,
		"containerRuntimeEndpoint":    "unix://" + containerdSocket,
		"resolvConf":                  layout.path("resolv.conf"),
		"podLogsDir":                  layout.path("logs", "pods"),
		"volumePluginDir":             layout.path("kubelet", "volume-plugins"),
		"enforceNodeAllocatable":      []string{},
		"evictionHard":                map[string]string{"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "1%"},
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
	}
}

// proxyConfiguration masquerades all traffic to a Service, so that a pod gets the
// answer of another pod on the same bridge without the kernel module br_netfilter,
// and leaves the machine-wide limits of connection tracking alone.
func proxyConfiguration(layout Layout, state *State) any {
	return map[string]any{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"clientConnection":   map[string]any{"kubeconfig": layout.componentKubeconfig("kube-proxy")},
		"mode":               "iptables",
		"clusterCIDR":        state.Network.Subnet,
		"hostnameOverride":   Name,
		"bindAddress":        state.Network.Node(),
		"healthzBindAddress": "127.0.0.1:10256",
		"metricsBindAddress": "127.0.0.1:10249",
		"iptables":           map[string]any{"masqueradeAll": true},
		"conntrack":          map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	}
}
