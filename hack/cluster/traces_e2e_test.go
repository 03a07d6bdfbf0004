//go:build e2e

package main_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// watchedPaths are where a Kubernetes node usually leaves something.
var watchedPaths = []string{
	"/etc/cni", "/etc/cni/net.d", "/opt/cni", "/opt/containerd", "/run/containerd", "/run/cni", "/run/netns", "/run/nri", "/run/runc",
	"/usr/libexec/kubernetes", "/var/lib/cni", "/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet", "/var/lib/kube-proxy",
	"/var/log/containers", "/var/log/pods", "/run/kubernetes",
}

// watchedSettings are what a kubelet, kube-proxy or CNI plugin sets for the whole machine.
var watchedSettings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	"net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet", "net/netfilter/nf_conntrack_max",
}

func TestDownLeavesNoTrace(t *testing.T) {
	c := newCluster(t)
	c.run("binaries")
	before := traces(t, c.dir)
	c.up()
	c.runWorkload()
	if during := traces(t, c.dir); len(difference(during, before)) == 0 {
		t.Fatal("a running cluster leaves no trace: this test would see nothing")
	}
	c.run("down")
	after := traces(t, c.dir)
	for _, left := range difference(after, before) {
		t.Errorf("left behind: %s", left)
	}
	for _, lost := range difference(before, after) {
		t.Errorf("removed, but not made by the cluster: %s", lost)
	}
}

// traces lists what a cluster could leave on this machine, one a line.
func traces(t *testing.T, dir string) []string {
	t.Helper()
	found := firewallRules(t)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		found = append(found, "mount "+strings.Fields(line)[4])
	}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		found = append(found, "link "+link.Name)
	}
	for _, setting := range watchedSettings {
		value, err := os.ReadFile("/proc/sys/" + setting)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprintf("setting %s = %s", setting, strings.TrimSpace(string(value))))
	}
	for _, path := range append(slices.Clone(watchedPaths), dir) {
		if _, err := os.Stat(path); err == nil {
			found = append(found, "path "+path)
		}
	}
	return append(append(found, cgroups(t)...), processes(t, dir)...)
}

func firewallRules(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, program := range []string{"iptables-save", "ip6tables-save"} {
		rules, err := exec.Command(program).Output()
		if err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		for line := range strings.Lines(string(rules)) {
			if strings.HasPrefix(line, "-A") || strings.HasPrefix(line, ":") {
				line, _, _ = strings.Cut(line, "[")
				found = append(found, program+" "+strings.TrimSpace(line))
			}
		}
	}
	return found
}

func cgroups(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/*", "/sys/fs/cgroup/*/*"} {
		folders, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			if name := filepath.Base(folder); strings.HasPrefix(name, "messaginginbox-") || name == "kubepods" {
				found = append(found, "cgroup "+folder)
			}
		}
	}
	return found
}

// processes lists those that mention the state directory, are the test's pods, or are shims and pauses of any cluster.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range lines {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		line := strings.ReplaceAll(string(raw), "\x00", " ")
		if strings.Contains(line, dir) || strings.Contains(line, "containerd-shim") || strings.HasPrefix(line, "/pause") || strings.HasPrefix(line, "/pod ") {
			found = append(found, "process "+line)
		}
	}
	return found
}

func difference(of, without []string) []string {
	var left []string
	for _, line := range of {
		if !slices.Contains(without, line) {
			left = append(left, line)
		}
	}
	return left
}
