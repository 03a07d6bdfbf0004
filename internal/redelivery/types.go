package redelivery

import (
	"slices"
	"time"
)

// Type is the kind of broker behind a transport. Any other value is treated as Custom.
type Type string

// The transport types. For a Custom transport nothing is assumed: its window must be declared.
const (
	AMQP       Type = "amqp"
	Doctrine   Type = "doctrine"
	Redis      Type = "redis"
	SQS        Type = "sqs"
	Beanstalkd Type = "beanstalkd"
	Sync       Type = "sync"
	InMemory   Type = "inMemory"
	Custom     Type = "custom"
)

// redelivers is false for the types that handle a message in the process that
// dispatched it: there is no broker from which it could come back, but for an outbox
// whose relay is that process.
func (t Type) redelivers() bool { return t != Sync && t != InMemory }

// Origin says where a value came from.
type Origin string

// The origins, from the least to the most informative. A value that was made from
// several has the most informative one: it is a default only when every part is.
const (
	OriginDefault  Origin = "default"
	OriginDSN      Origin = "dsn"
	OriginDeclared Origin = "declared"
	OriginObserved Origin = "observed"
)

var originsByInformation = []Origin{OriginDefault, OriginDSN, OriginDeclared, OriginObserved}

func mostInformative(origins ...Origin) Origin {
	return slices.MaxFunc(origins, func(a, b Origin) int {
		return slices.Index(originsByInformation, a) - slices.Index(originsByInformation, b)
	})
}

// Sourced is a value and where it came from. One without an Origin is not set:
// the default applies. A negative value counts as 0.
type Sourced[T ~int64] struct {
	Value  T
	Origin Origin
}

// Setting is a duration and where it came from.
type Setting = Sourced[time.Duration]

// Count is a number and where it came from.
type Count = Sourced[int64]

// Declared is a duration that the user declared.
func Declared(value time.Duration) Setting {
	return Setting{Value: value, Origin: OriginDeclared}
}

// DeclaredCount is a number that the user declared.
func DeclaredCount(value int64) Count {
	return Count{Value: value, Origin: OriginDeclared}
}

// IsSet says whether the value is known from anywhere but the defaults of this package.
func (s Sourced[T]) IsSet() bool { return s.Origin != "" }

func (s Sourced[T]) or(fallback T) Sourced[T] {
	if !s.IsSet() {
		return byDefault(fallback)
	}
	return Sourced[T]{Value: max(s.Value, 0), Origin: s.Origin}
}

func byDefault[T ~int64](value T) Sourced[T] {
	return Sourced[T]{Value: value, Origin: OriginDefault}
}

// Ratio is a decimal number in billionths, as a time.Duration is a time in
// billionths of a second: Ratio(1_500_000_000) is 1.5. A billionth is the finest
// step of a Kubernetes quantity, whose ScaledValue(resource.Nano) is this number.
type Ratio int64

// One is the ratio 1.
const One Ratio = 1_000_000_000

// RetryStrategy is the retry_strategy of a transport. What is not set has the
// default of the framework.
type RetryStrategy struct {
	// Service is the id of a retry strategy service; "" is none. Nobody can look into
	// a service, so only MaxTotal bounds its delays, and on a doctrine transport
	// MaxRetries their number.
	Service string
	// MaxTotal is the largest sum of the delays that the service gives one message.
	MaxTotal Setting
	// MaxRetries is the number of retries after the first delivery.
	MaxRetries Count
	// Delay before the first retry. Symfony counts in milliseconds: a part of one counts as a whole one.
	Delay Setting
	// MaxDelay caps each delay; 0 is no cap.
	MaxDelay Setting
	// Multiplier of the delay from one retry to the next; below 1, which Symfony refuses, it counts as 1.
	Multiplier *Ratio
	// Jitter is the part of each delay that is added at random, from 0 to 1.
	Jitter *Ratio
}

// Transport is what is known of one transport. Options of other types than its own have no effect.
type Transport struct {
	// Name of the transport, unique among all.
	Name string
	// Path is the prefix of the transport's fields in Window.Undeclared, such as spec.transports[orders].
	Path string
	// Type of the transport.
	Type Type

	// Inbox says that the inbox records the handled messages of this transport.
	Inbox bool
	// BatchHandlers says that its messages go to batch handlers, which Symfony does not record.
	BatchHandlers bool
	// Outbox is the name of the transport through which messages reach this one; "" is none.
	Outbox string
	// FailureTransport is the name of the transport that receives what all retries failed; "" is none.
	FailureTransport string

	// Window is the whole window, declared outright; nothing else is then computed for
	// this transport. On an outbox it stands for R + D of that outbox. On a failure
	// transport it stands for all of that transport's part, F + D + k * R: it says how
	// long after its first entry a message can still come back from there.
	Window Setting

	// RedeliverTimeout of a doctrine or redis transport.
	RedeliverTimeout Setting
	// CheckDelayedInterval of a doctrine transport; 0 says that it polls and so waits for no notification.
	CheckDelayedInterval Setting
	// ClaimInterval of a redis transport.
	ClaimInterval Setting
	// MaxPending is the largest number of pending entries of a redis consumer group.
	MaxPending Count
	// ConsumerTimeout is the consumer_timeout of RabbitMQ.
	ConsumerTimeout Setting
	// Heartbeat of an amqp transport; 0 is none.
	Heartbeat Setting
	// VisibilityTimeout of an SQS queue.
	VisibilityTimeout Setting
	// TTR is the time to run of a beanstalkd transport.
	TTR Setting

	// Retry strategy of the transport.
	Retry RetryStrategy

	// MaxAge is F, for a failure transport: how long a message may stay in it, from its
	// first entry. In a doctrine table created_at restarts at each retry, so there a
	// clean-up of rows older than A makes this up to (1 + maxRetries) * A.
	MaxAge Setting

	// LostAcks is k; below 1 it counts as 1.
	LostAcks Count
	// MaxDowntime is the longest time without workers, and the time that they then need for the backlog.
	MaxDowntime Setting
	// ReplayWindow is how long an operator of the broker may still replay a message.
	ReplayWindow Setting
	// MaxHandlerTime is the longest time that handling one message takes.
	MaxHandlerTime Setting
	// MaxWorkerHang is the time after which a hung or cut-off worker is surely killed.
	MaxWorkerHang Setting
}
