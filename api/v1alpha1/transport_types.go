package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// TransportType is the kind of broker behind a transport.
//
// +kubebuilder:validation:Enum=amqp;doctrine;redis;sqs;beanstalkd;sync;inMemory;custom
type TransportType string

// The transport types, by the broker behind Symfony's DSN.
const (
	TransportAMQP       TransportType = "amqp"
	TransportDoctrine   TransportType = "doctrine"
	TransportRedis      TransportType = "redis"
	TransportSQS        TransportType = "sqs"
	TransportBeanstalkd TransportType = "beanstalkd"
	TransportSync       TransportType = "sync"
	TransportInMemory   TransportType = "inMemory"
	TransportCustom     TransportType = "custom"
)

// ReservedTransportName is the transport name under which drills write to the
// inbox table. No transport may be declared with it.
const ReservedTransportName = "messaginginbox.drill"

// TransportName is the name of a transport as Symfony records it.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=190
type TransportName string

// RedeliverySpec holds what is true of every transport unless it overrides it.
type RedeliverySpec struct {
	// maxDowntime is the longest time without workers, plus the time that they then
	// need to drain the backlog. A message that is observed to wait for longer counts
	// instead, in the window of its transport.
	// +optional
	// +default="24h"
	MaxDowntime Duration `json:"maxDowntime"`
	// replayWindow is how long after its first delivery an operator of the broker may
	// still replay a message.
	// +optional
	// +default="0s"
	ReplayWindow Duration `json:"replayWindow"`
	// lostAcks is the number of lost acknowledgements in a row that are tolerated.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	LostAcks int32 `json:"lostAcks"`
	// maxHandlerTime is the longest time that handling one message takes.
	// +optional
	// +default="60s"
	MaxHandlerTime Duration `json:"maxHandlerTime"`
	// maxWorkerHang is the time after which a hung or cut-off worker is surely killed.
	// +optional
	// +default="2h"
	MaxWorkerHang Duration `json:"maxWorkerHang"`
}

// Transport declares one transport.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'custom' || (has(self.redelivery) && has(self.redelivery.window))",message="a custom transport must declare redelivery.window: the operator knows no broker behind it"
// +kubebuilder:validation:XValidation:rule="self.name != 'messaginginbox.drill'",message="the transport name messaginginbox.drill is reserved for drills"
// +kubebuilder:validation:XValidation:rule="!has(self.redelivery) || !has(self.redelivery.redeliverTimeout) || self.type in ['doctrine', 'redis']",message="redelivery.redeliverTimeout is an option of doctrine and redis transports"
// +kubebuilder:validation:XValidation:rule="!has(self.redelivery) || !has(self.redelivery.checkDelayedInterval) || self.type == 'doctrine'",message="redelivery.checkDelayedInterval is an option of doctrine transports"
// +kubebuilder:validation:XValidation:rule="!has(self.redelivery) || !(has(self.redelivery.claimInterval) || has(self.redelivery.maxPending)) || self.type == 'redis'",message="redelivery.claimInterval and redelivery.maxPending are options of redis transports"
// +kubebuilder:validation:XValidation:rule="!has(self.redelivery) || !(has(self.redelivery.consumerTimeout) || has(self.redelivery.heartbeat)) || self.type == 'amqp'",message="redelivery.consumerTimeout and redelivery.heartbeat are options of amqp transports"
// +kubebuilder:validation:XValidation:rule="!has(self.redelivery) || !has(self.redelivery.visibilityTimeout) || self.type == 'sqs'",message="redelivery.visibilityTimeout is an option of sqs transports"
// +kubebuilder:validation:XValidation:rule="!has(self.redelivery) || !has(self.redelivery.ttr) || self.type == 'beanstalkd'",message="redelivery.ttr is an option of beanstalkd transports"
type Transport struct {
	// name of the transport, as in the application's configuration.
	// +required
	Name TransportName `json:"name"`

	// type of the transport. A custom transport must declare redelivery.window.
	// +required
	Type TransportType `json:"type"`

	// inbox says whether handled messages of this transport are recorded.
	// +optional
	// +default=true
	Inbox bool `json:"inbox"`

	// batchHandlers says that messages of this transport go to batch handlers, which
	// Symfony does not record: the inbox cannot protect them.
	// +optional
	// +default=false
	BatchHandlers bool `json:"batchHandlers"`

	// outbox is the transport through which messages reach this one: a relay stores
	// them in the sender's transaction and publishes them afterwards.
	// +optional
	Outbox TransportName `json:"outbox,omitempty"`

	// failureTransport receives the messages whose retries are exhausted.
	// +optional
	FailureTransport TransportName `json:"failureTransport,omitempty"`

	// dispatchesAfterCurrentBus are the transports to which handlers of this one
	// dispatch with DispatchAfterCurrentBusStamp. Each needs an outbox.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	DispatchesAfterCurrentBus []TransportName `json:"dispatchesAfterCurrentBus,omitempty"`

	// redelivery holds what decides how late a message can come back.
	// +optional
	Redelivery *TransportRedelivery `json:"redelivery,omitempty"`

	// observe says where the operator may look at the transport.
	// +optional
	Observe *ObserveSpec `json:"observe,omitempty"`
}

