package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/messaginginbox/operator/hack/cluster/process"
)

// firstName is what the first process and its log are called.
const firstName = "node"

// FirstCommand is the name of the hidden command that RunFirst answers to.
const FirstCommand = "first-process"

// ErrNotUp means that no cluster runs in this state directory.
var ErrNotUp = errors.New("the cluster is not up")

// Cluster is a running cluster.
type Cluster struct {
	Layout Layout
	State  *State
}

// Part is a component and its process on this machine.
type Part struct {
	Name string
	PID  int
}

// Running gives the cluster of this state directory, or ErrNotUp.
func Running(layout Layout) (*Cluster, error) {
	state, err := layout.load()
	if err != nil {
		return nil, err
	}
	if state == nil {
		return nil, fmt.Errorf("%w (state directory %s)", ErrNotUp, layout.Dir)
	}
	alive, err := state.First.Alive()
	if err != nil {
		return nil, err
	}
	if !alive || !layout.ready() {
		return nil, fmt.Errorf("%w: it was started and has ended, see %s", ErrNotUp, layout.Log(firstName))
	}
	return &Cluster{Layout: layout, State: state}, nil
}

// Parts lists the node's first process and its components. All run, or the node ends as a whole.
func (c *Cluster) Parts() ([]Part, error) {
	children, err := process.Children(c.State.First.PID)
	if err != nil {
		return nil, err
	}
	parts := []Part{{Name: firstName, PID: c.State.First.PID}}
	for _, name := range Components() {
		for _, pid := range children[name] {
			parts = append(parts, Part{Name: name, PID: pid})
		}
	}
	return parts, nil
}

// Load imports an image archive into the node's containerd.
func (c *Cluster) Load(ctx context.Context, archive string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	// The first process's root leads to the node's own mounts.
	socket := fmt.Sprintf("/proc/%d/root%s", c.State.First.PID, containerdSocket)
	cmd := exec.CommandContext(ctx, program(c.State, "ctr"), importArguments(socket, archive)...)
	cmd.Env = environment(c.State)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("import %s: %w: %s", archive, err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}
