package probe

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/messaginginbox/operator/internal/messenger"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// Place says where on the broker the messages are. What is empty follows from the URL,
// else from Symfony's defaults.
type Place struct {
	VirtualHost string // of an amqp queue
	Queue       string // of an amqp or sqs transport, the tube of beanstalkd
	Stream      string // of redis
	Group       string // of redis
	Table       string // of doctrine, schema.table when a dot is in it
	QueueName   string // of doctrine
}

// Target is one transport to look at. It holds credentials and shows them nowhere.
type Target struct {
	// Transport is its name.
	Transport string
	// Type of the transport.
	Type redelivery.Type
	// Place on the broker.
	Place Place
	// RedeliverTimeout after which a delivered message of a doctrine or redis transport
	// counts as stuck.
	RedeliverTimeout time.Duration

	rawURL      string
	dsn         *messenger.Transport
	management  *url.URL // of RabbitMQ, when the URL is that of its management API
	database    *pooled  // of a doctrine transport
	authorities *x509.CertPool
	trusted     string // a digest of the authorities
}

// NewTarget understands the URL of a transport: its DSN with the query's options, or for
// amqp also the URL of RabbitMQ's management API. For doctrine see NewDoctrineTarget. The
// error is a *Failure.
func NewTarget(name string, transportType redelivery.Type, rawURL string, place Place) (Target, error) {
	target := Target{Transport: name, Type: transportType, Place: place, RedeliverTimeout: redelivery.DefaultRedeliverTimeout}
	rawURL = strings.TrimSpace(rawURL)
	target.rawURL, target.dsn = rawURL, messenger.NewTransport(name, rawURL)
	if transportType == redelivery.AMQP && (strings.HasPrefix(rawURL, "http://") || strings.HasPrefix(rawURL, "https://")) {
		management, err := url.Parse(rawURL)
		if err != nil || management.Host == "" {
			return Target{}, failed(ReasonInvalidURL, "the URL of the management API is not valid: expected one such as https://user:password@host:15671, with special characters percent-encoded")
		}
		target.management = management
		return target, nil
	}
	if rawURL == "" && transportType == redelivery.Doctrine {
		return target, nil
	}
	if found := target.dsn.Type(); found != transportType {
		return Target{}, failed(ReasonInvalidURL, "the URL is not one of a transport of type %s: expected %s", transportType, expectedURL[transportType])
	}
	if timeout := target.seconds("redeliver_timeout"); timeout != nil {
		target.RedeliverTimeout = *timeout
	}
	return target, nil
}

var expectedURL = map[redelivery.Type]string{
	redelivery.Doctrine:   "doctrine://CONNECTION, or the URL of the database",
	redelivery.Redis:      "redis://host:6379/stream/group, or rediss:// with TLS, or valkey:// or valkeys://",
	redelivery.AMQP:       "the management API's, such as http://user:password@host:15672, or amqp://user:password@host/vhost",
	redelivery.Beanstalkd: "beanstalkd://host:11300",
	redelivery.SQS:        "https://sqs.REGION.amazonaws.com/ACCOUNT/QUEUE?access_key=...&secret_key=...",
}

// Broker is the address without credentials: targets with the same one share a broker.
func (t Target) Broker() string {
	switch {
	case t.database != nil:
		return t.database.config.String()
	case t.management != nil:
		return t.management.Scheme + "://" + t.management.Host
	case t.Type == redelivery.Redis && t.dsn.Address.Host.String() == "":
		return t.dsn.Address.Scheme + "://" + strings.Join(redisAddresses(t), ",")
	default:
		return t.dsn.Address.Scheme + "://" + cmp.Or(t.dsn.Address.Host.String(), t.dsn.Address.Path.String())
	}
}

// sharedBroker is the same for targets that are looked at one after the other, and whose
// silence is one. Each master behind sentinels is a broker, each region and endpoint of
// SQS, and a port to which TLS is spoken is another than without.
func (t Target) sharedBroker() string {
	switch t.Type {
	case redelivery.Redis:
		return fmt.Sprintf("%s %s %t", t.Broker(), t.masterName(), t.encryption() != nil)
	case redelivery.SQS:
		if place, err := readSQS(t); err == nil {
			return fmt.Sprintf("%s %s %s", t.Broker(), place.region, aws.ToString(place.endpoint))
		}
	}
	return t.Broker()
}

