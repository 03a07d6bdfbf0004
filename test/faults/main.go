// Command faults proves the inbox's contract under real faults: real brokers, a real
// PostgreSQL, and consumers in processes of their own that are killed.
//
//	go run . [--soak N] [--cycles N] [--brokers LIST] [--seed N]
//
// For each claim it prints what was expected and what happened, and passes or fails. It
// ends with code 1 unless all passed. Needs the packages postgresql, rabbitmq-server and redis-server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/messaginginbox/operator/test/faults/brokers"
	"github.com/messaginginbox/operator/test/faults/worker"
)

func main() {
	worker.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) (err error) {
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	soak := flags.Int("soak", 10, "`number` of random kill points per fault and broker")
	cycles := flags.Int("cycles", 4, "`number` of rounds of lost acknowledgements, downtime and redelivery while proofs are pruned")
	list := flags.String("brokers", "rabbitmq,redis,doctrine", "comma-separated `list` of brokers")
	seed := flags.Uint64("seed", rand.Uint64(), "of what is random; the scheduler is not") // #nosec G404 -- not a secret
	if err = flags.Parse(arguments); err != nil {
		return err
	}
	var kinds []brokers.Kind
	for name := range strings.SplitSeq(*list, ",") {
		kinds = append(kinds, brokers.Kind(name))
	}
	started := time.Now()
	fmt.Printf("starting PostgreSQL and %s; %d random kills per fault; seed %d\n", *list, *soak, *seed)
	e, err := startEnvironment(ctx, kinds)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.stop()) }()
	inbox, err := buildProduct(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inbox.remove()) }()
	j := &journal{out: os.Stdout}
	err = runAll(ctx, e, kinds, plan{kills: *soak, cycles: *cycles, seed: *seed, inbox: inbox}, j)
	fmt.Printf("%d passed, %d failed, in %s\n", j.passed, j.failed, time.Since(started).Round(time.Second))
	if j.failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d claims do not hold", j.failed))
	}
	return err
}
