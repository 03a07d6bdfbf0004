//go:build integration

package probe_test

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
)

func TestBeanstalkdCountsJobsByState(t *testing.T) {
	server := brokers.Run(t, brokers.StartBeanstalkd)
	connection, err := beanstalk.Dial("tcp", server.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	tube, set := beanstalk.NewTube(connection, "orders"), beanstalk.NewTubeSet(connection, "orders")
	put := func(count int, delay, ttr time.Duration) {
		for range count {
			if _, err := tube.Put([]byte("\xff\x00not UTF-8"), 1, delay, ttr); err != nil {
				t.Fatal(err)
			}
		}
	}
	started := time.Now()
	put(9, 0, 10*time.Minute)
	put(4, time.Hour, 90*time.Second)
	reserve := func() uint64 {
		id, _, err := set.Reserve(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if err := connection.Bury(reserve(), 1); err != nil {
		t.Fatal(err)
	}
	reserve()
	reserve()
	for name, tested := range map[string]struct {
		dsn   string
		place probe.Place
	}{
		"by the DSN's query": {"beanstalkd://" + server.Address() + "?tube_name=orders", probe.Place{}},
		"by the resource":    {"beanstalkd://" + server.Address(), probe.Place{Queue: "orders"}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := look(t, target(t, redelivery.Beanstalkd, tested.dsn, tested.place))
			if seen.Oldest == nil || seen.Oldest.Before(started.Add(-time.Minute-time.Second)) || seen.Oldest.After(started) {
				t.Errorf("the oldest is of %v, want the minute of %s", seen.Oldest, started)
			}
			seen.Oldest = nil
			mustSee(t, seen, probe.Observation{Pending: 6, Delayed: 4, InFlight: 2, Stuck: 1, Settings: probe.Settings{TTR: of(10 * time.Minute)}})
		})
	}
	t.Run("a tube that is not there", func(t *testing.T) {
		seen := look(t, target(t, redelivery.Beanstalkd, "beanstalkd://"+server.Address()+"?tube_name=nothing", probe.Place{}))
		if len(seen.Gaps) != 1 || !strings.Contains(seen.Gaps[0], "nothing") || seen.Pending != 0 {
			t.Errorf("seen %s, want a gap that names the tube", shown(seen))
		}
	})
	t.Run("nobody on the port", func(t *testing.T) {
		mustFail(t, target(t, redelivery.Beanstalkd, "beanstalkd://127.0.0.1:1", probe.Place{}), probe.ReasonUnreachable, "127.0.0.1:1")
	})
}

func TestBeanstalkdWithAMillionJobs(t *testing.T) {
	server := brokers.Run(t, brokers.StartBeanstalkd)
	connection := dialBeanstalkd(t, server)
	const jobs = 1_000_000
	seed := "put 1 0 90 1\r\nx\r\n"
	fillBeanstalkd(t, connection, seed, jobs)
	if seen := measured(t, target(t, redelivery.Beanstalkd, "beanstalkd://"+server.Address(), probe.Place{})); seen.Pending != jobs {
		t.Errorf("seen %s, want %d pending", shown(seen), jobs)
	}
}

// fillBeanstalkd sends the commands without waiting for each answer in turn.
func fillBeanstalkd(t testing.TB, connection net.Conn, command string, count int) {
	t.Helper()
	const atOnce = 10_000
	answers := bufio.NewReader(connection)
	for range count / atOnce {
		if _, err := connection.Write([]byte(strings.Repeat(command, atOnce))); err != nil {
			t.Fatal(err)
		}
		for range atOnce {
			if answer, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(answer, "INSERTED") {
				t.Fatalf("%q, %v", answer, err)
			}
		}
	}
}

func dialBeanstalkd(t testing.TB, server *brokers.Beanstalkd) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", server.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}
