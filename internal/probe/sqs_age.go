package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"
)

const (
	// ageWindow is how far back CloudWatch is asked: it learns the age once a minute, and
	// up to a quarter of an hour late of a queue that was idle.
	ageWindow = 15 * time.Minute
	// agePeriod of a value.
	agePeriod = time.Minute
	// ageTimeLimit is CloudWatch's share of a look's time: the numbers of the queue must
	// not wait for it.
	ageTimeLimit = time.Second
	// longestStay is how long SQS keeps a message at most: an older age is none.
	longestStay = 14 * 24 * time.Hour
)

// readAge asks CloudWatch for the age of the oldest message. Without an answer the rest
// still counts, and a gap says what is missing.
func (p sqsPlace) readAge(ctx context.Context, target Target, observation *Observation) {
	ctx, cancel := context.WithTimeout(ctx, ageTimeLimit)
	defer cancel()
	client := cloudwatch.New(cloudwatch.Options{
		Region: p.region, BaseEndpoint: p.cloudWatch(), Credentials: p.credentials, HTTPClient: p.http, Retryer: aws.NopRetryer{},
	})
	now := time.Now()
	answer, err := client.GetMetricStatistics(ctx, &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String("AWS/SQS"), MetricName: aws.String("ApproximateAgeOfOldestMessage"),
		Dimensions: []cloudwatchtypes.Dimension{{Name: aws.String("QueueName"), Value: &p.queue}},
		StartTime:  aws.Time(now.Add(-ageWindow)), EndTime: &now, Period: aws.Int32(int32(agePeriod.Seconds())),
		Statistics: []cloudwatchtypes.Statistic{cloudwatchtypes.StatisticMaximum},
	})
	var missing string
	if err != nil {
		missing = explainAge(target, err)
	} else if !readDatapoints(answer.Datapoints, observation) {
		missing = fmt.Sprintf("CloudWatch has no value of the last %.0f minutes for the queue %s; of one that was idle it learns late", ageWindow.Minutes(), p.queue)
	}
	if missing != "" {
		observation.AgeUnknown = true
		observation.gap("the age of the oldest message is not known: " + missing)
	}
}

// awsHost is a host of AWS itself, an endpoint in a VPC included.
var awsHost = regexp.MustCompile(`(^|\.)(amazonaws\.(com|com\.cn|eu)|api\.aws|api\.amazonwebservices\.(com\.cn|eu))$`)

// cloudWatch is the address to ask; nil is CloudWatch's own in the region. What is not
// AWS, such as LocalStack, has all services at one address.
func (p sqsPlace) cloudWatch() *string {
	if p.endpoint == nil {
		return nil
	}
	if address, err := url.Parse(*p.endpoint); err == nil && awsHost.MatchString(strings.ToLower(address.Hostname())) {
		return nil
	}
	return p.endpoint
}

// readDatapoints takes the newest age; false when there is none. What entered is rounded
// to the minute: the service itself knows no better, and one message must not seem to move.
func readDatapoints(datapoints []cloudwatchtypes.Datapoint, observation *Observation) bool {
	var newest *cloudwatchtypes.Datapoint
	for i := range datapoints {
		point := &datapoints[i]
		if point.Timestamp == nil || point.Maximum == nil || !(*point.Maximum >= 0 && *point.Maximum <= longestStay.Seconds()) {
			continue
		}
		if newest == nil || point.Timestamp.After(*newest.Timestamp) {
			newest = point
		}
	}
	if newest == nil {
		return false
	}
	age := time.Duration(*newest.Maximum) * time.Second
	observation.sawOldest(newest.Timestamp.Add(-age).Truncate(time.Minute))
	return true
}

// explainAge says why CloudWatch did not tell the age, in words that stay the same from one
// look to the next.
func explainAge(target Target, err error) string {
	var (
		answer  smithy.APIError
		timeout net.Error
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("CloudWatch did not answer within %s", ageTimeLimit)
	case !errors.As(err, &answer):
		return "CloudWatch cannot be reached, or does not speak its protocol: check the network policy and, in a VPC, its endpoint for monitoring"
	case strings.Contains(answer.ErrorCode(), "AccessDenied"):
		return "allow cloudwatch:GetMetricStatistics to the user of the DSN"
	case refusesCredentials(answer.ErrorCode()):
		return fmt.Sprintf("CloudWatch refused the credentials of the DSN (%s): check its region too", excerpt(answer.ErrorCode(), target.secrets()))
	default:
		return fmt.Sprintf("CloudWatch answered with %s", excerpt(answer.ErrorCode(), target.secrets()))
	}
}
