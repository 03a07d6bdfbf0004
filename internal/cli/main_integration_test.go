//go:build integration

package cli

import (
	"testing"

	"github.com/messaginginbox/operator/test/postgres"
)

func init() {
	aroundTests = func(m *testing.M) testRun {
		return func() int {
			defer stopAPIServer()
			return postgres.Main(m, postgres.Options{})
		}
	}
}
