//go:build integration

package probe_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
)

func TestSQSCountsMessagesByState(t *testing.T) {
	server := brokers.Run(t, brokers.StartSQS)
	client := sqsClient(server)
	create := func(name string, attributes map[string]string) *string {
		return createQueue(t, server, name, attributes)
	}
	create("dead", nil)
	queue := create("orders", map[string]string{
		"VisibilityTimeout": "5400", "MessageRetentionPeriod": "1209600",
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:000000000000:dead","maxReceiveCount":"7"}`,
	})
	for n := range 9 {
		delay := int32(0)
		if n >= 6 {
			delay = 900
		}
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String(strconv.Itoa(n)), DelaySeconds: delay}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue, MaxNumberOfMessages: 2}); err != nil {
		t.Fatal(err)
	}
	at := "@" + server.Address()
	for name, tested := range map[string]struct {
		dsn   string
		place probe.Place
	}{
		"by the DSN's path":  {"sqs://key:hunter2" + at + "/orders?sslmode=disable", probe.Place{}},
		"by the DSN's query": {"sqs://" + server.Address() + "?sslmode=disable&queue_name=orders&access_key=key&secret_key=hunter2", probe.Place{}},
		"by an endpoint":     {"sqs://default/orders?access_key=key&secret_key=hunter2&endpoint=http://" + server.Address(), probe.Place{}},
		"by the resource":    {"sqs://key:hunter2" + at + "?sslmode=disable", probe.Place{Queue: "orders"}},
	} {
		t.Run(name, func(t *testing.T) {
			mustSee(t, look(t, target(t, redelivery.SQS, tested.dsn, tested.place)), probe.Observation{
				Pending: 4, Delayed: 3, InFlight: 2,
				Settings:   probe.Settings{VisibilityTimeout: of(90 * time.Minute), Retention: of(14 * 24 * time.Hour), DeliveryLimit: of(int64(7))},
				AgeUnknown: true,
				Gaps:       []string{"the age of the oldest message is not known: CloudWatch cannot be reached, or does not speak its protocol: check the network policy and, in a VPC, its endpoint for monitoring"},
			})
		})
	}
	t.Run("no such queue", func(t *testing.T) {
		mustFail(t, target(t, redelivery.SQS, "sqs://key:hunter2"+at+"/nothing?sslmode=disable", probe.Place{}), probe.ReasonQueueNotFound, "nothing")
	})
	t.Run("a queue that is deleted meanwhile", func(t *testing.T) {
		there := target(t, redelivery.SQS, "sqs://key:hunter2"+at+"/dead?sslmode=disable", probe.Place{})
		look(t, there)
		url := queueURL(t, client, "dead")
		if _, err := client.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: url}); err != nil {
			t.Fatal(err)
		}
		mustFail(t, there, probe.ReasonQueueNotFound, "dead")
	})
	t.Run("no credentials", func(t *testing.T) {
		mustFail(t, target(t, redelivery.SQS, "sqs://"+server.Address()+"/orders?sslmode=disable", probe.Place{}), probe.ReasonAuthenticationFailed, "access_key")
	})
	t.Run("nobody on the port", func(t *testing.T) {
		mustFail(t, target(t, redelivery.SQS, "sqs://key:hunter2@127.0.0.1:1/orders?sslmode=disable", probe.Place{}), probe.ReasonUnreachable, "127.0.0.1:1")
	})
}

func queueURL(t *testing.T, client *sqs.Client, name string) *string {
	t.Helper()
	found, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	return found.QueueUrl
}

func sqsClient(server *brokers.SQS) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("http://" + server.Address()),
		Credentials: credentials.NewStaticCredentialsProvider("key", "hunter2", ""),
	})
}

func createQueue(t testing.TB, server *brokers.SQS, name string, attributes map[string]string) *string {
	t.Helper()
	made, err := sqsClient(server).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return made.QueueUrl
}
