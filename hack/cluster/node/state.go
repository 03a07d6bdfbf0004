package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/messaginginbox/operator/hack/cluster/process"
)

// State is what a later command must know about the cluster. It is written
// before what it describes is made, so that nothing is left unknown.
type State struct {
	First    process.Identity `json:"first"`   // the node's first process
	Network  Network          `json:"network"` //
	Port     int              `json:"port"`    // loopback port of the API server on this machine
	Programs Programs         `json:"programs"`
	// Created lists the folders outside the state directory that were made as mount points.
	Created []string `json:"created"`
}

// load reads the state; a state directory without one gives nil.
func (l Layout) load() (*State, error) {
	raw, err := os.ReadFile(l.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the cluster's state: %w", err)
	}
	var state State
	if err := json.Unmarshal(raw, &state); err != nil {
		return nil, fmt.Errorf("the cluster's state %s is damaged: %w", l.stateFile(), err)
	}
	return &state, nil
}

func (l Layout) save(state *State) error {
	raw, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the cluster's state: %w", err)
	}
	temporary := l.stateFile() + ".new"
	if err := os.WriteFile(temporary, append(raw, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the cluster's state: %w", err)
	}
	if err := os.Rename(temporary, l.stateFile()); err != nil {
		return fmt.Errorf("write the cluster's state: %w", err)
	}
	return nil
}

// ready reports whether the whole node was ready once.
func (l Layout) ready() bool {
	_, err := os.Stat(l.readyFile())
	return err == nil
}
