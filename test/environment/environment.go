// Package environment brings up what the demo, the end-to-end tests and the benchmarks
// stand on: a Kubernetes cluster, a PostgreSQL server that its pods reach, and the
// operator, installed from config/default with an image of its own.
//
// The cluster is the local one of hack/cluster, unless KUBECONFIG is set or the current
// context is of kind or k3d: then it is that one. On a cluster other than those three,
// INBOX_IMAGE names an image of the operator that the cluster can pull, and
// INBOX_HOST_ADDRESS the address at which its pods reach this machine.
package environment

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/messaginginbox/operator/test/postgres"
)

// Namespace is where config/default installs the operator.
const Namespace = "messaging-inbox-system"

const (
	deployment = "deployment/messaging-inbox-manager"
	// pods of any cluster; the server listens on an address of this machine only.
	anyAddress = "0.0.0.0/0"
)

// Environment is what is up.
type Environment struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Postgres is a server that pods reach.
	Postgres *postgres.Server

	root        string
	kubectl     string
	contextName string
	address     string
	directory   string // state of the local cluster
	log         io.Writer
	ownsCluster bool
}

// Up brings everything up and says on log what it is at. What was started is ended by
// Down, also after an error. The name, such as demo, and the checkout keep environments
// apart that are up at the same time; one that a crash left is ended first.
func Up(ctx context.Context, name string, log io.Writer) (_ *Environment, err error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the cache directory: %w", err)
	}
	e := &Environment{root: root, log: log, directory: filepath.Join(cache, "messaginginbox-operator", fmt.Sprintf("cluster-%s-%08x", name, crc32.ChecksumIEEE([]byte(root))))}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Down(context.WithoutCancel(ctx)))
		}
	}()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"Kubernetes", e.findOrStartCluster},
		{"PostgreSQL", e.startPostgres},
		{"the operator's image", e.loadOperator},
		{"the operator", e.install},
	} {
		started := time.Now()
		e.say("Bringing up %s ...", step.name)
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("bringing up %s: %w", step.name, err)
		}
		e.say("... %s is up after %.1f s", step.name, time.Since(started).Seconds())
	}
	return e, nil
}

// Down ends what Up started. A cluster that was there before stays, without the operator.
func (e *Environment) Down(ctx context.Context) error {
	var failures []error
	switch {
	case e.ownsCluster:
		_, err := e.cluster(ctx, "down")
		failures = append(failures, err)
	case e.Kubeconfig != "":
		_, err := e.Kubectl(ctx, "delete", "--ignore-not-found", "-f", e.manifest())
		failures = append(failures, err)
	}
	if e.Postgres != nil {
		failures = append(failures, e.Postgres.Stop())
	}
	return errors.Join(failures...)
}

// KubectlPath is the program kubectl that goes with the cluster.
func (e *Environment) KubectlPath() string { return e.kubectl }

// Root is the folder of the checkout.
func (e *Environment) Root() string { return e.root }

func (e *Environment) say(format string, arguments ...any) {
	_, _ = fmt.Fprintf(e.log, format+"\n", arguments...)
}

func (e *Environment) manifest() string { return filepath.Join(e.root, "dist", "install.yaml") }

// repository finds the checkout from the place of this file.
func repository() (string, error) {
	_, file, _, known := runtime.Caller(0)
	if !known {
		return "", errors.New("the place of the checkout is unknown")
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return "", fmt.Errorf("the checkout is not where it was built: %w", err)
	}
	return root, nil
}

// findOrStartCluster uses what the user points at, else the local cluster.
func (e *Environment) findOrStartCluster(ctx context.Context) error {
	found, name, err := existingCluster()
	if err != nil {
		return err
	}
	if found {
		e.contextName, e.kubectl = name, "kubectl"
		e.Kubeconfig = clientcmd.NewDefaultPathOptions().GetDefaultFilename()
		e.say("Using the context %s of %s", name, e.Kubeconfig)
		return e.findAddress(ctx)
	}
	e.ownsCluster = true
	if _, err = e.cluster(ctx, "down"); err != nil {
		return err
	}
	output, err := e.cluster(ctx, "up")
	if err != nil {
		return err
	}
	e.Kubeconfig = strings.TrimPrefix(lastLine(output), "KUBECONFIG=")
	binaries, err := e.cluster(ctx, "binaries")
	if err != nil {
		return err
	}
	e.kubectl = filepath.Join(lastLine(binaries), "kubectl")
	return e.findAddress(ctx)
}

// existingCluster says whether the user points at a cluster, and which context it is.
func existingCluster() (found bool, name string, err error) {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return false, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	name = config.CurrentContext
	return os.Getenv("KUBECONFIG") != "" || isKind(name) || isK3d(name), name, nil
}

func isKind(name string) bool { return strings.HasPrefix(name, "kind-") }
func isK3d(name string) bool  { return strings.HasPrefix(name, "k3d-") }

// findAddress finds the address at which pods reach this machine.
func (e *Environment) findAddress(ctx context.Context) error {
	declared := os.Getenv("INBOX_HOST_ADDRESS")
	network := "kind"
	switch {
	case declared != "":
		e.address = declared
		return nil
	case e.ownsCluster:
		output, err := e.cluster(ctx, "gateway")
		e.address = lastLine(output)
		return err
	case isK3d(e.contextName):
		network = e.contextName
	case !isKind(e.contextName):
		return errors.New("set INBOX_HOST_ADDRESS to the address at which the cluster's pods reach this machine")
	}
	output, err := e.run(ctx, nil, "docker", "network", "inspect", "--format", "{{range .IPAM.Config}}{{.Gateway}}\n{{end}}", network)
	for address := range strings.FieldsSeq(output) {
		if !strings.Contains(address, ":") {
			e.address = address
		}
	}
	return err
}

func (e *Environment) startPostgres(ctx context.Context) (err error) {
	e.Postgres, err = postgres.Start(ctx, postgres.Options{
		ListenAddress: e.address,
		HBA:           []string{"host all all " + anyAddress + " scram-sha-256"},
	})
	return err
}

func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return lines[len(lines)-1]
}
