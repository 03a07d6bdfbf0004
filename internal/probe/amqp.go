package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

const (
	// delayQueuesPage is how many delay queues one request lists.
	delayQueuesPage = 100
	// delayQueuesLimit is how many of them one look adds up.
	delayQueuesLimit = 1000
	// defaultDelayPattern is Symfony's queue_name_pattern of delay queues.
	defaultDelayPattern = "delay_%exchange_name%_%routing_key%_%delay%"
)

// amqp asks RabbitMQ's management API for the transport's queues and for the queues in
// which Symfony lets messages wait for their delay.
func amqp(ctx context.Context, target Target) (Observation, error) {
	connection := newSingleConnection(target.authorities)
	defer connection.close()
	look := &queueLook{target: target, transport: &managementTransport{ctx: ctx, inner: connection}}
	if err := look.connect(); err != nil {
		return Observation{}, err
	}
	look.seen.Redelivered = new(int64)
	for _, queue := range look.queues() {
		if err := look.readQueue(queue); err != nil {
			return Observation{}, look.explain(err, "the queue "+queue)
		}
	}
	if err := look.readDelayQueues(); err != nil {
		return Observation{}, look.explain(err, "the delay queues")
	}
	return look.seen, nil
}

// queueLook is one look under way.
type queueLook struct {
	target    Target
	client    *rabbithole.Client
	transport *managementTransport
	seen      Observation
}

// connect makes the client. Beside an amqp DSN the management API is looked for on the
// same host, at its usual port.
func (l *queueLook) connect() error {
	var address, user, password string
	if management := l.target.management; management != nil {
		password, _ = management.User.Password()
		user = management.User.Username()
		address = management.Scheme + "://" + management.Host + strings.TrimSuffix(management.Path, "/")
	} else {
		dsn := &l.target.dsn.Address
		user, password = dsn.Login()
		host, _, err := net.SplitHostPort(withPort(dsn.Host.String(), "5672"))
		if err != nil || host == "" {
			return failed(ReasonInvalidURL, "the DSN names no host: expected %s", expectedURL[l.target.Type])
		}
		address = "http://" + net.JoinHostPort(host, "15672")
		if dsn.Scheme == "amqps" {
			address = "https://" + net.JoinHostPort(host, "15671")
		}
	}
	client, err := rabbithole.NewTLSClient(address, cmp.Or(user, "guest"), cmp.Or(password, "guest"), l.transport)
	if err != nil {
		return failed(ReasonInvalidURL, "the URL of the management API is not valid")
	}
	l.client = client
	return nil
}

func (l *queueLook) queues() []string {
	if l.target.Place.Queue != "" {
		return []string{l.target.Place.Queue}
	}
	return l.target.dsn.Queues()
}

func (l *queueLook) virtualHost() string {
	if l.target.Place.VirtualHost != "" || l.target.management != nil {
		return cmp.Or(l.target.Place.VirtualHost, "/")
	}
	return l.target.dsn.VirtualHost()
}

// queueDetails is what the client library leaves out of RabbitMQ's answer.
type queueDetails struct {
	HeadMessageTimestamp *int64         `json:"head_message_timestamp"`
	Policy               map[string]any `json:"effective_policy_definition"`
}

func (l *queueLook) readQueue(name string) error {
	queue, err := l.client.GetQueue(l.virtualHost(), name)
	if err != nil {
		return err
	}
	var details queueDetails
	if err := l.transport.decodeLast(&details); err != nil {
		return err
	}
	l.seen.Pending += int64(queue.MessagesReady)
	l.seen.InFlight += int64(queue.MessagesUnacknowledged)
	if queue.MessageStats != nil { // absent until the first message
		*l.seen.Redelivered += queue.MessageStats.Redeliver
	}
	switch {
	case details.HeadMessageTimestamp != nil:
		l.seen.sawOldest(time.Unix(*details.HeadMessageTimestamp, 0))
	case queue.MessagesReady > 0:
		l.seen.AgeUnknown = true
		l.seen.gap(fmt.Sprintf("the age of the oldest message of %s is not known: its messages carry no timestamp, or a queue of type %s does not tell it", name, cmp.Or(queue.Type, "classic")))
	}
	l.seen.Settings.readArguments(queue.Arguments, details.Policy)
	return nil
}

// readArguments takes the stricter of a queue's arguments and its policy, as RabbitMQ
// does, and of several queues the value that lets a message come back later.
func (s *Settings) readArguments(arguments, policy map[string]any) {
	later(&s.MessageTTL, milliseconds(stricter(arguments["x-message-ttl"], policy["message-ttl"])))
	later(&s.QueueExpiry, milliseconds(stricter(arguments["x-expires"], policy["expires"])))
	later(&s.ConsumerTimeout, milliseconds(stricter(arguments["x-consumer-timeout"], policy["consumer-timeout"])))
	later(&s.DeliveryLimit, stricter(arguments["x-delivery-limit"], policy["delivery-limit"]))
}

