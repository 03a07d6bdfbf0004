//go:build integration

package probe_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"
	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/probe"
)

// A hundred resources have three transports each, on one database and one broker of each
// kind. The servers themselves say how many connections there are.
func TestAHundredResourcesShareOneConnectionToEachBroker(t *testing.T) {
	server := startServers(t)
	const owners, rounds = 100, 2
	ended := make(chan string, owners)
	observer := probe.NewObserver(time.Hour, time.Now, func(owner string) { ended <- owner })
	t.Cleanup(observer.Close)
	connections := server.connections(t)
	watched := watchConnections(connections)
	for range rounds {
		for n := range owners {
			owner := fmt.Sprintf("shop/inbox-%d", n)
			observer.Forget(owner)
			observer.Results(owner, server.transportsOf(n))
		}
		for range owners {
			mustBeSeen(t, observer, <-ended, server)
		}
	}
	highest := watched.stop()
	t.Logf("at most %v", highest)
	for name, allowed := range map[string]int{"doctrine": 2, "redis": 1, "amqp": 1, "beanstalkd": 1, "sqs": 1} {
		if highest[name] < 1 || highest[name] > allowed {
			t.Errorf("at most %d connections of %s at once, want from 1 to %d", highest[name], name, allowed)
		}
	}
	delete(connections, "doctrine") // a pool keeps its connections
	for name, count := range connections {
		end := time.Now().Add(10 * time.Second)
		for count() > 0 && time.Now().Before(end) {
			time.Sleep(10 * time.Millisecond)
		}
		if left := count(); left > 0 {
			t.Errorf("%d connections of %s are left after the looks", left, name)
		}
	}
}

func mustBeSeen(t testing.TB, observer *probe.Observer, owner string, server *servers) {
	t.Helper()
	for _, result := range observer.Results(owner, server.transportsOf(number(t, strings.TrimPrefix(owner, "shop/inbox-")))) {
		if result.Failure != nil || result.Seen == nil {
			t.Fatalf("%s was not seen: %v", owner, result.Failure)
		}
	}
}

// connections are functions that ask each server for its number of connections, without
// the one that is asked through.
func (s *servers) connections(t testing.TB) map[string]func() int {
	t.Helper()
	database, err := pgx.Connect(t.Context(), s.database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close(context.WithoutCancel(t.Context())) })
	redis := dial(t, s.redis.URL())
	tubes, err := beanstalk.Dial("tcp", s.beanstalkd.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tubes.Close() })
	return map[string]func() int{
		"doctrine": func() (count int) {
			// Processes that help with a query count too.
			row := database.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'messaging-inbox%'`)
			if err := row.Scan(&count); err != nil {
				t.Error(err)
			}
			return count
		},
		"redis": func() int {
			list, err := redis.ClientList(context.Background()).Result()
			if err != nil {
				t.Error(err)
			}
			return strings.Count(list, "\n") - 1
		},
		"beanstalkd": func() int {
			statistics, err := tubes.Stats()
			if err != nil {
				t.Error(err)
			}
			return number(t, statistics["current-connections"]) - 1
		},
		"amqp": func() int { return established(t, portOf(t, s.rabbitmq.ManagementURL())) },
		"sqs":  func() int { return established(t, portOf(t, s.aws)) },
	}
}

func number(t testing.TB, text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Error(err)
	}
	return number
}

func portOf(t testing.TB, address string) int {
	parsed, err := url.Parse(address)
	if err != nil {
		t.Error(err)
	}
	return number(t, parsed.Port())
}

// established counts the connections that the kernel has for a server on the port. It tells
// of one after the other while they come and go: of those in one answer one at least was
// there, those in two answers were there at the same time.
func established(t testing.TB, port int) int {
	first, second := clientsOf(t, port), clientsOf(t, port)
	together := 0
	for client := range first {
		if second[client] {
			together++
		}
	}
	return max(together, min(len(first), 1))
}

// clientsOf are the addresses of the clients of a server on the port.
func clientsOf(t testing.TB, port int) map[string]bool {
	const localAddress, remoteAddress, state, isEstablished = 1, 2, 3, "01"
	server, clients := fmt.Sprintf(":%04X", port), map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, server) {
				continue
			}
			fields := strings.Fields(line)
			if fields[state] == isEstablished && strings.HasSuffix(fields[localAddress], server) {
				clients[fields[remoteAddress]] = true
			}
		}
	}
	return clients
}

// watch samples the servers until it is stopped.
type watch struct {
	done    chan struct{}
	running sync.WaitGroup
	mutex   sync.Mutex
	highest map[string]int
}

func watchConnections(connections map[string]func() int) *watch {
	w := &watch{done: make(chan struct{}), highest: map[string]int{}}
	for name, count := range connections {
		w.running.Go(func() {
			for {
				select {
				case <-w.done:
					return
				case <-time.After(time.Millisecond):
				}
				now := count()
				w.mutex.Lock()
				w.highest[name] = max(w.highest[name], now)
				w.mutex.Unlock()
			}
		})
	}
	return w
}

func (w *watch) stop() map[string]int {
	close(w.done)
	w.running.Wait()
	return maps.Clone(w.highest)
}
