package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// product is the operator's own binary.
type product struct {
	dir string
}

// Exit codes of inbox that the runs expect.
const (
	exitDone    = 0
	exitRefused = 4 // prune
	exitUnready = 1 // check
)

// buildProduct builds the binary from the module that this one replaces.
func buildProduct(ctx context.Context) (*product, error) {
	dir, err := os.MkdirTemp("", "inbox-")
	if err != nil {
		return nil, err
	}
	p := &product{dir: dir}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/messaginginbox/operator").Output()
	if err == nil {
		build := exec.CommandContext(ctx, "go", "build", "-o", p.program(), ".")
		build.Dir = strings.TrimSpace(string(root))
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		var output []byte
		if output, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, output)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("build inbox: %w", err), p.remove())
	}
	return p, nil
}

func (p *product) program() string { return filepath.Join(p.dir, "inbox") }

func (p *product) remove() error { return os.RemoveAll(p.dir) }

// run returns the standard output and the exit code.
func (p *product) run(ctx context.Context, databaseURL string, arguments ...string) (output []byte, code int, err error) {
	command := exec.CommandContext(ctx, p.program(), arguments...) // #nosec G204 -- our own binary
	command.Env = append(os.Environ(), "INBOX_DATABASE_URL="+databaseURL)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err = command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, 0, err
	}
	if ctx.Err() != nil {
		return nil, 0, ctx.Err()
	}
	if len(output) == 0 {
		return nil, 0, fmt.Errorf("inbox %s printed nothing (exit code %d): %s", arguments[0], command.ProcessState.ExitCode(), &stderr)
	}
	return output, command.ProcessState.ExitCode(), nil
}

// required asks inbox window, and rounds up to whole seconds.
func (p *product) required(ctx context.Context, manifest string) (time.Duration, error) {
	output, _, err := p.run(ctx, "", "window", "-f", manifest, "-o", "json")
	if err != nil {
		return 0, err
	}
	var answer struct {
		Required struct {
			WithMarginSeconds *float64 `json:"withMarginSeconds"`
		} `json:"required"`
	}
	if err := json.Unmarshal(output, &answer); err != nil {
		return 0, fmt.Errorf("inbox window printed %s: %w", output, err)
	}
	if answer.Required.WithMarginSeconds == nil {
		return 0, fmt.Errorf("inbox window finds no bound: %s", output)
	}
	return time.Duration(math.Ceil(*answer.Required.WithMarginSeconds)) * time.Second, nil
}

// retentionSafe asks inbox check for the reason of RetentionSafe, and its exit code.
func (p *product) retentionSafe(ctx context.Context, databaseURL, manifest string) (reason string, code int, err error) {
	output, code, err := p.run(ctx, databaseURL, "check", "-f", manifest, "-o", "json")
	if err != nil {
		return "", 0, err
	}
	var answer struct {
		Inboxes []struct {
			Conditions []struct {
				Type, Status, Reason, Message string
			}
		}
	}
	if err := json.Unmarshal(output, &answer); err != nil {
		return "", 0, fmt.Errorf("inbox check printed %s: %w", output, err)
	}
	for _, inbox := range answer.Inboxes {
		for _, condition := range inbox.Conditions {
			if condition.Type == "RetentionSafe" {
				return condition.Status + "/" + condition.Reason, code, nil
			}
		}
	}
	return "", 0, fmt.Errorf("inbox check says nothing of RetentionSafe: %s", output)
}

// pruned is what inbox prune reports.
type pruned struct {
	Result      string `json:"result"`
	Reason      string `json:"reason"`
	RowsDeleted int    `json:"rowsDeleted"`

	code int
}

func (p *product) prune(ctx context.Context, databaseURL string, retention, required time.Duration) (pruned, error) {
	output, code, err := p.run(ctx, databaseURL, "prune", "--retention", retention.String(), "--required-window", required.String())
	if err != nil {
		return pruned{}, err
	}
	report := pruned{code: code}
	if err := json.Unmarshal(output, &report); err != nil {
		return pruned{}, fmt.Errorf("inbox prune printed %s: %w", output, err)
	}
	return report, nil
}