// String is the broker: a Target that is printed shows no credential.
func (t Target) String() string { return t.Transport + " at " + t.Broker() }

// GoString is String, so that %#v is redacted too.
func (t Target) GoString() string { return t.String() }

func (t Target) secrets() []string {
	secrets := t.dsn.Secrets()
	_, password := t.dsn.Address.Login()
	if t.management != nil {
		password, _ = t.management.User.Password()
	}
	if len(password) > 1 {
		secrets = append(secrets, password)
	}
	return secrets
}

// option of the DSN, else the default.
func (t Target) option(name, byDefault string) string {
	return cmp.Or(t.dsn.Setting(name).Text(), byDefault)
}

// subOptions are the options NAME[KEY] of the DSN by their keys.
func (t Target) subOptions(name string) map[string]string {
	values := map[string]string{}
	for _, option := range t.dsn.Address.Query {
		if option.Name == name && len(option.Sub) == 1 {
			values[option.Sub[0]] = option.Value.String()
		}
	}
	return values
}

// WithAuthorities returns the same target, of which the certificate must be signed by one
// of the authorities, in PEM. Else the system's count, or for a database what its URL says.
// The error is a *Failure.
func (t Target) WithAuthorities(pem []byte) (Target, error) {
	if t.database != nil {
		config, err := t.database.config.WithCA(pem)
		if err != nil {
			return Target{}, failed(reasonOf(err), "%s", err)
		}
		t.database = t.database.with(config)
		return t, nil
	}
	t.authorities = x509.NewCertPool()
	if !t.authorities.AppendCertsFromPEM(pem) {
		return Target{}, failed(ReasonInvalidURL, "no certificate in PEM: it must begin with -----BEGIN CERTIFICATE-----")
	}
	digest := sha256.Sum256(pem)
	t.trusted = hex.EncodeToString(digest[:])
	return t, nil
}

// Declared are the settings of the transport that its DSN declares.
type Declared struct {
	RedeliverTimeout, CheckDelayedInterval, ClaimInterval, Heartbeat, VisibilityTimeout, TTR *time.Duration
}

// Declared reads the options of the DSN that decide windows. Symfony prefers them to
// options in its configuration, but for beanstalkd.
func (t Target) Declared() Declared {
	return Declared{
		RedeliverTimeout:     t.seconds("redeliver_timeout"),
		CheckDelayedInterval: t.milliseconds("check_delayed_interval"),
		ClaimInterval:        t.milliseconds("claim_interval"),
		Heartbeat:            t.seconds("heartbeat"),
		VisibilityTimeout:    t.seconds("visibility_timeout"),
		TTR:                  t.seconds("ttr"),
	}
}

// DeclareRedeliverTimeout takes the one that is declared beside the URL. Of it and the DSN's
// own the larger counts; the default counts only where neither is known.
func (t *Target) DeclareRedeliverTimeout(declared time.Duration) {
	if t.seconds("redeliver_timeout") == nil {
		t.RedeliverTimeout = declared
	}
	t.RedeliverTimeout = max(t.RedeliverTimeout, declared)
}

func (t Target) seconds(option string) *time.Duration { return t.duration(option, time.Second) }

func (t Target) milliseconds(option string) *time.Duration {
	return t.duration(option, time.Millisecond)
}

func (t Target) duration(option string, unit time.Duration) *time.Duration {
	number, err := strconv.ParseFloat(t.option(option, ""), 64)
	// Beyond a hundred years it is no setting but a mistake, and would overflow.
	if err != nil || number < 0 || number*unit.Seconds() > (100*365*24*time.Hour).Seconds() {
		return nil
	}
	duration := time.Duration(number * float64(unit))
	return &duration
}

// identity is a digest of all that decides what a look sees, credentials and authorities
// included.
func (t Target) identity() string {
	database := ""
	if t.database != nil {
		database = t.database.config.Fingerprint()
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %s", t.Transport, t.Type, t.rawURL, fmt.Sprint(t.Place), database, t.trusted, t.RedeliverTimeout))
	return hex.EncodeToString(digest[:])
}

func identityOf(targets []Target) []string {
	identities := make([]string, len(targets))
	for i, target := range targets {
		identities[i] = target.identity()
	}
	return identities
}
