package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/messaginginbox/operator/test/environment"
)

// scrapeConfig asks the operator through the API server, as the e2e tests do. The label
// namespace is that of the MessagingInbox, as in config/prometheus.
const scrapeConfig = `global: {scrape_interval: 15s}
scrape_configs:
- job_name: messaging-inbox
  honor_labels: true
  metrics_path: /api/v1/namespaces/%s/services/messaging-inbox-metrics:metrics/proxy/metrics
  static_configs: [{targets: [%q]}]
`

// prometheus is a running server that scrapes the operator.
type prometheus struct {
	url       string
	directory string
	server    *child
	proxy     *child // kubectl proxy, which signs in to the API server
}

// startPrometheus builds Prometheus from its Go module, and returns once it answers.
func startPrometheus(ctx context.Context, env *environment.Environment) (_ *prometheus, err error) {
	p := &prometheus{}
	if p.directory, err = os.MkdirTemp("", "prometheus-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	program := filepath.Join(p.directory, "prometheus")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "remove_all_sd,netgo", "-o", program, "github.com/prometheus/prometheus/cmd/prometheus") // #nosec G204 -- our own tool
	build.Dir = filepath.Join(env.Root(), "hack", "promtool")
	fmt.Fprintln(os.Stderr, "Building Prometheus ...")
	if output, buildErr := build.CombinedOutput(); buildErr != nil {
		return nil, fmt.Errorf("building Prometheus: %w\n%s", buildErr, output)
	}
	address, err := p.startProxy(env)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(p.directory, "prometheus.yml")
	if err = os.WriteFile(config, fmt.Appendf(nil, scrapeConfig, environment.Namespace, address), 0o600); err != nil {
		return nil, err
	}
	listen, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	p.url = "http://" + listen
	log, err := os.Create(filepath.Join(p.directory, "prometheus.log"))
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(p.directory, "data"), "--web.listen-address="+listen) // #nosec G204 -- our own program
	command.Stdout, command.Stderr = log, log
	if p.server, err = startChild(command); err != nil {
		return nil, err
	}
	err = p.awaitReady(ctx)
	return p, err
}

// startProxy returns the address of the API server without TLS, on loopback.
func (p *prometheus) startProxy(env *environment.Environment) (string, error) {
	command := exec.Command(env.KubectlPath(), "--kubeconfig", env.Kubeconfig, "proxy", "--port=0") // #nosec G204 -- our own program
	output, err := command.StdoutPipe()
	if err != nil {
		return "", err
	}
	if p.proxy, err = startChild(command); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if _, address, found := strings.Cut(lines.Text(), "Starting to serve on "); found {
			return address, nil
		}
	}
	return "", fmt.Errorf("kubectl proxy does not say where it listens: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (p *prometheus) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/-/ready", http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			err = response.Body.Close()
			if err != nil || response.StatusCode == http.StatusOK {
				return err
			}
		}
		if !wait(ctx, poll) {
			return fmt.Errorf("prometheus does not answer; its log is %s: %w", filepath.Join(p.directory, "prometheus.log"), err)
		}
	}
}

func (p *prometheus) stop() error {
	return errors.Join(p.server.stop(), p.proxy.stop(), os.RemoveAll(p.directory))
}

// child is a program that was started.
type child struct {
	command *exec.Cmd
}

func startChild(command *exec.Cmd) (*child, error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C on the terminal is for us
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(command.Path), err)
	}
	return &child{command: command}, nil
}

// stop ends the program and waits for it; one that never started is no error.
func (c *child) stop() error {
	if c == nil {
		return nil
	}
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = c.command.Wait() // it was told to end
	return nil
}
