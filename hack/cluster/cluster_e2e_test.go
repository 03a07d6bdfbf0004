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
	"sync"
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

func TestRestrictedPodsReachTheAPITheMachineAndEachOther(t *testing.T) {
	c := newCluster(t)
	c.up()
	c.runWorkload()
	c.checkReport()
	if logs := c.kubectl("logs", "--namespace", "restricted", "job/report"); logs != "the report begins" {
		t.Errorf("logs %q", logs)
	}
	if answer := c.kubectl("exec", "--namespace", "restricted", "deployment/server", "--", "/pod", "whoami"); answer != "user 65532" {
		t.Errorf("exec answers %q", answer)
	}
	refusal, err := c.tryKubectl("create", "-f", "testdata/root-pod.yaml")
	if err == nil || !strings.Contains(refusal, `violates PodSecurity "restricted`) {
		t.Errorf("a privileged pod in a restricted namespace: %v, %q", err, refusal)
	}
	if version := c.kubectl("version"); !strings.Contains(version, "Server Version: v1.") || strings.Contains(version, "master") {
		t.Errorf("version %q", version)
	}
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

func TestTwoClustersAtOnceHaveSubnetsOfTheirOwn(t *testing.T) {
	clusters := []*cluster{newCluster(t), newCluster(t)}
	var group sync.WaitGroup
	for _, c := range clusters {
		t.Cleanup(func() { c.run("down") })
		group.Go(func() {
			if _, stderr, err := c.try("up"); err != nil {
				t.Errorf("up: %v\n%s", err, stderr)
			}
		})
	}
	group.Wait()
	first, _ := clusters[0].run("gateway")
	second, _ := clusters[1].run("gateway")
	if first == second {
		t.Errorf("both clusters have the gateway %s", first)
	}
	clusters[0].run("down")
	clusters[1].runWorkload()
	clusters[1].checkReport()
}

func TestUpTwiceKeepsTheClusterAndDownTwiceIsNoError(t *testing.T) {
	c := newCluster(t)
	c.up()
	before := c.processes()
	if _, stderr := c.run("up"); stderr != "the cluster is up already" {
		t.Errorf("the second up says %q", stderr)
	}
	if after := c.processes(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the second up changed the processes from %v to %v", before, after)
	}
	c.run("down")
	if _, stderr := c.run("down"); !strings.HasPrefix(stderr, "there is no cluster in") {
		t.Errorf("the second down says %q", stderr)
	}
	for _, command := range []string{"status", "kubeconfig", "gateway"} {
		if _, stderr, err := c.try(command); err == nil || !strings.Contains(stderr, "the cluster is not up") {
			t.Errorf("%s without a cluster: %v, %q", command, err, stderr)
		}
	}
}

func TestTheNodeEndsAsAWholeAndComesUpAgain(t *testing.T) {
	for _, victim := range []string{"node", "etcd", "kubelet"} {
		t.Run("after kill -9 of "+victim, func(t *testing.T) {
			c := newCluster(t)
			c.up()
			all := c.processes()
			if len(all) != 8 {
				t.Fatalf("processes %v, want seven components and the first process", all)
			}
			c.kill(all[victim])
			for name, pid := range all {
				c.waitForEnd(name, pid)
			}
			if _, stderr, err := c.try("status"); err == nil || !strings.Contains(stderr, "has ended") {
				t.Errorf("status of a node that ended: %v, %q", err, stderr)
			}
			c.up()
			c.runWorkload()
			c.checkReport()
		})
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

func TestAComponentThatCannotStartIsNamedWithItsLog(t *testing.T) {
	c := newCluster(t)
	built, _ := c.run("binaries")
	broken := t.TempDir()
	entries, err := os.ReadDir(built)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if err = os.Symlink(filepath.Join(built, entry.Name()), filepath.Join(broken, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err = os.Remove(filepath.Join(broken, "etcd")); err != nil {
		t.Fatal(err)
	}
	if err = os.WriteFile(filepath.Join(broken, "etcd"), []byte("#!/bin/sh\necho no space left\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.run("down") })
	_, stderr, err := c.try("up", "--binaries", broken)
	if err == nil {
		t.Fatal("up succeeds without etcd")
	}
	for _, want := range []string{"etcd: ended with exit status 3", "no space left"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("up says %q, want %q in it", stderr, want)
		}
	}
}

func TestADirectoryWithSomethingElseIsNeitherUsedNorRemoved(t *testing.T) {
	c := newCluster(t)
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(c.dir, "thesis.txt")
	if err := os.WriteFile(kept, []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := c.try("up"); err == nil || !strings.Contains(stderr, "is not empty and holds no cluster") {
		t.Errorf("up: %v, %q", err, stderr)
	}
	c.run("down")
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("down removed a file that was not its own: %v", err)
	}
}
