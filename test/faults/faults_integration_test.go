//go:build integration

package main

import (
	"os"
	"testing"

	"github.com/messaginginbox/operator/test/faults/brokers"
	"github.com/messaginginbox/operator/test/faults/worker"
)

func TestMain(m *testing.M) {
	worker.Main()
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
		if err := e.stop(); err != nil {
			t.Error(err)
		}
	})
	inbox, err := buildProduct(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inbox.remove(); err != nil {
			t.Error(err)
		}
	})
	short := plan{kills: 5, cycles: 3, seed: 1, inbox: inbox}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for _, tried := range short.trials() {
				t.Run(tried.name, func(t *testing.T) {
					c, err := try(t.Context(), e, kind, short.seed, tried)
					if err != nil {
						t.Fatal(err)
					}
					if !c.passed {
						t.Errorf("%s\nexpected: %s\nhappened: %s", c.name, c.expected, c.happened)
					}
				})
			}
		})
	}
}