// TransportRedelivery holds what decides how late a message of one transport can
// come back. A value that is left out is the default of Symfony or of the broker;
// status.transports shows each with its origin.
type TransportRedelivery struct {
	// window is the whole redelivery window, declared outright: taken as it is, and
	// nothing else is computed for this transport, unless it is observed to need more.
	// +optional
	Window *Duration `json:"window,omitempty"`
	// redeliverTimeout is the option redeliver_timeout of a doctrine or redis
	// transport. Default: 1h.
	// +optional
	RedeliverTimeout *Duration `json:"redeliverTimeout,omitempty"`
	// checkDelayedInterval is the option check_delayed_interval of a doctrine
	// transport on PostgreSQL; 0s when it polls without LISTEN. Default: 60s.
	// +optional
	CheckDelayedInterval *Duration `json:"checkDelayedInterval,omitempty"`
	// claimInterval is the option claim_interval of a redis transport. Default: 60s.
	// +optional
	ClaimInterval *Duration `json:"claimInterval,omitempty"`
	// maxPending is the largest number of pending entries of a redis consumer group:
	// only its oldest entry is claimed, once per claimInterval. Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxPending *int32 `json:"maxPending,omitempty"`
	// consumerTimeout is RabbitMQ's consumer_timeout. Default: 30m.
	// +optional
	ConsumerTimeout *Duration `json:"consumerTimeout,omitempty"`
	// heartbeat is the option heartbeat of an amqp transport; 0s means none. Default: 0s.
	// +optional
	Heartbeat *Duration `json:"heartbeat,omitempty"`
	// visibilityTimeout is the visibility timeout of an SQS queue. Default: 12h, the
	// service's maximum, since the queue's own value is unknown.
	// +optional
	VisibilityTimeout *Duration `json:"visibilityTimeout,omitempty"`
	// ttr is the time to run of a beanstalkd transport. Default: 90s.
	// +optional
	TTR *Duration `json:"ttr,omitempty"`
	// retryStrategy of the transport. Default: the framework's.
	// +optional
	RetryStrategy *RetryStrategy `json:"retryStrategy,omitempty"`
	// maxAge is, for a failure transport, how long a message may stay in it, counted
	// from its first entry. Nothing in Symfony bounds it, so it has no default.
	// +optional
	MaxAge *Duration `json:"maxAge,omitempty"`
	// lostAcks overrides spec.redelivery.lostAcks.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	LostAcks *int32 `json:"lostAcks,omitempty"`
	// maxDowntime overrides spec.redelivery.maxDowntime.
	// +optional
	MaxDowntime *Duration `json:"maxDowntime,omitempty"`
	// replayWindow overrides spec.redelivery.replayWindow.
	// +optional
	ReplayWindow *Duration `json:"replayWindow,omitempty"`
	// maxHandlerTime overrides spec.redelivery.maxHandlerTime.
	// +optional
	MaxHandlerTime *Duration `json:"maxHandlerTime,omitempty"`
	// maxWorkerHang overrides spec.redelivery.maxWorkerHang.
	// +optional
	MaxWorkerHang *Duration `json:"maxWorkerHang,omitempty"`
}

// RetryStrategy is the retry_strategy of a transport. Default values are those of
// Symfony: maxRetries 3, delay 1s, multiplier 2, maxDelay none, jitter 0.1.
//
// +kubebuilder:validation:XValidation:rule="!has(self.service) || !(has(self.delay) || has(self.multiplier) || has(self.maxDelay) || has(self.jitter))",message="service excludes delay, multiplier, maxDelay and jitter: the service decides them; bound it with maxTotal and maxRetries"
// +kubebuilder:validation:XValidation:rule="!has(self.maxTotal) || has(self.service)",message="maxTotal bounds a retry service; without service the bound follows from the other fields"
type RetryStrategy struct {
	// service is the id of a retry strategy service, which the operator cannot look into.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Service string `json:"service,omitempty"`
	// maxTotal is the largest sum of all delays that the service gives one message.
	// +optional
	MaxTotal *Duration `json:"maxTotal,omitempty"`
	// maxRetries is the number of retries after the first delivery. Beside service it is
	// the largest number that the service allows.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxRetries *int32 `json:"maxRetries,omitempty"`
	// delay before the first retry.
	// +optional
	Delay *Duration `json:"delay,omitempty"`
	// multiplier of the delay from one retry to the next, at least 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1')) >= 0 && quantity(string(self)).compareTo(quantity('1000')) <= 0",message="multiplier must be from 1 to 1000"
	Multiplier *resource.Quantity `json:"multiplier,omitempty"`
	// maxDelay caps each delay; 0s means no cap.
	// +optional
	MaxDelay *Duration `json:"maxDelay,omitempty"`
	// jitter is the part of each delay that is added or taken at random, from 0 to 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="jitter must be from 0 to 1"
	Jitter *resource.Quantity `json:"jitter,omitempty"`
}

// ObserveSpec says where the operator may look at a transport.
type ObserveSpec struct {
	// urlSecretRef names the URL to look through: the transport's DSN, or for amqp the
	// URL of RabbitMQ's management API.
	// +required
	URLSecretRef SecretKeyReference `json:"urlSecretRef"`
	// caSecretRef names the certificate authorities, in PEM, that sign the broker's
	// certificate. Default: the public ones; for a database those of
	// spec.database.caSecretRef, unless its URL has sslrootcert or sslmode=disable.
	// +optional
	CASecretRef *SecretKeyReference `json:"caSecretRef,omitempty"`
	// virtualHost of an amqp queue. Default: the URL's, else /.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	VirtualHost string `json:"virtualHost,omitempty"`
	// queue of an amqp or sqs transport, or the tube of a beanstalkd transport.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Queue string `json:"queue,omitempty"`
	// stream of a redis transport. Default: the URL's, else messages.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Stream string `json:"stream,omitempty"`
	// group of a redis transport. Default: the URL's, else symfony.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Group string `json:"group,omitempty"`
	// table of a doctrine transport. Default: the URL's, else messenger_messages.
	// +optional
	Table Identifier `json:"table,omitempty"`
	// queueName of a doctrine transport. Default: the URL's, else default.
	// +optional
	// +kubebuilder:validation:MaxLength=190
	QueueName string `json:"queueName,omitempty"`
}
