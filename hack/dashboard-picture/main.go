// Command dashboard-picture makes the picture of config/grafana/inbox.json that is in the
// docs. What happens is staged, what is drawn is measured: a real cluster with the
// operator, four applications on real databases and brokers, a Prometheus that scrapes the
// operator, and the tool in the folder draw, which asks that Prometheus what the dashboard
// asks. It removes what it started.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messaginginbox/operator/test/environment"
)

// shortest is the hour after which the operator tells how fast a table grows, and some
// looks more.
const shortest = 65 * time.Minute

func main() {
	var o options
	flag.StringVar(&o.out, "out", "", "`file` of the picture (default docs/images/dashboard.png)")
	flag.DurationVar(&o.duration, "for", 75*time.Minute, "how long the applications work before the picture is drawn")
	flag.BoolVar(&o.keep, "keep", false, "let the applications and Prometheus go on afterwards, until Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dashboard-picture:", err)
		os.Exit(1)
	}
}

type options struct {
	out      string
	duration time.Duration
	keep     bool
}

func run(ctx context.Context, o options) (err error) {
	if o.duration < shortest {
		return fmt.Errorf("-for %s is too short: the operator tells a table's growth after an hour, and the panel of its size shows the projection; take %s or more", o.duration, shortest)
	}
	chromium, err := findChromium()
	if err != nil {
		return err
	}
	env, err := environment.Up(ctx, "picture", os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Down(context.WithoutCancel(ctx))) }()
	if o.out == "" {
		o.out = filepath.Join(env.Root(), "docs", "images", "dashboard.png")
	}
	drawing := artist{env: env, chromium: chromium}
	if err = drawing.install(ctx); err != nil {
		return fmt.Errorf("installing what the drawing needs: %w", err)
	}
	stage, err := setStage(ctx, env, o.duration)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close(ctx)) }()
	recorder, err := startPrometheus(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, recorder.stop()) }()
	if err = stage.declare(ctx); err != nil {
		return err
	}
	return perform(ctx, o, stage, recorder, drawing)
}

// perform lets the applications work for the duration, then draws what Prometheus has.
func perform(ctx context.Context, o options, stage *stage, recorder *prometheus, drawing artist) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	end := start.Add(o.duration)
	work.Go(func() error { return stage.play(ctx, start) })
	work.Go(func() error {
		defer cancel()
		fmt.Fprintf(os.Stderr, "The applications work until %s; Prometheus is at %s\n", end.Format(time.TimeOnly), recorder.url)
		if !wait(ctx, o.duration) {
			return ctx.Err()
		}
		// The first looks at a new resource come within a minute or two.
		if err := drawing.draw(ctx, recorder.url, start.Add(o.duration/20), end, o.out); err != nil {
			return fmt.Errorf("drawing the dashboard: %w", err)
		}
		fmt.Fprintln(os.Stderr, "Drawn:", o.out)
		if o.keep {
			fmt.Fprintln(os.Stderr, "Left up until Ctrl-C: Prometheus at", recorder.url)
			<-ctx.Done()
		}
		return nil
	})
	return work.Wait()
}
