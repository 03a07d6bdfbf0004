package environment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// localImage has a tag of its own for each build, so that a cluster that is kept never
// runs an older one.
func localImage() string {
	return fmt.Sprintf("localhost/messaging-inbox-operator:dev-%d", time.Now().Unix())
}

// loadOperator builds the operator and hands its image to the cluster; the manifest then
// names that image.
func (e *Environment) loadOperator(ctx context.Context) error {
	image := os.Getenv("INBOX_IMAGE")
	if image == "" {
		image = localImage()
		if err := e.buildAndLoad(ctx, image); err != nil {
			return err
		}
	}
	_, err := e.run(ctx, nil, "make", "-C", e.root, "install-manifest", "IMG="+image)
	return err
}

func (e *Environment) buildAndLoad(ctx context.Context, image string) error {
	if _, err := e.run(ctx, nil, "make", "-C", e.root, "build"); err != nil {
		return err
	}
	spec := image + "=" + filepath.Join(e.root, "bin", "inbox")
	if e.ownsCluster {
		_, err := e.cluster(ctx, "image", spec)
		return err
	}
	archive := filepath.Join(e.root, "dist", "operator.tar")
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return fmt.Errorf("making the folder of the image: %w", err)
	}
	if _, err := e.cluster(ctx, "image", "--output", archive, spec); err != nil {
		return err
	}
	var err error
	switch {
	case isKind(e.contextName):
		_, err = e.run(ctx, nil, "kind", "load", "image-archive", archive, "--name", strings.TrimPrefix(e.contextName, "kind-"))
	case isK3d(e.contextName):
		_, err = e.run(ctx, nil, "k3d", "image", "import", archive, "--cluster", strings.TrimPrefix(e.contextName, "k3d-"))
	default:
		err = errors.New("set INBOX_IMAGE to an image of the operator that this cluster can pull")
	}
	return err
}

// install installs the operator as a user would, and waits until it is ready.
func (e *Environment) install(ctx context.Context) error {
	if _, err := e.Kubectl(ctx, "apply", "--server-side", "-f", e.manifest()); err != nil {
		return err
	}
	if _, err := e.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd/messaginginboxes.messaginginbox.dev"); err != nil {
		return err
	}
	if _, err := e.Kubectl(ctx, "-n", Namespace, "rollout", "status", "--timeout=180s", deployment); err != nil {
		logs, _ := e.Kubectl(ctx, "-n", Namespace, "describe", "pods")
		return fmt.Errorf("%w\n%s", err, logs)
	}
	return nil
}

// Kubectl runs kubectl as the cluster's administrator and returns what it printed.
func (e *Environment) Kubectl(ctx context.Context, arguments ...string) (string, error) {
	return e.run(ctx, nil, e.kubectl, append([]string{"--kubeconfig", e.Kubeconfig}, arguments...)...)
}

// Apply applies a manifest.
func (e *Environment) Apply(ctx context.Context, namespace, manifest string) error {
	_, err := e.run(ctx, strings.NewReader(manifest), e.kubectl, "--kubeconfig", e.Kubeconfig, "-n", namespace, "apply", "-f", "-")
	return err
}

// PutSecret makes or replaces a Secret with one key. The value reaches kubectl through
// its standard input: an argument would show in the list of processes.
func (e *Environment) PutSecret(ctx context.Context, namespace, name, key, value string) error {
	return e.Apply(ctx, namespace, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\nstringData: {%s: %q}\n", name, key, value))
}

// cluster runs a command of hack/cluster, whose progress goes to the log.
func (e *Environment) cluster(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"run", ".", "--dir", e.directory}, arguments...)...) // #nosec G204 -- our own commands
	command.Dir = filepath.Join(e.root, "hack", "cluster")
	return capture(command, e.log)
}

func (e *Environment) run(ctx context.Context, input io.Reader, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, name, arguments...) // #nosec G204 -- our own commands
	command.Stdin = input
	return capture(command, nil)
}

// capture returns the command's standard output. Its standard error goes to the error
// when it fails, and to progress while it runs.
func capture(command *exec.Cmd, progress io.Writer) (string, error) {
	var output, complaints bytes.Buffer
	command.Stdout, command.Stderr = &output, io.Writer(&complaints)
	if progress != nil {
		command.Stderr = io.MultiWriter(&complaints, progress)
	}
	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("%s: %w\n%s%s", strings.Join(command.Args, " "), err, output.String(), complaints.String())
	}
	return output.String(), nil
}
