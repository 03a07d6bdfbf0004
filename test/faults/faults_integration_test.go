//go:build integration

package main

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/messaginginbox/operator/test/faults/brokers"
	"github.com/messaginginbox/operator/test/faults/worker"
)

func TestMain(m *testing.M) {
	worker.Main()
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
		panic(err) // the flag is one of every test binary
	}
	os.Exit(m.Run())
}

// TestContractHoldsUnderFaults is a short run of the command.
func TestContractHoldsUnderFaults(t *testing.T) {
	kinds := []brokers.Kind{brokers.RabbitMQ, brokers.RedisStreams, brokers.Doctrine}
	e, err := startEnvironment(t.Context(), kinds)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if failure := e.stop(); failure != nil {
			t.Error(failure)
		}
	})
	inbox, err := buildProduct(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if failure := inbox.remove(); failure != nil {
			t.Error(failure)
		}
	})
	short := plan{kills: 5, cycles: 2, inbox: inbox}
	for _, tried := range short.trials() {
		for _, kind := range kinds {
			t.Run(string(kind)+" "+tried.name, func(t *testing.T) {
				t.Parallel()
				c, err := short.try(t.Context(), e, kind, tried)
				if err != nil {
					t.Fatal(err)
				}
				if !c.passed {
					t.Errorf("%s\nexpected: %s\nhappened: %s", c.name, c.expected, c.happened)
				}
			})
		}
	}
}
