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
	"github.com/aws/aws-sdk-go-v2/credentials"
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
	connection := newSingleConnection(target.authorities)
	defer connection.close()
	place.http = connection.client()
	client := sqs.New(sqs.Options{
		Region: place.region, BaseEndpoint: place.endpoint, Credentials: place.credentials, HTTPClient: place.http,
		Retryer: aws.NopRetryer{}, // the next look is the retry
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
	if observation.Pending+observation.InFlight > 0 {
		place.readAge(ctx, target, &observation)
	}
	return observation, nil
}

// sqsPlace is where an SQS queue is.
type sqsPlace struct {
	region, account, queue string
	url                    string  // of the queue, when the DSN is that
	endpoint               *string // nil: the service's own in the region
	credentials            aws.CredentialsProvider
	http                   *http.Client
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
	case refusesCredentials(code):
		return failed(ReasonAuthenticationFailed, "%s refused the credentials of the DSN (%s)", target.Broker(), code)
	case errors.As(err, &reply) && reply.HTTPStatusCode() >= 500:
		return failed(ReasonUnexpectedError, "%s answered with the status %d", target.Broker(), reply.HTTPStatusCode())
	}
	return failed(ReasonUnexpectedError, "%s refused: %s", target.Broker(), excerpt(code, target.secrets()))
}

// refusesCredentials says that the code of an answer of AWS is about them: a wrong key, a wrong
// secret, an old token. Its services have several names for each.
func refusesCredentials(code string) bool { return credentialCodes.MatchString(code) }

var credentialCodes = regexp.MustCompile("InvalidClientTokenId|UnrecognizedClient|InvalidSignature|SignatureDoesNotMatch|IncompleteSignature|MissingAuthenticationToken|ExpiredToken")
