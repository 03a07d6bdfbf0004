package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// sqsQueue asks for the queue's attributes, and CloudWatch for the age of its oldest
// message. The credentials are those of the DSN, never the operator's own: who may apply
// a resource would else see any queue that the operator may.
func sqsQueue(ctx context.Context, target Target) (Observation, error) {
	place, err := readSQS(target)
	if err != nil {
		return Observation{}, err
	}
	client := sqs.New(sqs.Options{
		Region: place.region, BaseEndpoint: place.endpoint, Credentials: place.credentials,
		HTTPClient: place.http,
		Retryer:    aws.NopRetryer{}, // the next look is the retry
	})
	queueURL, err := place.queueURL(ctx, client)
	if err != nil {
		return Observation{}, place.explain(target, err)
	}
	answer, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: queueURL, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if err != nil {
		return Observation{}, place.explain(target, err)
	}
	observation, err := readAttributes(answer.Attributes)
	if err != nil {
		return Observation{}, failed(ReasonUnexpectedError, "%s: the attributes of the queue %s: %s", target.Broker(), place.queue, err)
	}
	if observation.Pending > 0 {
		place.readAge(ctx, &observation)
	}
	return observation, nil
}

// httpClient trusts the target's authorities.
func (t Target) httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(transport *http.Transport) {
		transport.TLSClientConfig.RootCAs = t.authorities
	})
}

// sqsPlace is where an SQS queue is.
type sqsPlace struct {
	region, account, queue string
	url                    string  // of the queue, when the DSN is that
	endpoint               *string // nil: the service's own in the region
	credentials            aws.CredentialsProvider
	http                   *awshttp.BuildableClient
}

var serviceHost = regexp.MustCompile(`^sqs\.([\w-]+)\.amazonaws\.com(\.cn)?$`)

// readSQS reads the DSN as Symfony's SQS transport does.
func readSQS(target Target) (sqsPlace, error) {
	dsn := &target.dsn.Address
	user, password := dsn.Login()
	host, parts := dsn.Host.String(), strings.Split(strings.Trim(dsn.Path.String(), "/"), "/")
	place := sqsPlace{
		region:  target.option("region", "eu-west-1"),
		account: target.option("account", ""),
		queue:   cmp.Or(target.Place.Queue, target.option("queue_name", "messages")),
		http:    target.httpClient(),
		credentials: credentials.NewStaticCredentialsProvider(
			cmp.Or(user, target.option("access_key", "")), cmp.Or(password, target.option("secret_key", "")), target.option("session_token", "")),
	}
	if len(parts) == 2 {
		place.account = parts[0]
	}
	if found := serviceHost.FindStringSubmatch(host); found != nil {
		place.region = found[1]
		if len(parts) == 2 && target.Place.Queue == "" {
			place.url = "https://" + host + "/" + strings.Join(parts, "/")
		}
	} else if host != "default" && host != "" {
		scheme := "https://"
		if target.option("sslmode", "") == "disable" {
			scheme = "http://"
		}
		place.endpoint = aws.String(scheme + host)
	}
	if endpoint := target.option("endpoint", ""); endpoint != "" && place.url == "" {
		place.endpoint = aws.String(endpoint)
	}
	if retrieved, err := place.credentials.Retrieve(context.Background()); err != nil || !retrieved.HasKeys() {
		return sqsPlace{}, failed(ReasonAuthenticationFailed, "the DSN has no access_key and secret_key: the operator looks with the Secret's own credentials only")
	}
	return place, nil
}

func (p sqsPlace) queueURL(ctx context.Context, client *sqs.Client) (*string, error) {
	if p.url != "" {
		return &p.url, nil
	}
	input := &sqs.GetQueueUrlInput{QueueName: &p.queue}
	if p.account != "" {
		input.QueueOwnerAWSAccountId = &p.account
	}
	answer, err := client.GetQueueUrl(ctx, input)
	if err != nil {
		return nil, err
	}
	return answer.QueueUrl, nil
}

