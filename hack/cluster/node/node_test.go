package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/messaginginbox/operator/hack/cluster/binaries"
)

func TestParseMounts(t *testing.T) {
	const table = `22 28 0:20 / /proc rw,nosuid shared:5 - proc proc rw
30 28 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
31 28 0:27 / /with\040space rw shared:1 master:2 - ext4 /dev/sda1 rw
broken line
`
	want := []mount{{"/proc", "proc"}, {"/sys/fs/cgroup/memory", "cgroup"}, {"/with space", "ext4"}}
	if got := parseMounts(table); !slices.Equal(got, want) {
		t.Errorf("mounts %v, want %v", got, want)
	}
}

func TestIsBelow(t *testing.T) {
	for path, want := range map[string]bool{"/a/b": true, "/a/b/c": true, "/a/bc": false, "/a": false} {
		if got := isBelow(path, "/a/b"); got != want {
			t.Errorf("%s below /a/b is %t, want %t", path, got, want)
		}
	}
}

func TestNamesDifferByStateDirectoryAndFitTheKernel(t *testing.T) {
	one, other := Layout{Dir: "/one"}, Layout{Dir: "/other"}
	if one.linkName() == other.linkName() || one.cgroupName() == other.cgroupName() {
		t.Errorf("two clusters share %s or %s", one.linkName(), one.cgroupName())
	}
	if len(one.linkName()) > 15 {
		t.Errorf("%s is longer than a link's name may be", one.linkName())
	}
}

func TestPodControllersArePassedOnWhereTheyAre(t *testing.T) {
	for available, want := range map[string]string{
		"cpuset cpu io memory hugetlb pids rdma misc\n": "+cpuset +cpu +io +memory +hugetlb +pids",
		"cpu memory\n": "+cpu +memory",
		"\n":           "",
	} {
		folder := t.TempDir()
		for name, content := range map[string]string{"cgroup.controllers": available, "cgroup.subtree_control": ""} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := passOnControllers(folder); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, "cgroup.subtree_control"))
		if err != nil || string(got) != want {
			t.Errorf("%q asks for %q (%v), want %q", available, got, err, want)
		}
	}
}

func TestNodeReady(t *testing.T) {
	for name, row := range map[string]struct{ body, problem string }{
		"ready":               {`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, ""},
		"not ready":           {`{"status":{"conditions":[{"type":"Ready","status":"False","message":"no network"}]}}`, "no network"},
		"ready but tainted":   {`{"spec":{"taints":[{"key":"not-ready"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "not-ready"},
		"no condition yet":    {`{"status":{}}`, "no condition"},
		"not a Node":          {`nonsense`, "decode"},
		"only other problems": {`{"status":{"conditions":[{"type":"DiskPressure","status":"True"}]}}`, "no condition"},
	} {
		t.Run(name, func(t *testing.T) {
			err := nodeReady([]byte(row.body))
			if (err == nil) != (row.problem == "") || (err != nil && !strings.Contains(err.Error(), row.problem)) {
				t.Errorf("%v, want %q", err, row.problem)
			}
		})
	}
}

func TestReportsOfTheFirstProcess(t *testing.T) {
	for name, row := range map[string]struct {
		reports   string
		component string // of the error, none when ready
	}{
		"ready":                    {`{"step":"a"}{"step":"b"}{"ready":true}`, ""},
		"a component fails":        {`{"step":"a"}{"step":"b"}{"component":"etcd","problem":"ended"}`, "etcd"},
		"the node itself fails":    {`{"step":"a"}{"step":"b"}{"problem":"no mounts"}`, "node"},
		"it ends without a report": {`{"step":"a"}{"step":"b"}`, "node"},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []string
			err := readReports(strings.NewReader(row.reports), func(step string) { steps = append(steps, step) })
			var failed *componentError
			if errors.As(err, &failed) != (row.component != "") || (failed != nil && failed.component != row.component) {
				t.Errorf("error %v, want one of %q", err, row.component)
			}
			if !slices.Equal(steps, []string{"a", "b"}) {
				t.Errorf("steps %v", steps)
			}
		})
	}
}

func TestEveryComponentIsBuiltAndHasArguments(t *testing.T) {
	var built []string
	for _, binary := range binaries.All() {
		built = append(built, binary.Name)
	}
	lines := arguments(Layout{Dir: "/state"}, &State{Network: Network{Subnet: prefixes("10.88.0.0/24")[0]}})
	for _, component := range Components() {
		if !slices.Contains(built, component) || len(lines[component]) == 0 {
			t.Errorf("%s: built %t, arguments %v", component, slices.Contains(built, component), lines[component])
		}
	}
	if len(lines) != len(Components()) {
		t.Errorf("%d command lines for %d components", len(lines), len(Components()))
	}
}

func TestStateSurvivesAndADamagedOneIsRefused(t *testing.T) {
	layout := Layout{Dir: t.TempDir()}
	if state, err := layout.load(); state != nil || err != nil {
		t.Fatalf("an empty directory gives %v, %v", state, err)
	}
	saved := State{Network: Network{Subnet: prefixes("10.91.0.0/24")[0]}, Port: 4242, Created: []string{"/var/lib/cni"}}
	saved.First.PID, saved.First.Started, saved.First.Boot = 7, 8, "boot"
	if err := layout.save(&saved); err != nil {
		t.Fatal(err)
	}
	loaded, err := layout.load()
	if err != nil {
		t.Fatal(err)
	}
	if loaded.First != saved.First || loaded.Network != saved.Network || loaded.Port != 4242 || !slices.Equal(loaded.Created, saved.Created) {
		t.Errorf("loaded %+v, want %+v", loaded, saved)
	}
	if err := os.WriteFile(layout.stateFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := layout.load(); err == nil || !strings.Contains(err.Error(), layout.stateFile()) {
		t.Errorf("a damaged state gives %v, want an error that names the file", err)
	}
}

func TestMissingProgramsAreAllNamedWithWhatToInstall(t *testing.T) {
	t.Setenv("PATH", "")
	if got := find("surely-no-such-program"); got != "" {
		t.Errorf("found %s", got)
	}
	folder := t.TempDir()
	mine := filepath.Join(folder, "surely-no-such-program")
	if err := os.WriteFile(mine, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	if got := find("surely-no-such-program"); got != mine {
		t.Errorf("found %q, want %s", got, mine)
	}
}
