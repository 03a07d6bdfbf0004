package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/messaginginbox/operator/test/environment"
)

// artist is the tool in the folder draw, ready to run.
type artist struct {
	env      *environment.Environment
	chromium string
}

// findChromium looks for it before anything is started.
func findChromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", errors.New("chromium is not on PATH: install it, on Debian with apt-get install --no-install-recommends chromium")
}

// install fetches what the tool needs beside Node.
func (a artist) install(ctx context.Context) error {
	return a.run(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
}

// draw draws the dashboard as it is between two times.
func (a artist) draw(ctx context.Context, prometheusURL string, from, to time.Time, out string) error {
	return a.run(ctx, "node", "draw.mjs", "--dashboard", filepath.Join(a.env.Root(), "config", "grafana", "inbox.json"),
		"--prometheus", prometheusURL, "--from", from.UTC().Format(time.RFC3339), "--to", to.UTC().Format(time.RFC3339), "--chromium", a.chromium, "--out", out)
}

func (a artist) run(ctx context.Context, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...) // #nosec G204 -- our own tool
	command.Dir = filepath.Join(a.env.Root(), "hack", "dashboard-picture", "draw")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	return command.Run()
}
