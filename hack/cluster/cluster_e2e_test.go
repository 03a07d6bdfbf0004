//go:build e2e

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

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
