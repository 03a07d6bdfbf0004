package redelivery

import "time"

// What applies when the team declares nothing: the defaults of Symfony's transports
// and of its retry strategy.
const (
	DefaultRedeliverTimeout     = time.Hour        // redeliver_timeout of doctrine and redis
	DefaultCheckDelayedInterval = time.Minute      // check_delayed_interval of doctrine on PostgreSQL
	DefaultClaimInterval        = time.Minute      // claim_interval of redis
	DefaultHeartbeat            = time.Duration(0) // heartbeat of amqp: none
	DefaultTTR                  = 90 * time.Second // ttr of beanstalkd

	DefaultMaxRetries int64 = 3
	DefaultDelay            = time.Second
	DefaultMultiplier       = 2 * One
	DefaultMaxDelay         = time.Duration(0) // none
	DefaultJitter           = One / 10
)

// The defaults and limits of the brokers.
const (
	DefaultConsumerTimeout   = 30 * time.Minute // consumer_timeout of RabbitMQ
	DefaultVisibilityTimeout = 12 * time.Hour   // the most that SQS allows, since a queue's own value is unknown
	MaxSQSDelay              = 15 * time.Minute // SQS delays no message for longer
)

// The operator's own defaults, for what no software can know. The CRD shows the
// same values in the stored object, all but maxPending.
const (
	DefaultMaxPending     int64 = 100
	DefaultLostAcks       int64 = 1
	DefaultMaxDowntime          = 24 * time.Hour
	DefaultReplayWindow         = time.Duration(0)
	DefaultMaxHandlerTime       = time.Minute
	DefaultMaxWorkerHang        = 2 * time.Hour
)

// What was measured with real workers.
const (
	// pollingSlack is how much later than its interval a doctrine worker looks.
	pollingSlack = 2 * time.Second
	// consumerTimeoutSlack is how much later than consumer_timeout RabbitMQ enforces
	// it: it looks once a minute.
	consumerTimeoutSlack = time.Minute
	// missedHeartbeats is after how many heartbeats a connection surely counts as dead.
	missedHeartbeats int64 = 3
)
