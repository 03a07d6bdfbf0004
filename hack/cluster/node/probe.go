package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const probeTimeout = 5 * time.Second

// prober asks the node's parts from inside whether they are ready.
type prober struct{ client *http.Client }

func newProber(layout Layout) (*prober, error) {
	authority, err := os.ReadFile(layout.pki("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	own, err := tls.LoadX509KeyPair(layout.pki("admin.crt"), layout.pki("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("read the administrator's certificate: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}}
	return &prober{client: &http.Client{Transport: transport, Timeout: probeTimeout}}, nil
}

func (p *prober) etcd(ctx context.Context) error {
	_, err := p.get(ctx, etcdURL+"/health")
	return err
}

func (p *prober) containerd(ctx context.Context) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "unix", containerdSocket)
	if err != nil {
		return err
	}
	return connection.Close()
}

func (p *prober) apiServer(ctx context.Context) error {
	_, err := p.api(ctx, "/readyz")
	return err
}

// serviceAccount is made by the controller manager; without it no pod is admitted.
func (p *prober) serviceAccount(ctx context.Context) error {
	_, err := p.api(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
	return err
}

func (p *prober) proxy(ctx context.Context) error {
	_, err := p.get(ctx, "http://127.0.0.1:10256/healthz")
	return err
}

func (p *prober) node(ctx context.Context) error {
	body, err := p.api(ctx, "/api/v1/nodes/"+Name)
	if err != nil {
		return err
	}
	return nodeReady(body)
}

// nodeReady reads the Ready condition of a Node and its taints: a pod is only scheduled when none is left.
func nodeReady(body []byte) error {
	var node struct {
		Spec struct {
			Taints []struct{ Key string }
		}
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(body, &node); err != nil {
		return fmt.Errorf("decode the Node: %w", err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type != "Ready" {
			continue
		}
		if condition.Status != "True" {
			return fmt.Errorf("the node is not ready: %s", condition.Message)
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("the node still has the taint %s", node.Spec.Taints[0].Key)
		}
		return nil
	}
	return fmt.Errorf("the node has no condition Ready yet")
}

func (p *prober) api(ctx context.Context, path string) ([]byte, error) {
	return p.get(ctx, fmt.Sprintf("https://127.0.0.1:%d%s", apiPort, path))
}

func (p *prober) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s: %.300s", url, response.Status, body)
	}
	return body, nil
}
