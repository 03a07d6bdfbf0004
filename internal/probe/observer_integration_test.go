//go:build integration

package probe_test

import (
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
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

// BenchmarkProbe has 100 resources with three transports each: of one type, and mixed. It
// looks at all of them once per iteration and reports the share of one core that this costs
// when it is done every 60 seconds: the process's own CPU time, kernel included, with all
// that the clients do in the background. The brokers' own work is not in it.
func BenchmarkProbe(b *testing.B) {
	server := startServers(b)
	// The emulator alone: CloudWatch's answers would come from this very process.
	server.targets["sqs"] = target(b, redelivery.SQS, "sqs://key:hunter2@"+server.queues.Address()+"/orders?sslmode=disable", probe.Place{})
	same := func(one probe.Target) func(int) []probe.Target {
		return func(int) []probe.Target { return []probe.Target{one, one, one} }
	}
	kinds := map[string]func(int) []probe.Target{"mixed": server.transportsOf}
	for name, one := range server.targets {
		kinds[name] = same(one)
	}
	for name, transports := range kinds {
		b.Run(name, func(b *testing.B) {
			ended := make(chan string, 100)
			observer := probe.NewObserver(time.Hour, time.Now, func(owner string) { ended <- owner })
			defer observer.Close()
			for _, one := range transports(0) {
				look(b, one)
			}
			before := cpuTime(b)
			for b.Loop() {
				for n := range 100 {
					owner := fmt.Sprintf("shop/inbox-%d", n)
					observer.Forget(owner)
					observer.Results(owner, transports(n))
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

// servers are one of each kind, with some messages.
type servers struct {
	database   string
	redis      *brokers.Redis
	beanstalkd *brokers.Beanstalkd
	rabbitmq   *brokers.RabbitMQ
	queues     *brokers.SQS
	aws        string // the queues and CloudWatch
	targets    map[string]probe.Target
}

// transportsOf the n-th resource: a table, a stream, and of the other types one in turn.
func (s *servers) transportsOf(n int) []probe.Target {
	other := []string{"amqp", "beanstalkd", "sqs"}[n%3]
	return []probe.Target{s.targets["doctrine"], s.targets["redis"], s.targets[other]}
}

func startServers(t testing.TB) *servers {
	t.Helper()
	s := &servers{database: sharedDatabase(t), redis: brokers.RunRedis(t), beanstalkd: brokers.Run(t, brokers.StartBeanstalkd), rabbitmq: brokers.Run(t, brokers.StartRabbitMQ)}
	execute(t, s.database, messagesTable)
	execute(t, s.database, `INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at)
		SELECT 'x', '{}', 'default', '2024-01-01', '2024-01-01' FROM generate_series(1, 1000)`)
	client := dial(t, s.redis.URL())
	fillStream(t, client, 1000)
	deliver(t, client, "symfony", 100, false)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	channel := channelOf(t, s.rabbitmq.URL())
	publish(t, channel, "orders", nil, rabbitmq.Publishing{Timestamp: time.Now()})
	s.queues = brokers.Run(t, brokers.StartSQS)
	sendToQueue(t, s.queues, "orders", 1)
	metrics := &brokers.CloudWatch{Region: "eu-west-1", AccessKey: "key", SecretKey: "hunter2", Metrics: []brokers.MetricValue{sqsAge("orders", time.Now().Add(-time.Minute), 60)}}
	both := httptest.NewServer(metrics.BesideSQS(s.queues))
	t.Cleanup(both.Close)
	s.aws = both.URL
	s.targets = map[string]probe.Target{
		"redis":      target(t, redelivery.Redis, s.redis.URL()+"/orders", probe.Place{}),
		"beanstalkd": target(t, redelivery.Beanstalkd, "beanstalkd://"+s.beanstalkd.Address(), probe.Place{}),
		"doctrine":   inDatabase(t, "doctrine://default", s.database, probe.Place{}),
		"amqp":       target(t, redelivery.AMQP, s.rabbitmq.ManagementURL(), probe.Place{Queue: "orders"}),
		"sqs":        target(t, redelivery.SQS, strings.Replace(s.aws, "http://", "sqs://key:hunter2@", 1)+"/orders?sslmode=disable", probe.Place{}),
	}
	return s
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
