package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"
)

// Descriptors that the first process inherits.
const (
	startDescriptor    = 3 // one byte when the link to the machine is there
	reportDescriptor   = 4 // reports, one JSON object a line
	listenerDescriptor = 5 // the API server's port on the machine's loopback
)

const probeInterval = 100 * time.Millisecond

// report is what the first process tells the command that started it.
type report struct {
	Step      string `json:"step,omitempty"`
	Ready     bool   `json:"ready,omitempty"`
	Component string `json:"component,omitempty"` // whose log tells more
	Problem   string `json:"problem,omitempty"`
}

// RunFirst is the node's first process: it starts the others, and ends when any of them does, which ends the node as a whole.
func RunFirst(directory string, patience time.Duration) error {
	reports := os.NewFile(reportDescriptor, "reports")
	err := runFirst(Layout{Dir: directory}, patience, json.NewEncoder(reports))
	problem := report{Problem: err.Error()}
	var component *componentError
	if errors.As(err, &component) {
		problem = report{Component: component.component, Problem: component.problem}
	}
	if encodeErr := json.NewEncoder(reports).Encode(problem); encodeErr != nil {
		log.Printf("nobody listens any more: %v", encodeErr)
	}
	return err
}

func runFirst(layout Layout, patience time.Duration, reports *json.Encoder) error {
	start := bufio.NewReader(os.NewFile(startDescriptor, "start"))
	if _, err := start.ReadByte(); err != nil {
		return errors.New("the command that started this process ended")
	}
	state, err := layout.load()
	if err != nil {
		return err
	}
	if state == nil {
		return fmt.Errorf("%s holds no cluster", layout.Dir)
	}
	if err = isolate(layout); err != nil {
		return err
	}
	if err = setUpInside(state); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(listenerDescriptor, "listener"))
	if err != nil {
		return fmt.Errorf("take over the API server's port: %w", err)
	}
	go forward(listener)
	s := newSupervisor(layout, state)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	err = bringUp(ctx, s, reports)
	cancel()
	if err != nil {
		return err
	}
	if err = os.WriteFile(layout.readyFile(), nil, 0o644); err != nil {
		return fmt.Errorf("note that the node is ready: %w", err)
	}
	if err = reports.Encode(report{Ready: true}); err != nil {
		return fmt.Errorf("report that the node is ready: %w", err)
	}
	err = <-s.ended
	log.Printf("the node ends: %v", err)
	return err
}

// stage starts components, then waits until each answers.
type stage struct {
	step   string
	start  []string
	checks []check
}

type check struct {
	component string
	probe     func(context.Context) error
}

func bringUp(ctx context.Context, s *supervisor, reports *json.Encoder) error {
	p, err := newProber(s.layout)
	if err != nil {
		return err
	}
	for _, stage := range []stage{
		{"starting etcd and containerd", []string{"etcd", "containerd"}, []check{{"etcd", p.etcd}}},
		{"starting the API server", []string{"kube-apiserver"}, []check{
			{"containerd", p.containerd},
			{"containerd", func(context.Context) error {
				return s.run("containerd", "ctr", importArguments(containerdSocket, s.layout.path("pause.tar")))
			}},
			{"kube-apiserver", p.apiServer},
		}},
		{"starting the node", []string{"kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"}, []check{
			{"kube-controller-manager", p.serviceAccount},
			{"kube-proxy", p.proxy},
			{"kubelet", p.node},
		}},
	} {
		if err := reports.Encode(report{Step: stage.step}); err != nil {
			return fmt.Errorf("report progress: %w", err)
		}
		if err := run(ctx, s, stage); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, s *supervisor, stage stage) error {
	for _, component := range stage.start {
		if err := s.startComponent(component); err != nil {
			return err
		}
	}
	for _, check := range stage.checks {
		if err := waitFor(ctx, s, check); err != nil {
			return err
		}
	}
	return nil
}

// waitFor asks until the component answers, any component ends, or the patience does.
func waitFor(ctx context.Context, s *supervisor, check check) error {
	for {
		problem := check.probe(ctx)
		if problem == nil {
			return nil
		}
		select {
		case err := <-s.ended:
			return err
		case <-ctx.Done():
			return &componentError{component: check.component, problem: "not ready in time: " + problem.Error()}
		case <-time.After(probeInterval):
		}
	}
}

// readReports calls step for each step until the node is ready, or gives the problem.
func readReports(reports io.Reader, step func(string)) error {
	decoder := json.NewDecoder(reports)
	for {
		var r report
		if err := decoder.Decode(&r); err != nil {
			return &componentError{component: firstName, problem: "the node's first process ended without a report"}
		}
		switch {
		case r.Ready:
			return nil
		case r.Component != "":
			return &componentError{component: r.Component, problem: r.Problem}
		case r.Problem != "":
			return &componentError{component: firstName, problem: r.Problem}
		default:
			step(r.Step)
		}
	}
}
