//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// plugin is kubectl with our plugin on its PATH.
type plugin struct{ path string }

func newPlugin(t *testing.T) plugin {
	t.Helper()
	directory := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(directory, "kubectl-inbox"), ".") // #nosec G204 -- our own code
	build.Dir = env.Root()
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if err := os.Symlink("kubectl-inbox", filepath.Join(directory, "kubectl_complete-inbox")); err != nil {
		t.Fatal(err)
	}
	return plugin{path: directory}
}

// run runs a command of kubectl and returns its exit code and all that it printed.
func (p plugin) run(t *testing.T, arguments ...string) (code int, output string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), env.KubectlPath(), arguments...) // #nosec G204 -- our own commands
	command.Env = append(os.Environ(), "PATH="+p.path+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+env.Kubeconfig)
	text, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(text)
}

func (p plugin) must(t *testing.T, code int, says string, arguments ...string) string {
	t.Helper()
	got, output := p.run(t, arguments...)
	if got != code || !strings.Contains(output, says) {
		t.Fatalf("kubectl %s: exit code %d, want %d and %q:\n%s", strings.Join(arguments, " "), got, code, says, output)
	}
	return output
}

// A person at a terminal: everything through kubectl, with real Job pods.
func TestThePluginPrunesDrillsAndPauses(t *testing.T) {
	t.Parallel()
	p := newPlugin(t)
	made := newTeam(t)
	made.apply(t, safe+"pruning: {schedule: '0 0 1 1 *'}")
	made.awaitReady(t)
	made.execute(t, records)
	inbox := func(arguments ...string) []string {
		return append(append([]string{"inbox"}, arguments...), "-n", made.namespace)
	}

	p.must(t, 0, "Done, dry run, 1,000 rows are expired and none was deleted", inbox("prune", "orders", "--dry-run")...)
	if left := made.count(t, "SELECT count(*) FROM messenger_inbox"); left != 1110 {
		t.Errorf("%d records are left after the dry run, want 1110", left)
	}
	p.must(t, 0, "Done, 1,000 rows deleted", inbox("prune", "orders", "--now")...)
	made.await(t, "the run by hand in the status", func(inbox *v1alpha1.MessagingInbox) bool {
		return inbox.Status.Pruning != nil && inbox.Status.Pruning.RowsDeleted == 1000
	})
	p.must(t, 0, "Proven, 7 of 7 checks passed", inbox("drill", "orders")...)
	made.await(t, "the drill by hand in the status", func(inbox *v1alpha1.MessagingInbox) bool {
		return inbox.Status.Drill != nil && inbox.Status.Drill.Result == v1alpha1.DrillProven
	})
	t.Log("\n" + p.must(t, 0, made.namespace+"/orders  READY\n", inbox("status", "orders")...))

	p.must(t, 0, "orders paused", inbox("pause", "orders")...)
	p.must(t, 4, "refused: spec.suspend is true", inbox("prune", "orders", "--now")...)
	p.must(t, 0, "READY, PAUSED", "inbox", "status", "-A")
	p.must(t, 0, "orders resumed", inbox("resume", "orders")...)
	p.must(t, 0, "orders\n:4\n", "__complete", "inbox", "status", "-n", made.namespace, "")
}
