//go:build integration

package probe_test

import (
	"cmp"
	"encoding/pem"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/certificates"
)

// sqsAge is what SQS publishes once a minute: how old the oldest message of a queue was.
func sqsAge(queue string, at time.Time, seconds float64) brokers.MetricValue {
	return brokers.MetricValue{Namespace: "AWS/SQS", Metric: "ApproximateAgeOfOldestMessage", Dimension: "QueueName", Of: queue, At: at, Value: seconds}
}

func TestSQSHasTheAgeOfItsOldestMessageFromCloudWatch(t *testing.T) {
	server := brokers.Run(t, brokers.StartSQS)
	sendToQueue(t, server, "orders", 3)
	sendToQueue(t, server, "empty", 0)
	if _, err := sqsClient(server).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: sendToQueue(t, server, "taken", 1)}); err != nil {
		t.Fatal(err)
	}

	const unknown = "the age of the oldest message is not known: "
	minute := time.Now().UTC().Truncate(time.Minute)
	ago := func(minutes int) time.Time { return minute.Add(-time.Duration(minutes) * time.Minute) }
	for name, tested := range map[string]struct {
		cloudWatch brokers.CloudWatch
		queue      string // "" is orders, with 3 messages
		oldest     *time.Time
		gap        string
		inFlight   int64
	}{
		"the age is told": {
			cloudWatch: brokers.CloudWatch{Metrics: []brokers.MetricValue{sqsAge("orders", ago(3), 2*60*60), sqsAge("other", ago(1), 9*60*60)}},
			oldest:     of(ago(123)),
		},
		"a message that entered within a minute": {
			cloudWatch: brokers.CloudWatch{Metrics: []brokers.MetricValue{sqsAge("orders", ago(3), 2*60*60+1)}}, oldest: of(ago(124)),
		},
		"of two ages the newest counts": {
			cloudWatch: brokers.CloudWatch{Metrics: []brokers.MetricValue{sqsAge("orders", ago(2), 60), sqsAge("orders", ago(10), 10*60*60)}}, oldest: of(ago(3)),
		},
		"of one minute the highest age counts": {
			cloudWatch: brokers.CloudWatch{Metrics: []brokers.MetricValue{sqsAge("orders", ago(2).Add(time.Second), 60), sqsAge("orders", ago(2).Add(30*time.Second), 240)}}, oldest: of(ago(6)),
		},
		"a message that a worker has": {
			cloudWatch: brokers.CloudWatch{Metrics: []brokers.MetricValue{sqsAge("taken", ago(2), 60*60)}}, queue: "taken",
			oldest: of(ago(62)), inFlight: 1,
		},
		"an empty queue has no age, whatever was published": {
			cloudWatch: brokers.CloudWatch{Metrics: []brokers.MetricValue{sqsAge("empty", ago(2), 60*60)}}, queue: "empty",
		},
		"no age was published": {gap: unknown + "CloudWatch has no value of the last 15 minutes for the queue orders; of one that was idle it learns late"},
		"the last age is old": {
			cloudWatch: brokers.CloudWatch{Metrics: []brokers.MetricValue{sqsAge("orders", ago(20), 60)}},
			gap:        unknown + "CloudWatch has no value of the last 15 minutes for the queue orders; of one that was idle it learns late",
		},
		"ages that no message can have": {
			cloudWatch: brokers.CloudWatch{Metrics: []brokers.MetricValue{sqsAge("orders", ago(2), math.NaN()), sqsAge("orders", ago(3), -1), sqsAge("orders", ago(4), 1e300), sqsAge("orders", ago(5), 15*24*60*60)}},
			gap:        unknown + "CloudWatch has no value of the last 15 minutes for the queue orders; of one that was idle it learns late",
		},
		"the right is missing": {
			cloudWatch: brokers.CloudWatch{Denied: true, Metrics: []brokers.MetricValue{sqsAge("orders", ago(3), 60)}},
			gap:        unknown + "allow cloudwatch:GetMetricStatistics to the user of the DSN",
		},
		"CloudWatch is slow": {
			cloudWatch: brokers.CloudWatch{Delay: 10 * time.Second}, gap: unknown + "CloudWatch did not answer within 1s",
		},
		"CloudWatch is broken": {cloudWatch: brokers.CloudWatch{Broken: true}, gap: unknown + "CloudWatch answered with InternalServiceFault"},
		"signed for another region": {
			cloudWatch: brokers.CloudWatch{Region: "eu-central-1"},
			gap:        unknown + "CloudWatch refused the credentials of the DSN (SignatureDoesNotMatch): check its region too",
		},
		"signed with another secret": {
			cloudWatch: brokers.CloudWatch{SecretKey: "hunter3"},
			gap:        unknown + "CloudWatch refused the credentials of the DSN (SignatureDoesNotMatch): check its region too",
		},
		"a user that is not known": {
			cloudWatch: brokers.CloudWatch{AccessKey: "nobody"},
			gap:        unknown + "CloudWatch refused the credentials of the DSN (InvalidClientTokenId): check its region too",
		},
	} {
		t.Run(name, func(t *testing.T) {
			peer := tested.cloudWatch
			peer.Region, peer.AccessKey, peer.SecretKey = cmp.Or(peer.Region, "eu-west-1"), cmp.Or(peer.AccessKey, "key"), cmp.Or(peer.SecretKey, "hunter2")
			both := httptest.NewServer(peer.BesideSQS(server))
			t.Cleanup(both.Close)
			want := probe.Observation{
				InFlight: tested.inFlight, Oldest: tested.oldest,
				Settings: probe.Settings{VisibilityTimeout: of(10 * time.Minute), Retention: of(96 * time.Hour)},
			}
			if tested.gap != "" {
				want.AgeUnknown, want.Gaps = true, []string{tested.gap}
			}
			if tested.queue == "" {
				tested.queue, want.Pending = "orders", 3
			}
			started := time.Now()
			mustSee(t, look(t, target(t, redelivery.SQS, "sqs://key:hunter2@"+strings.TrimPrefix(both.URL, "http://")+"/"+tested.queue+"?sslmode=disable", probe.Place{})), want)
			if took := time.Since(started); took >= probe.DefaultTimeLimit {
				t.Errorf("took %s, not less than %s", took, probe.DefaultTimeLimit)
			}
		})
	}
}

