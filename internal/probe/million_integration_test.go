//go:build integration

package probe_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/postgres"
)

const million = 1_000_000

// BenchmarkProbeMillion looks at a million messages of each transport, and fails when a look
// takes a second or 20 MB. The seeding takes some minutes.
func BenchmarkProbeMillion(b *testing.B) {
	for _, one := range []struct {
		name string
		seed func(b *testing.B) probe.Target
		sees func(probe.Observation) int64
	}{
		{"doctrine, index of Symfony 8", tableOf(indexOfSymfony8, "VACUUM ANALYZE messenger_messages"), pending},
		{"doctrine, index of Symfony 8, never vacuumed", tableOf(indexOfSymfony8, ""), pending},
		{"doctrine, indexes of older versions", tableOf(indexesOfOlderVersions, "VACUUM ANALYZE messenger_messages"), pending},
		{"doctrine, indexes of older versions, never vacuumed", tableOf(indexesOfOlderVersions, ""), pending},
		{"redis, waiting", func(b *testing.B) probe.Target { return streamOf(b, 0) }, pending},
		{"redis, pending", func(b *testing.B) probe.Target { return streamOf(b, million) }, inFlight},
		{"amqp", queueOf, pending},
		{"beanstalkd", tubeOf, pending},
		{"sqs", sqsQueueOf, pending},
	} {
		b.Run(one.name, func(b *testing.B) {
			there := one.seed(b)
			b.ReportAllocs()
			var slowest time.Duration
			for b.Loop() {
				started := time.Now()
				seen := measured(b, there)
				slowest = max(slowest, time.Since(started))
				if got := one.sees(seen); got != million {
					b.Fatalf("seen %s, want %d", shown(seen), million)
				}
			}
			b.ReportMetric(float64(slowest.Milliseconds()), "slowest-ms")
		})
	}
}

func pending(seen probe.Observation) int64  { return seen.Pending }
func inFlight(seen probe.Observation) int64 { return seen.InFlight }

const (
	tableWithoutIndexes = `CREATE TABLE messenger_messages (id bigserial PRIMARY KEY, body text NOT NULL, headers text NOT NULL,
		queue_name varchar(190) NOT NULL, created_at timestamp(0) NOT NULL, available_at timestamp(0) NOT NULL, delivered_at timestamp(0))
		WITH (autovacuum_enabled = false);`
	indexOfSymfony8        = `CREATE INDEX ON messenger_messages (queue_name, available_at, delivered_at, id)`
	indexesOfOlderVersions = `CREATE INDEX ON messenger_messages (queue_name); CREATE INDEX ON messenger_messages (available_at);
		CREATE INDEX ON messenger_messages (delivered_at)`
)

func tableOf(indexes, then string) func(*testing.B) probe.Target {
	return func(b *testing.B) probe.Target {
		url := postgres.Shared(b).NewDatabase(b)
		execute(b, url, tableWithoutIndexes+indexes)
		execute(b, url, `INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at)
			SELECT repeat('x', 300), '{"type":"App\\Message\\Order"}', 'default', at, at
			FROM (SELECT timestamp '2024-01-01' + n * interval '1 s' AS at FROM generate_series(1, 1000000) n) messages`)
		if then != "" {
			execute(b, url, then)
		}
		return inDatabase(b, "", url, probe.Place{})
	}
}

func streamOf(b *testing.B, delivered int) probe.Target {
	server := brokers.RunRedis(b)
	client := dial(b, server.URL())
	fillStream(b, client, million)
	deliver(b, client, "symfony", delivered, false)
	return target(b, redelivery.Redis, server.URL()+"/orders", probe.Place{})
}

func queueOf(b *testing.B) probe.Target {
	return fillQueue(b, brokers.Run(b, brokers.StartRabbitMQ), "orders", million)
}

func tubeOf(b *testing.B) probe.Target {
	server := brokers.Run(b, brokers.StartBeanstalkd)
	fillBeanstalkd(b, dialBeanstalkd(b, server), "put 1 0 90 1\r\nx\r\n", million)
	return target(b, redelivery.Beanstalkd, "beanstalkd://"+server.Address(), probe.Place{})
}

func sqsQueueOf(b *testing.B) probe.Target {
	const atOnce, batch = 8, 10 // the service takes no larger batch
	server := brokers.Run(b, brokers.StartSQS)
	client, queue := sqsClient(server), createQueue(b, server, "orders", nil)
	var entries []sqstypes.SendMessageBatchRequestEntry
	for n := range batch {
		entries = append(entries, sqstypes.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(n)), MessageBody: aws.String("x")})
	}
	failures := make(chan error, atOnce)
	var senders sync.WaitGroup
	for range atOnce {
		senders.Go(func() {
			for range million / batch / atOnce {
				answer, err := client.SendMessageBatch(context.Background(), &sqs.SendMessageBatchInput{QueueUrl: queue, Entries: entries})
				if err == nil && len(answer.Failed) > 0 {
					err = fmt.Errorf("not sent: %s", aws.ToString(answer.Failed[0].Message))
				}
				if err != nil {
					failures <- err
					return
				}
			}
		})
	}
	senders.Wait()
	close(failures)
	for err := range failures {
		b.Fatal(err)
	}
	return target(b, redelivery.SQS, "sqs://key:hunter2@"+strings.TrimPrefix(server.Address(), "http://")+"/orders?sslmode=disable", probe.Place{})
}
