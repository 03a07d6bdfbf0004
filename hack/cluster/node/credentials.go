package node

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/messaginginbox/operator/hack/cluster/certificate"
)

// clientUsers are the users of the node's parts; the built-in RBAC roles and the Node authorizer know these names.
var clientUsers = []struct {
	component string
	user      string
	groups    []string
}{
	{"admin", "admin", []string{"system:masters"}},
	{"kube-controller-manager", "system:kube-controller-manager", nil},
	{"kube-scheduler", "system:kube-scheduler", nil},
	{"kube-proxy", "system:kube-proxy", nil},
	{"kubelet", "system:node:" + Name, []string{"system:nodes"}},
}

// writeCredentials makes the cluster's authority, all certificates below it, and a kubeconfig for each user.
func writeCredentials(layout Layout, state *State, now time.Time) error {
	authority, err := certificate.NewAuthority("messaginginbox-"+layout.id(), now)
	if err != nil {
		return err
	}
	if err = os.WriteFile(layout.pki("ca.crt"), authority.PEM(), 0o644); err != nil {
		return fmt.Errorf("write the authority's certificate: %w", err)
	}
	if err = writeServing(layout, state, authority); err != nil {
		return err
	}
	pair, err := authority.Client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	if err := writePair(layout, "kubelet-client", pair); err != nil {
		return err
	}
	if err := writeSigningKey(layout); err != nil {
		return err
	}
	return writeKubeconfigs(layout, state, authority)
}

func writeServing(layout Layout, state *State, authority *certificate.Authority) error {
	loopback, node := net.IPv4(127, 0, 0, 1), net.IP(state.Network.Node().AsSlice())
	server, err := authority.Serving("kube-apiserver",
		[]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost", Name},
		[]net.IP{loopback, node, net.ParseIP(serviceAPI)})
	if err != nil {
		return err
	}
	if err = writePair(layout, "kube-apiserver", server); err != nil {
		return err
	}
	kubelet, err := authority.Serving("system:node:"+Name, []string{Name}, []net.IP{loopback, node})
	if err != nil {
		return err
	}
	return writePair(layout, "kubelet", kubelet)
}

func writeSigningKey(layout Layout) error {
	private, public, err := certificate.SigningKey()
	if err != nil {
		return err
	}
	if err := os.WriteFile(layout.pki("service-account.key"), private, 0o600); err != nil {
		return fmt.Errorf("write the ServiceAccount key: %w", err)
	}
	if err := os.WriteFile(layout.pki("service-account.pub"), public, 0o644); err != nil {
		return fmt.Errorf("write the ServiceAccount key: %w", err)
	}
	return nil
}

func writeKubeconfigs(layout Layout, state *State, authority *certificate.Authority) error {
	for _, client := range clientUsers {
		pair, err := authority.Client(client.user, client.groups...)
		if err != nil {
			return err
		}
		if err := writeKubeconfig(layout.componentKubeconfig(client.component), apiPort, authority.PEM(), pair); err != nil {
			return err
		}
		if client.component != "admin" {
			continue
		}
		if err := writePair(layout, "admin", pair); err != nil {
			return err
		}
		if err := writeKubeconfig(layout.Kubeconfig(), state.Port, authority.PEM(), pair); err != nil {
			return err
		}
	}
	return giveToCaller(layout.Kubeconfig())
}

// giveToCaller lets the user behind sudo read the file.
func giveToCaller(path string) error {
	caller := os.Getenv("SUDO_UID")
	if caller == "" {
		return nil
	}
	uid, err := strconv.Atoi(caller)
	if err != nil {
		return fmt.Errorf("SUDO_UID is not a user's number: %w", err)
	}
	if err = os.Chown(path, uid, -1); err != nil {
		return fmt.Errorf("give %s to the calling user: %w", path, err)
	}
	return nil
}

func writePair(layout Layout, name string, pair certificate.Pair) error {
	if err := os.WriteFile(layout.pki(name+".crt"), pair.Certificate, 0o644); err != nil {
		return fmt.Errorf("write the certificate of %s: %w", name, err)
	}
	if err := os.WriteFile(layout.pki(name+".key"), pair.Key, 0o600); err != nil {
		return fmt.Errorf("write the key of %s: %w", name, err)
	}
	return nil
}

// writeKubeconfig writes JSON, which is YAML too. Everything is inside the file, so that it can be copied.
func writeKubeconfig(path string, port int, authority []byte, pair certificate.Pair) error {
	const name = "messaginginbox"
	content, err := json.MarshalIndent(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": map[string]any{
			"server":                     "https://127.0.0.1:" + strconv.Itoa(port),
			"certificate-authority-data": authority,
		}}},
		"users": []any{map[string]any{"name": name, "user": map[string]any{
			"client-certificate-data": pair.Certificate,
			"client-key-data":         pair.Key,
		}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": name}}},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode a kubeconfig: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}