// sendToQueue makes a queue with so many messages.
func sendToQueue(t testing.TB, server *brokers.SQS, name string, messages int) *string {
	t.Helper()
	queue := createQueue(t, server, name, map[string]string{"VisibilityTimeout": "600", "MessageRetentionPeriod": "345600"})
	for range messages {
		if _, err := sqsClient(server).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("x")}); err != nil {
			t.Fatal(err)
		}
	}
	return queue
}

// CloudWatch itself is gone: what SQS told still counts.
func TestSQSIsSeenWithoutCloudWatch(t *testing.T) {
	server := brokers.Run(t, brokers.StartSQS)
	sendToQueue(t, server, "orders", 1)
	var asked atomic.Int64
	peer := &brokers.CloudWatch{}
	services := peer.BesideSQS(server)
	both := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 2 { // GetQueueUrl and GetQueueAttributes
			panic(http.ErrAbortHandler)
		}
		services.ServeHTTP(w, r)
	}))
	t.Cleanup(both.Close)
	seen := look(t, target(t, redelivery.SQS, "sqs://key:hunter2@"+strings.TrimPrefix(both.URL, "http://")+"/orders?sslmode=disable", probe.Place{}))
	if len(seen.Gaps) != 1 || !strings.Contains(seen.Gaps[0], "cannot be reached") || seen.Pending != 1 || asked.Load() != 3 {
		t.Errorf("seen %s after %d requests, want one pending, and a gap that says that CloudWatch cannot be reached", shown(seen), asked.Load())
	}
}

func TestSQSBehindTLSIsTrustedByItsAuthority(t *testing.T) {
	server := brokers.Run(t, brokers.StartSQS)
	sendToQueue(t, server, "orders", 1)
	minute := time.Now().UTC().Truncate(time.Minute)
	peer := &brokers.CloudWatch{Region: "eu-west-1", AccessKey: "key", SecretKey: "hunter2", Metrics: []brokers.MetricValue{sqsAge("orders", minute.Add(-time.Minute), 120)}}
	both := httptest.NewUnstartedServer(peer.BesideSQS(server))
	both.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of each client that does not trust it
	both.StartTLS()
	t.Cleanup(both.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: both.Certificate().Raw})
	for name, dsn := range map[string]string{
		"by its host":    strings.Replace(both.URL, "https://", "sqs://key:hunter2@", 1) + "/orders",
		"by an endpoint": "sqs://default/orders?access_key=key&secret_key=hunter2&endpoint=" + both.URL,
	} {
		t.Run(name, func(t *testing.T) {
			there := target(t, redelivery.SQS, dsn, probe.Place{})
			mustFail(t, there, probe.ReasonTLSFailed, untrusted, nextStep)
			mustFail(t, trusting(t, there, certificates.New(t).PEM), probe.ReasonTLSFailed, untrusted, nextStep)
			if seen := look(t, trusting(t, there, authority)); seen.Pending != 1 || seen.Oldest == nil || !seen.Oldest.Equal(minute.Add(-3*time.Minute)) || len(seen.Gaps) > 0 {
				t.Errorf("seen %s, want one pending of %s", shown(seen), minute.Add(-3*time.Minute))
			}
		})
	}
}
