//go:build integration

package probe_test

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	rabbitmq "github.com/rabbitmq/amqp091-go"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/certificates"
)

// silent is a broker that takes connections and never answers; it counts them.
func silent(t testing.TB) (address string, most *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	open, highest := &atomic.Int64{}, &atomic.Int64{}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			if now := open.Add(1); now > highest.Load() {
				highest.Store(now)
			}
			go func() {
				defer open.Add(-1)
				buffer := make([]byte, 1024)
				for {
					if _, err := connection.Read(buffer); err != nil {
						_ = connection.Close()
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String(), highest
}

func TestADeadBrokerDelaysNobodyElse(t *testing.T) {
	server := brokers.Run(t, brokers.StartBeanstalkd)
	dead, most := silent(t)
	news := make(chan string, 100)
	observer := probe.NewObserver(time.Hour, time.Now, func(owner string) { news <- owner })
	t.Cleanup(observer.Close)
	for n := range 20 {
		observer.Results(fmt.Sprintf("dead %d", n), []probe.Target{target(t, redelivery.Beanstalkd, "beanstalkd://"+dead, probe.Place{})})
	}
	started := time.Now()
	alive := []probe.Target{target(t, redelivery.Beanstalkd, "beanstalkd://"+server.Address(), probe.Place{})}
	if results := observer.Results("alive", alive); results[0].Seen != nil || !results[0].At.IsZero() {
		t.Errorf("a first look has results at once: %+v", results)
	}
	if owner := <-news; owner != "alive" || time.Since(started) > 2*time.Second {
		t.Errorf("the first news are of %q after %s", owner, time.Since(started))
	}
	if results := observer.Results("alive", alive); results[0].Seen == nil {
		t.Errorf("results %+v", results)
	}
	if owner := <-news; owner == "alive" {
		t.Error("nothing new, yet there were news")
	}
	if most.Load() != 1 {
		t.Errorf("%d connections to one broker at once, want 1", most.Load())
	}
}

// Each of many resources has a transport at a silent broker and one at a broker that works.
func TestASilentBrokerThatManyShareDelaysNoneOfThemForLong(t *testing.T) {
	server := brokers.Run(t, brokers.StartBeanstalkd)
	dead, _ := silent(t)
	const resources = 50
	news := make(chan string, resources)
	observer := probe.NewObserver(time.Hour, time.Now, func(owner string) { news <- owner })
	t.Cleanup(observer.Close)
	targets := []probe.Target{
		target(t, redelivery.Beanstalkd, "beanstalkd://"+dead, probe.Place{}),
		target(t, redelivery.Beanstalkd, "beanstalkd://"+server.Address(), probe.Place{}),
	}
	started := time.Now()
	for n := range resources {
		observer.Results(fmt.Sprint(n), targets)
	}
	for range resources {
		results := observer.Results(<-news, targets)
		if results[0].Failure == nil || results[0].Failure.Reason != probe.ReasonNoAnswer || results[1].Seen == nil {
			t.Errorf("results %+v", results)
		}
	}
	if took := time.Since(started); took > 15*time.Second {
		t.Errorf("all were looked at after %s; one after the other they take %s", took, resources*probe.DefaultTimeLimit)
	}
}

func TestNewsAreOnlyWhatIsNew(t *testing.T) {
	server := brokers.RunRedis(t)
	client := dial(t, server.URL())
	do(t, client, "XGROUP CREATE orders symfony 0 MKSTREAM")
	var mutex sync.Mutex
	count := 0
	observer := probe.NewObserver(50*time.Millisecond, time.Now, func(string) {
		mutex.Lock()
		defer mutex.Unlock()
		count++
	})
	t.Cleanup(observer.Close)
	newsAfter := func(wait time.Duration) int {
		time.Sleep(wait)
		mutex.Lock()
		defer mutex.Unlock()
		return count
	}
	targets := []probe.Target{target(t, redelivery.Redis, server.URL()+"/orders", probe.Place{})}
	observer.Results("one", targets)
	if got := newsAfter(time.Second); got != 1 {
		t.Errorf("%d news of a queue where nothing happens, want 1", got)
	}
	do(t, client, "XADD orders * message x")
	if got := newsAfter(time.Second); got != 2 {
		t.Errorf("%d news after a message came, want 2", got)
	}
	if results := observer.Results("one", targets); results[0].Seen.Pending != 1 {
		t.Errorf("seen %s", shown(*results[0].Seen))
	}
	do(t, client, "DEL orders")
	time.Sleep(time.Second)
	result := observer.Results("one", targets)[0]
	if result.Failure == nil || result.Failures == 0 || result.Seen == nil || result.Seen.Pending != 1 {
		t.Errorf("after the stream went: failure %v, %d times, seen %v; want the last look kept", result.Failure, result.Failures, result.Seen)
	}
	moved := []probe.Target{target(t, redelivery.Redis, server.URL()+"/elsewhere", probe.Place{})}
	if fresh := observer.Results("one", moved)[0]; fresh.Seen != nil || fresh.Failure != nil {
		t.Errorf("what was seen in another place counts: %+v", fresh)
	}
}

func TestAChangedAuthorityIsLookedAtAnew(t *testing.T) {
	authority, stranger := certificates.New(t), certificates.New(t)
	server := brokers.RunRedisTLS(t, certificates.Must(t)(authority.Issue("127.0.0.1")))
	seedOrders(t, server.Client())
	news := make(chan string, 10)
	observer := probe.NewObserver(time.Hour, time.Now, func(owner string) { news <- owner })
	t.Cleanup(observer.Close)
	there := target(t, redelivery.Redis, server.URL()+"/orders/workers", probe.Place{})
	for _, step := range []struct {
		authority []byte
		failed    bool
	}{{nil, true}, {stranger.PEM, true}, {authority.PEM, false}, {stranger.PEM, true}} {
		targets := []probe.Target{trusting(t, there, step.authority)}
		if fresh := observer.Results("one", targets)[0]; !fresh.At.IsZero() {
			t.Fatalf("what was seen with another authority counts: %+v", fresh)
		}
		<-news
		result := observer.Results("one", targets)[0]
		if failed := result.Failure != nil; failed != step.failed {
			t.Errorf("failure %v, want one: %t", result.Failure, step.failed)
		}
	}
}

// BenchmarkProbe has 100 resources with three transports of one type each. It looks at all
// of them once per iteration and reports the share of one core that this costs when it is
// done every 60 seconds: the process's own CPU time, kernel included, with all that the
// clients do in the background. The brokers' own work is not in it.
func BenchmarkProbe(b *testing.B) {
	for name, one := range benchmarkTargets(b) {
		b.Run(name, func(b *testing.B) {
			ended := make(chan string, 100)
			observer := probe.NewObserver(time.Hour, time.Now, func(owner string) { ended <- owner })
			defer observer.Close()
			look(b, one)
			before := cpuTime(b)
			for b.Loop() {
				for n := range 100 {
					owner := fmt.Sprintf("shop/inbox-%d", n)
					observer.Forget(owner)
					observer.Results(owner, []probe.Target{one, one, one})
				}
				for range 100 {
					<-ended
				}
			}
			used := (cpuTime(b) - before) / time.Duration(b.N)
			b.ReportMetric(used.Seconds()*1000, "cpu-ms/round")
			b.ReportMetric(used.Seconds()/60*100, "%-of-a-core")
		})
	}
}

func benchmarkTargets(b *testing.B) map[string]probe.Target {
	b.Helper()
	server, tubes := brokers.RunRedis(b), brokers.Run(b, brokers.StartBeanstalkd)
	client := dial(b, server.URL())
	do(b, client, "XGROUP CREATE orders symfony 0 MKSTREAM")
	for range 1000 {
		do(b, client, "XADD orders * message x")
	}
	do(b, client, "XREADGROUP GROUP symfony one COUNT 100 STREAMS orders >")
	rabbit := brokers.Run(b, brokers.StartRabbitMQ)
	publish(b, channelOf(b, rabbit.URL()), "orders", nil, rabbitmq.Publishing{Timestamp: time.Now()})
	queues := brokers.Run(b, brokers.StartSQS)
	createQueue(b, queues, "orders", nil)
	return map[string]probe.Target{
		"redis":      target(b, redelivery.Redis, server.URL()+"/orders", probe.Place{}),
		"beanstalkd": target(b, redelivery.Beanstalkd, "beanstalkd://"+tubes.Address(), probe.Place{}),
		"doctrine":   inDatabase(b, "doctrine://default", benchmarkTable(b), probe.Place{}),
		"amqp":       target(b, redelivery.AMQP, rabbit.ManagementURL(), probe.Place{Queue: "orders"}),
		"sqs":        target(b, redelivery.SQS, "sqs://key:secret@"+queues.Address()+"/orders?sslmode=disable", probe.Place{}),
	}
}

func benchmarkTable(b *testing.B) string {
	b.Helper()
	url := sharedDatabase(b)
	execute(b, url, messagesTable)
	execute(b, url, `INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at)
		SELECT 'x', '{}', 'default', '2024-01-01', '2024-01-01' FROM generate_series(1, 1000)`)
	return url
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
