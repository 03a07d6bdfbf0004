package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// shared is the one server of a test binary.
var shared struct {
	mutex   sync.Mutex
	main    bool // Main runs, and will stop the server
	options Options
	server  *Server
	err     error
}

// Main runs the tests and then stops the shared server. Call it in TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(postgres.Main(m, postgres.Options{})) }
func Main(m *testing.M, o Options) int {
	shared.mutex.Lock()
	shared.main, shared.options = true, o
	shared.mutex.Unlock()
	code := m.Run()
	shared.mutex.Lock()
	defer shared.mutex.Unlock()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Stop(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Shared is the server of this test binary, started at the first call with the options
// given to Main. Tests that stop, restart or fill it need one of their own: Run.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mutex.Lock()
	defer shared.mutex.Unlock()
	if !shared.main {
		t.Fatal("call postgres.Main in TestMain: it stops the shared server")
	}
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = Start(context.Background(), shared.options)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// Run starts a server for one test, and stops it at the end of the test.
func Run(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// NewDatabase creates an empty database named after the test and returns the superuser's
// URL of it. It is dropped at the end of the test, also when sessions still use it.
func (s *Server) NewDatabase(t testing.TB) string {
	t.Helper()
	name := databaseName(t.Name())
	if err := s.CreateDatabase(context.Background(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.DropDatabase(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	return s.URL(name)
}

// databaseName makes a unique name that fits PostgreSQL's 63 bytes and needs no quotes.
func databaseName(test string) string {
	simple := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(test))
	if len(simple) > 40 {
		simple = simple[:40]
	}
	return "t_" + simple + "_" + strings.ToLower(rand.Text()[:10])
}