func readAttributes(attributes map[string]string) (Observation, error) {
	var (
		observation         Observation
		visible, retention  int64
		hasVisible, hasStay bool
	)
	for _, attribute := range []struct {
		name  sqstypes.QueueAttributeName
		into  *int64
		found *bool
	}{
		{sqstypes.QueueAttributeNameApproximateNumberOfMessages, &observation.Pending, nil},
		{sqstypes.QueueAttributeNameApproximateNumberOfMessagesDelayed, &observation.Delayed, nil},
		{sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible, &observation.InFlight, nil},
		{sqstypes.QueueAttributeNameVisibilityTimeout, &visible, &hasVisible},
		{sqstypes.QueueAttributeNameMessageRetentionPeriod, &retention, &hasStay},
	} {
		text, found := attributes[string(attribute.name)]
		if !found {
			continue
		}
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Observation{}, fmt.Errorf("%s is not a number", attribute.name)
		}
		*attribute.into = number
		if attribute.found != nil {
			*attribute.found = true
		}
	}
	if timeout := time.Duration(visible) * time.Second; hasVisible {
		observation.Settings.VisibilityTimeout = &timeout
	}
	if stay := time.Duration(retention) * time.Second; hasStay {
		observation.Settings.Retention = &stay
	}
	var redrive struct {
		MaxReceiveCount json.Number `json:"maxReceiveCount"`
	}
	policy := attributes[string(sqstypes.QueueAttributeNameRedrivePolicy)]
	if err := json.Unmarshal([]byte(cmp.Or(policy, "{}")), &redrive); err == nil {
		if limit, err := redrive.MaxReceiveCount.Int64(); err == nil && limit > 0 {
			observation.Settings.DeliveryLimit = &limit
		}
	}
	return observation, nil
}

// ageWindow is how far back CloudWatch is asked: it learns the age once a minute, late.
const ageWindow = 15 * time.Minute

// readAge asks CloudWatch. Without the right to, the rest still counts.
func (p sqsPlace) readAge(ctx context.Context, observation *Observation) {
	if p.endpoint != nil {
		observation.gap("the age of the oldest message is not known: CloudWatch has it only for queues of AWS")
		return
	}
	client := cloudwatch.New(cloudwatch.Options{Region: p.region, Credentials: p.credentials, HTTPClient: p.http, Retryer: aws.NopRetryer{}})
	now := time.Now()
	answer, err := client.GetMetricStatistics(ctx, &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String("AWS/SQS"), MetricName: aws.String("ApproximateAgeOfOldestMessage"),
		Dimensions: []cloudwatchtypes.Dimension{{Name: aws.String("QueueName"), Value: &p.queue}},
		StartTime:  aws.Time(now.Add(-ageWindow)), EndTime: &now, Period: aws.Int32(60),
		Statistics: []cloudwatchtypes.Statistic{cloudwatchtypes.StatisticMaximum},
	})
	if err != nil {
		observation.gap("the age of the oldest message is not known: CloudWatch did not tell it; allow cloudwatch:GetMetricStatistics to the user of the DSN")
		return
	}
	readDatapoints(answer.Datapoints, observation)
}

// readDatapoints takes the newest age. What entered is rounded to the minute: the service
// itself knows no better, and one message must not seem to move.
func readDatapoints(datapoints []cloudwatchtypes.Datapoint, observation *Observation) {
	var newest *cloudwatchtypes.Datapoint
	for i := range datapoints {
		point := &datapoints[i]
		if point.Timestamp != nil && point.Maximum != nil && (newest == nil || point.Timestamp.After(*newest.Timestamp)) {
			newest = point
		}
	}
	if newest != nil {
		age := time.Duration(*newest.Maximum) * time.Second
		observation.sawOldest(newest.Timestamp.Add(-age).Truncate(time.Minute))
	}
}

// explain says what an answer of the service means here.
func (p sqsPlace) explain(target Target, err error) error {
	var (
		missing *sqstypes.QueueDoesNotExist
		answer  smithy.APIError
		reply   *smithyhttp.ResponseError
	)
	if errors.As(err, &missing) {
		return failed(ReasonQueueNotFound, "%s has no queue %s in the region %s: check observe.queue, or the DSN's path", target.Broker(), p.queue, p.region)
	}
	if !errors.As(err, &answer) {
		return err
	}
	code := answer.ErrorCode()
	switch {
	case strings.Contains(code, "NonExistentQueue"), strings.Contains(code, "QueueDoesNotExist"):
		return failed(ReasonQueueNotFound, "%s has no queue %s in the region %s: check observe.queue, or the DSN's path", target.Broker(), p.queue, p.region)
	case strings.Contains(code, "AccessDenied"):
		return failed(ReasonPermissionDenied, "%s: allow sqs:GetQueueUrl and sqs:GetQueueAttributes on the queue %s to the user of the DSN", target.Broker(), p.queue)
	case strings.Contains(code, "InvalidClientTokenId"), strings.Contains(code, "SignatureDoesNotMatch"), strings.Contains(code, "UnrecognizedClient"), strings.Contains(code, "ExpiredToken"):
		return failed(ReasonAuthenticationFailed, "%s refused the credentials of the DSN (%s)", target.Broker(), code)
	case errors.As(err, &reply) && reply.HTTPStatusCode() >= 500:
		return failed(ReasonUnexpectedError, "%s answered with the status %d", target.Broker(), reply.HTTPStatusCode())
	}
	return failed(ReasonUnexpectedError, "%s refused: %s", target.Broker(), excerpt(code, target.secrets()))
}
