package process

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func startSleep(t *testing.T) (*exec.Cmd, Identity) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
	})
	identity, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, identity
}

func assertAlive(t *testing.T, identity Identity, want bool) {
	t.Helper()
	got, err := identity.Alive()
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%+v: alive is %t, want %t", identity, got, want)
	}
}

func TestKillEndsTheProcessAndIsNoErrorTwice(t *testing.T) {
	_, identity := startSleep(t)
	assertAlive(t, identity, true)
	for range 2 {
		if err := identity.Kill(10 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	assertAlive(t, identity, false)
}

func TestARecycledNumberIsNeverKilled(t *testing.T) {
	for name, change := range map[string]func(*Identity){
		"another start time": func(i *Identity) { i.Started-- },
		"another boot":       func(i *Identity) { i.Boot = "00000000-0000-0000-0000-000000000000" },
	} {
		t.Run(name, func(t *testing.T) {
			_, running := startSleep(t)
			recorded := running
			change(&recorded)
			assertAlive(t, recorded, false)
			if err := recorded.Kill(time.Second); err != nil {
				t.Fatal(err)
			}
			assertAlive(t, running, true)
		})
	}
}

func TestNoProcessIsNotAlive(t *testing.T) {
	assertAlive(t, Identity{}, false)
	if err := (Identity{}).Kill(time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestChildrenAreFoundByTheNameOfTheirProgram(t *testing.T) {
	cmd, _ := startSleep(t)
	children, err := Children(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, pid := range children["sleep"] {
		found = found || pid == cmd.Process.Pid
	}
	if !found {
		t.Errorf("sleep %d is not among %v", cmd.Process.Pid, children)
	}
}

func TestParseStat(t *testing.T) {
	tail := " 7 1 1 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1"
	for name, want := range map[string]stat{
		"12 (sleep) S" + tail:      {name: "sleep", state: 'S', parent: 7, started: 4242},
		"12 (a b) (c) Z" + tail:    {name: "a b) (c", state: 'Z', parent: 7, started: 4242},
		"12 (x) R 2) (y) R" + tail: {name: "x) R 2) (y", state: 'R', parent: 7, started: 4242},
	} {
		got, err := parseStat(name)
		if err != nil || got != want {
			t.Errorf("%q gives %+v, %v; want %+v", name, got, err, want)
		}
	}
	for _, broken := range []string{"", "12 sleep S 1", "12 (sleep) S 1 2", "12 (sleep) S x" + tail} {
		if _, err := parseStat(broken); err == nil {
			t.Errorf("%q must be refused", broken)
		}
	}
}
