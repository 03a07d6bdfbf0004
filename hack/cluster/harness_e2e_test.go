//go:build e2e

package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cluster drives the built command against a state directory of its own.
type cluster struct {
	t       *testing.T
	command string
	dir     string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, command: filepath.Join(t.TempDir(), "cluster"), dir: filepath.Join(t.TempDir(), "state")}
	c.build(c.command, ".")
	return c
}

func (c *cluster) build(to, from string) {
	c.t.Helper()
	cmd := exec.Command("go", "build", "-o", to, from)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("build %s: %v\n%s", from, err, output)
	}
}

// try runs a command of the program and gives both its outputs.
func (c *cluster) try(arguments ...string) (stdout, stderr string, err error) {
	cmd := exec.Command(c.command, append(arguments, "--dir", c.dir)...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err = cmd.Run()
	return strings.TrimSpace(out.String()), strings.TrimSpace(problems.String()), err
}

func (c *cluster) run(arguments ...string) (stdout, stderr string) {
	c.t.Helper()
	stdout, stderr, err := c.try(arguments...)
	if err != nil {
		c.t.Fatalf("cluster %v: %v\n%s", arguments, err, stderr)
	}
	return stdout, stderr
}

func (c *cluster) up() {
	c.t.Helper()
	c.t.Cleanup(func() { c.run("down") })
	began := time.Now()
	stdout, _ := c.run("up")
	c.t.Logf("up took %s", time.Since(began).Round(100*time.Millisecond))
	if want := "KUBECONFIG=" + filepath.Join(c.dir, "kubeconfig"); stdout != want {
		c.t.Fatalf("up prints %q, want %q", stdout, want)
	}
}

func (c *cluster) tryKubectl(arguments ...string) (string, error) {
	binaries, _ := c.run("binaries")
	cmd := exec.Command(filepath.Join(binaries, "kubectl"), append([]string{"--kubeconfig", filepath.Join(c.dir, "kubeconfig")}, arguments...)...)
	output, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

func (c *cluster) kubectl(arguments ...string) string {
	c.t.Helper()
	output, err := c.tryKubectl(arguments...)
	if err != nil {
		c.t.Fatalf("kubectl %v: %v\n%s", arguments, err, output)
	}
	return output
}

// processes gives the components' process ids by name, and the first process under "node".
func (c *cluster) processes() map[string]int {
	c.t.Helper()
	stdout, _ := c.run("status")
	found := map[string]int{}
	for line := range strings.Lines(stdout) {
		fields := strings.Fields(line)
		for i, field := range fields[:len(fields)-1] {
			if field != "process" {
				continue
			}
			pid, err := strconv.Atoi(fields[i+1])
			if err != nil {
				c.t.Fatalf("status line %q: %v", line, err)
			}
			found[fields[0]] = pid
		}
	}
	return found
}

// runWorkload runs a server behind a Service, then a Job that asks it, the API and this machine.
func (c *cluster) runWorkload() {
	c.t.Helper()
	program := filepath.Join(c.t.TempDir(), "pod")
	c.build(program, "./testdata/pod")
	c.run("image", "localhost/pod:test="+program)
	gateway, _ := c.run("gateway")
	listener, err := net.Listen("tcp", net.JoinHostPort(gateway, "0"))
	if err != nil {
		c.t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello from the machine") })}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()

	c.kubectl("apply", "-f", "testdata/workload.yaml")
	c.kubectl("rollout", "status", "--namespace", "restricted", "--timeout", "2m", "deployment/server")
	job, err := os.ReadFile("testdata/job.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(c.t.TempDir(), "job.yaml")
	job = bytes.ReplaceAll(job, []byte("MACHINE_URL"), fmt.Appendf(nil, "http://%s/", listener.Addr()))
	if err := os.WriteFile(file, job, 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.kubectl("apply", "-f", file)
	c.kubectl("wait", "--namespace", "restricted", "--timeout", "2m", "--for", "condition=Complete", "job/report")
}

func (c *cluster) checkReport() {
	c.t.Helper()
	message := c.kubectl("get", "pods", "--namespace", "restricted", "--selector", "job-name=report",
		"--output", "jsonpath={.items[0].status.containerStatuses[0].state.terminated.message}")
	want := `{"api":"hello from the API","machine":"hello from the machine","rootIsReadOnly":true,"service":"hello from a pod","user":65532}`
	if message != want {
		c.t.Errorf("termination message\n  %s, want\n  %s", message, want)
	}
}

func (c *cluster) kill(pid int) {
	c.t.Helper()
	found, err := os.FindProcess(pid)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := found.Kill(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) waitForEnd(name string, pid int) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s (process %d) outlives the node", name, pid)
		}
	}
}