// stricter is the smaller of the numbers among the values; nil when there is none.
func stricter(values ...any) *int64 {
	var least *int64
	for _, value := range values {
		if number, ok := value.(float64); ok && number >= 0 && number < 1<<53 {
			if whole := int64(number); least == nil || whole < *least {
				least = &whole
			}
		}
	}
	return least
}

func milliseconds(number *int64) *time.Duration {
	if number == nil {
		return nil
	}
	duration := time.Duration(min(*number, int64(1<<62/time.Millisecond))) * time.Millisecond
	return &duration
}

// later keeps the larger of two values.
func later[T ~int64](kept **T, found *T) {
	if found != nil && (*kept == nil || *found > **kept) {
		*kept = found
	}
}

// readDelayQueues adds up the queues of the exchange whose names match the pattern.
func (l *queueLook) readDelayQueues() error {
	query := url.Values{"use_regex": {"true"}, "page_size": {fmt.Sprint(delayQueuesPage)}, "name": {l.delayQueues()}}
	for page := 1; ; page++ {
		query.Set("page", fmt.Sprint(page))
		listed, err := l.client.PagedListQueuesWithParametersIn(l.virtualHost(), query)
		if err != nil {
			return err
		}
		for i := range listed.Items {
			l.seen.Delayed += int64(listed.Items[i].Messages)
		}
		if page >= listed.PageCount {
			return nil
		}
		if page*delayQueuesPage >= delayQueuesLimit {
			l.seen.gap(fmt.Sprintf("there are %d delay queues; the messages of the first %d were counted", listed.FilteredCount, delayQueuesLimit))
			return nil
		}
	}
}

// delayQueues is a regular expression for the names of the delay queues: the pattern
// with the exchange's name and anything for the rest.
func (l *queueLook) delayQueues() string {
	pattern := defaultDelayPattern
	for _, option := range l.target.dsn.Address.Query {
		if option.Name == "delay" && len(option.Sub) == 1 && option.Sub[0] == "queue_name_pattern" {
			pattern = option.Value.String()
		}
	}
	expression := regexp.QuoteMeta(pattern)
	for placeholder, with := range map[string]string{
		"%exchange_name%": regexp.QuoteMeta(l.exchange()), "%routing_key%": ".*", "%delay%": "[0-9]+",
	} {
		expression = strings.ReplaceAll(expression, placeholder, with)
	}
	return "^" + expression + "(_delay|_retry)?$"
}

// exchange is the transport's exchange. Behind the URL of a management API only the
// queue's name is known, which is the exchange's unless the application says otherwise.
func (l *queueLook) exchange() string {
	if l.target.management != nil {
		return l.target.Place.Queue
	}
	return l.target.dsn.Exchange()
}

// explain says what an answer of the management API means here.
func (l *queueLook) explain(err error, what string) error {
	var answer rabbithole.ErrorResponse
	if !errors.As(err, &answer) {
		if strings.Contains(err.Error(), "401 Unauthorized") {
			return l.unauthorized()
		}
		return err
	}
	switch answer.StatusCode {
	case http.StatusNotFound:
		return failed(ReasonQueueNotFound, "%s has no virtual host %s, or %s is not in it: check observe.virtualHost and observe.queue", l.target.Broker(), l.virtualHost(), what)
	case http.StatusForbidden:
		return failed(ReasonPermissionDenied, "%s: the user may not see %s: give it the tag monitoring", l.target.Broker(), what)
	}
	return failed(ReasonUnexpectedError, "%s answered with the status %d for %s", l.target.Broker(), answer.StatusCode, what)
}

// unauthorized tells apart why RabbitMQ answered with the status 401: it has one for all.
func (l *queueLook) unauthorized() error {
	var answer struct {
		Reason string `json:"reason"`
	}
	if err := l.transport.decodeLast(&answer); err == nil && strings.Contains(answer.Reason, "virtual host") {
		return failed(ReasonPermissionDenied, "%s: the user has no permission on the virtual host %s: rabbitmqctl set_permissions -p %s USER '' '' ''", l.target.Broker(), l.virtualHost(), l.virtualHost())
	}
	return failed(ReasonAuthenticationFailed, "%s refused the user or the password, or the user lacks the tag monitoring: rabbitmqctl set_user_tags USER monitoring", l.target.Broker())
}
