//go:build integration

package database_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m, postgres.Options{})) }

func parse(t *testing.T, raw string) *database.Config {
	t.Helper()
	c, err := database.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// withOption sets an option of a URL.
func withOption(t *testing.T, raw, key, value string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set(key, value)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq takes a + as it is
	return u.String()
}

func connect(t *testing.T, c *database.Config, limits database.Limits) *pgx.Conn {
	t.Helper()
	connection, err := c.Connect(t.Context(), limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

// failure connects, which must fail, and says what the failure means.
func failure(t *testing.T, c *database.Config) database.Failure {
	t.Helper()
	connection, err := c.Connect(t.Context(), database.Limits{ConnectTimeout: 3 * time.Second})
	if err == nil {
		t.Fatal("connected", connection.Close(t.Context()))
	}
	return database.Classify(err)
}

func execute(t *testing.T, q database.Querier, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := q.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func show(t *testing.T, q database.Querier, setting string) string {
	t.Helper()
	var value string
	if err := q.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// silentHost is an address that accepts connections and never answers.
func silentHost(t *testing.T) string {
	t.Helper()
	listener := listen(t)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// closedPort is an address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener := listen(t)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}
