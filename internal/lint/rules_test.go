package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/messenger"
)

// sound is a configuration in which no rule finds anything, given its facts.
const sound = `
framework:
    messenger:
        identity_stamps: true
        failure_transport: failed
        transports:
            orders:
                dsn: 'amqp://rabbit/%2f/orders?heartbeat=60&auto_setup=0'
                inbox: true
                outbox: outbox
            mail: { dsn: 'doctrine://default?queue_name=mail&auto_setup=0', inbox: true }
            outbox: 'doctrine://default?queue_name=outbox&auto_setup=0'
            failed: 'doctrine://default?queue_name=failed&auto_setup=0'
        buses:
            messenger.bus.default: { middleware: [doctrine_transaction] }
`

var soundFacts = Facts{FromManifest: true, Transports: map[string]TransportFacts{"failed": {Bounded: true}}}

func lintText(t *testing.T, content string, facts Facts) []Finding {
	t.Helper()
	configuration, err := messenger.Load([]messenger.Source{{Name: "m.yaml", Content: []byte(content)}}, messenger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Run(configuration, facts)
}

func TestASoundConfigurationHasNoFindings(t *testing.T) {
	if findings := lintText(t, sound, soundFacts); len(findings) > 0 {
		t.Errorf("found %+v", findings)
	}
}

// change edits the sound configuration in one place.
func change(t *testing.T, before, after string) string {
	t.Helper()
	if strings.Count(sound, before) != 1 {
		t.Fatalf("%q is not in the sound configuration exactly once", before)
	}
	return strings.Replace(sound, before, after, 1)
}

const (
	stamps     = "        identity_stamps: true\n"
	global     = "        failure_transport: failed\n"
	ordersDSN  = "'amqp://rabbit/%2f/orders?heartbeat=60&auto_setup=0'"
	ordersBody = ordersDSN + "\n                inbox: true\n                outbox: outbox\n"
	middleware = "{ middleware: [doctrine_transaction] }"
	outboxDSN  = "outbox: 'doctrine://default?queue_name=outbox&auto_setup=0'"
	failedDSN  = "'doctrine://default?queue_name=failed&auto_setup=0'"
	mailLine   = "mail: { dsn: 'doctrine://default?queue_name=mail&auto_setup=0', inbox: true }"
)

func TestRules(t *testing.T) {
	handlers := func(changed map[string]TransportFacts) Facts {
		facts := Facts{FromManifest: true, Transports: map[string]TransportFacts{"failed": {Bounded: true}}}
		for name, transport := range changed {
			facts.Transports[name] = transport
		}
		return facts
	}
	for name, test := range map[string]struct {
		rule          *Rule
		before, after string
		facts         *Facts
		found         string // position and key; "" when the rule must be silent
	}{
		"a transport's key":               {misspeltKey, "                inbox: true\n", "                inbx: true\n", nil, "9:17 transports.orders.inbx"},
		"a key of a later version":        {misspeltKey, stamps, stamps + "        lease: 5\n", nil, ""},
		"like no other key":               {unknownKey, stamps, stamps + "        lease: 5\n", nil, "5:9 lease"},
		"a key that resembles another":    {unknownKey, stamps, stamps + "        transport: {}\n", nil, ""},
		"in the DSN":                      {unknownOption, ordersDSN, "'amqp://rabbit/%2f/orders?hearbeat=60&auto_setup=0'", nil, "8:22 transports.orders.dsn (query hearbeat)"},
		"in options":                      {unknownOption, mailLine, "mail: { dsn: 'sqs://default/mail', options: { hearbeat: 60 } }", nil, "11:59 transports.mail.options.hearbeat"},
		"of another package's transport":  {unknownOption, mailLine, "mail: 'kafka://k?hearbeat=60'", nil, ""},
		"a word":                          {optionNotANumber, mailLine, "mail: { dsn: 'amqp://rabbit/%2f/mail', options: { heartbeat: 'abc' } }", nil, "11:74 transports.mail.options.heartbeat"},
		"a unit":                          {optionNotANumber, mailLine, "mail: 'doctrine://default?queue_name=mail&redeliver_timeout=1h'", nil, "11:19 transports.mail (query redeliver_timeout)"},
		"behind a variable":               {optionNotANumber, mailLine, "mail: { dsn: 'amqp://rabbit/%2f/mail', options: { heartbeat: '%env(int:BEAT)%' } }", nil, ""},
		"stamps missing":                  {inboxWithoutIdentityStamps, stamps, "", nil, "8:24 transports.orders.inbox"},
		"stamps off":                      {inboxWithoutIdentityStamps, stamps, "        identity_stamps: false\n", nil, "9:24 transports.orders.inbox"},
		"stamps behind a variable":        {inboxWithoutIdentityStamps, stamps, "        identity_stamps: '%env(bool:STAMPS)%'\n", nil, ""},
		"stamps as a map":                 {inboxWithoutIdentityStamps, stamps, "        identity_stamps: { generator: x }\n", nil, ""},
		"no transaction":                  {inboxWithoutDoctrineTransaction, middleware, "{ middleware: [validation] }", nil, "15:13 buses.messenger.bus.default"},
		"empty bus":                       {inboxWithoutDoctrineTransaction, middleware, "~", nil, "15:13 buses.messenger.bus.default"},
		"transaction with arguments":      {inboxWithoutDoctrineTransaction, middleware, "{ middleware: [{ doctrine_transaction: [default] }] }", nil, ""},
		"no bus declared":                 {inboxWithoutDoctrineTransaction, "        buses:\n            messenger.bus.default: " + middleware + "\n", "", nil, "9:24 transports.orders.inbox"},
		"default bus without":             {inboxWithoutDoctrineTransaction, "        buses:\n", "        default_bus: b\n        buses:\n            b: ~\n", nil, "16:13 buses.b"},
		"other bus without":               {otherBusWithoutDoctrineTransaction, "        buses:\n", "        default_bus: messenger.bus.default\n        buses:\n            b: ~\n", nil, "16:13 buses.b"},
		"other bus with":                  {otherBusWithoutDoctrineTransaction, "        buses:\n", "        default_bus: messenger.bus.default\n        buses:\n            b: { middleware: doctrine_transaction }\n", nil, ""},
		"inbox elsewhere":                 {inboxOnAnotherConnection, "                inbox: true\n", "                inbox: { connection: ledger }\n", nil, "9:38 transports.orders.inbox.connection"},
		"transaction elsewhere":           {inboxOnAnotherConnection, middleware, "{ middleware: [{ doctrine_transaction: [ledger] }] }", nil, "9:24 transports.orders.inbox"},
		"both on the default by its name": {inboxOnAnotherConnection, "                inbox: true\n", "                inbox: { connection: default }\n", nil, ""},
		"connection behind a variable":    {inboxOnAnotherConnection, "                inbox: true\n", "                inbox: { connection: '%env(C)%' }\n", nil, ""},
		"inbox on sync":                   {inboxWithoutBroker, ordersBody, "'sync://'\n                inbox: true\n", nil, "9:24 transports.orders.inbox"},
		"inbox in memory":                 {inboxWithoutBroker, ordersBody, "'in-memory://'\n                inbox: true\n", nil, "9:24 transports.orders.inbox"},
		"sync behind an outbox":           {inboxWithoutBroker, ordersDSN, "'sync://'", nil, ""},
		"sync behind an unknown outbox":   {inboxWithoutBroker, ordersBody, "'sync://'\n                inbox: true\n                outbox: '%env(OUTBOX)%'\n", nil, ""},
		"two that are sync":               {inboxWithoutBroker, ordersDSN, "'sync://'\n                outbox: now\n                inbox: true\n            now: 'sync://'\n            more:\n                dsn: 'amqp://rabbit/%2f/more?heartbeat=60&auto_setup=0'", nil, "10:24 transports.orders.inbox"},
		"batch handlers":                  {batchHandlersDeclared, "", "", new(handlers(map[string]TransportFacts{"orders": {BatchHandlers: true}})), "9:24 transports.orders.inbox"},
		"batch handlers without inbox":    {batchHandlersDeclared, "", "", new(handlers(map[string]TransportFacts{"outbox": {BatchHandlers: true}})), ""},
		"target without outbox":           {outboxMissing, "", "", new(handlers(map[string]TransportFacts{"orders": {DispatchesAfterCurrentBus: []string{"mail"}}})), "11:13 transports.mail"},
		"target not declared":             {outboxMissing, "", "", new(handlers(map[string]TransportFacts{"orders": {DispatchesAfterCurrentBus: []string{"sms"}}})), "7:13 transports.orders"},
		"target with outbox":              {outboxMissing, "", "", new(handlers(map[string]TransportFacts{"mail": {DispatchesAfterCurrentBus: []string{"orders"}}})), ""},
		"outbox not declared":             {outboxUndeclared, "                outbox: outbox\n", "                outbox: outbx\n", nil, "10:25 transports.orders.outbox"},
		"outbox is itself":                {outboxUndeclared, "                outbox: outbox\n", "                outbox: orders\n", nil, "10:25 transports.orders.outbox"},
		"outbox off":                      {outboxUndeclared, "                outbox: outbox\n", "                outbox: false\n", nil, ""},
		"amqp without retries":            {amqpWithoutRetries, "                outbox: outbox\n", "                retry_strategy: { max_retries: 0 }\n", nil, "10:48 transports.orders.retry_strategy.max_retries"},
		"amqp with one retry":             {amqpWithoutRetries, "                outbox: outbox\n", "                retry_strategy: { max_retries: 1 }\n", nil, ""},
		"redis without retries":           {amqpWithoutRetries, ordersDSN, "'redis://redis'\n                retry_strategy: { max_retries: 0 }", nil, ""},
		"no failure transport":            {failureTransportAbsent, global, "", nil, "6:13 transports.orders"},
		"null failure transport":          {failureTransportAbsent, global, "        failure_transport: ~\n", nil, "7:13 transports.orders"},
		"failure transport misspelt":      {failureTransportUndeclared, global, "        failure_transport: failde\n", nil, "5:28 failure_transport"},
		"own failure transport misspelt":  {failureTransportUndeclared, "                outbox: outbox\n", "                failure_transport: nowhere\n", nil, "10:36 transports.orders.failure_transport"},
		"no bound of the failures":        {failureTransportUnbounded, "", "", new(Facts{}), "13:13 transports.failed"},
		"no bound in the manifest":        {failureTransportUnbounded, "", "", new(Facts{FromManifest: true}), "13:13 transports.failed"},
		"failures are thrown away":        {failureTransportUnbounded, failedDSN, "'in-memory://'", new(Facts{}), ""},
		"failures share a queue":          {failureTransportSharesQueue, failedDSN, "'doctrine://default?queue_name=mail&auto_setup=0'", nil, "13:21 transports.failed"},
		"failures in another table":       {failureTransportSharesQueue, failedDSN, "'doctrine://default?queue_name=mail&table_name=failed&auto_setup=0'", nil, ""},
		"failures on another connection":  {failureTransportSharesQueue, failedDSN, "'doctrine://other?queue_name=mail&auto_setup=0'", nil, ""},
		"two on one queue":                {transportsShareQueue, outboxDSN, "outbox: 'doctrine://default?queue_name=mail&auto_setup=0'", nil, "12:21 transports.outbox"},
		"two behind one variable":         {transportsShareQueue, mailLine, "mail: '%env(DSN)%'\n            copy: '%env(DSN)%'", nil, "12:19 transports.copy"},
		"two of one variable, two queues": {transportsShareQueue, mailLine, "mail: '%env(DSN)%?queue_name=a'\n            copy: '%env(DSN)%?queue_name=b'", nil, ""},
		"two users of one queue":          {transportsShareQueue, mailLine, "mail: 'amqp://u:p@rabbit/%2f/orders'", nil, "11:19 transports.mail"},
		"one queue, the port in one":      {transportsShareQueue, mailLine, "mail: 'amqp://rabbit:5672/%2f/orders'", nil, "11:19 transports.mail"},
		"one stream, defaults in one":     {transportsShareQueue, mailLine, "mail: 'redis://h:6379/messages'\n            copy: 'redis://h'", nil, "12:19 transports.copy"},
		"one queue, two ports":            {transportsShareQueue, mailLine, "mail: 'amqp://rabbit:5673/%2f/orders'", nil, ""},
		"one queue, the host in options":  {transportsShareQueue, mailLine, "mail: { dsn: 'amqp://', options: { host: Rabbit, exchange: { name: orders } } }", nil, "11:26 transports.mail.dsn"},
		"one queue, options beat the DSN": {transportsShareQueue, mailLine, "mail: { dsn: 'amqp://other:1/%2f/orders', options: { host: rabbit, port: 5672 } }", nil, "11:26 transports.mail.dsn"},
		"another host in options":         {transportsShareQueue, mailLine, "mail: { dsn: 'amqp://rabbit/%2f/orders', options: { host: other } }", nil, ""},
		"another port in options":         {transportsShareQueue, mailLine, "mail: { dsn: 'amqp://rabbit/%2f/orders', options: { port: 5673 } }", nil, ""},
		"another vhost in options":        {transportsShareQueue, mailLine, "mail: { dsn: 'amqp://rabbit/%2f/orders', options: { vhost: shop } }", nil, ""},
		"another vhost in the query":      {transportsShareQueue, mailLine, "mail: 'amqp://rabbit/%2f/orders?vhost=shop'", nil, ""},
		"one queue, one vhost, two ways":  {transportsShareQueue, mailLine, "mail: { dsn: 'amqp://rabbit', options: { vhost: shop, exchange: { name: mail } } }\n            copy: 'amqp://rabbit/shop/mail'", nil, "12:19 transports.copy"},
		"one host behind a variable":      {transportsShareQueue, mailLine, "mail: 'amqp://%env(RABBIT)%/shop/mail'\n            copy: { dsn: 'amqp://', options: { host: '%env(RABBIT)%', vhost: shop, exchange: { name: mail } } }", nil, "12:26 transports.copy.dsn"},
		"one exchange, other queues":      {transportsShareQueue, mailLine, "mail: 'amqp://rabbit/%2f/orders?queues[mail]='", nil, ""},
		"constant consumer":               {redisConsumerShared, mailLine, "mail: 'redis://redis/mail/app/worker'", nil, "11:19 transports.mail (path)"},
		"default consumer":                {redisConsumerShared, mailLine, "mail: 'redis://redis/mail'", nil, "11:19 transports.mail"},
		"consumer of the pod":             {redisConsumerShared, mailLine, "mail: { dsn: 'redis://redis/mail', options: { consumer: '%env(HOSTNAME)%' } }", nil, ""},
		"timeout below a minute":          {redeliverTimeoutTooShort, mailLine, "mail: 'doctrine://default?queue_name=mail&redeliver_timeout=59'", nil, "11:19 transports.mail (query redeliver_timeout)"},
		"timeout above a minute":          {redeliverTimeoutTooShort, mailLine, "mail: 'doctrine://default?queue_name=mail&redeliver_timeout=61'", nil, ""},
		"default ttr, slow handler":       {redeliverTimeoutTooShort, mailLine, "mail: 'beanstalkd://b'", new(handlers(map[string]TransportFacts{"mail": {MaxHandlerTime: 2 * time.Minute}})), "11:19 transports.mail"},
		"default ttr, quick handler":      {redeliverTimeoutTooShort, mailLine, "mail: 'beanstalkd://b'", nil, ""},
		"visibility unknown":              {redeliverTimeoutTooShort, mailLine, "mail: 'sqs://default/mail'", new(handlers(map[string]TransportFacts{"mail": {MaxHandlerTime: 13 * time.Hour}})), ""},
		"visibility too short":            {redeliverTimeoutTooShort, mailLine, "mail: { dsn: 'sqs://default/mail', options: { visibility_timeout: 30 } }", nil, "11:79 transports.mail.options.visibility_timeout"},
		"retry service":                   {retryServiceOpaque, "                outbox: outbox\n", "                retry_strategy: { service: s }\n", nil, "10:44 transports.orders.retry_strategy.service"},
		"retry service, bounded":          {retryServiceOpaque, "                outbox: outbox\n", "                retry_strategy: { service: s }\n", new(handlers(map[string]TransportFacts{"orders": {RetriesBounded: true}})), ""},
		"auto_setup by default":           {autoSetupInProduction, ordersDSN, "'amqp://rabbit/%2f/orders'", nil, "8:22 transports.orders.dsn"},
		"auto_setup on":                   {autoSetupInProduction, ordersDSN, "'amqp://rabbit/%2f/orders?auto_setup=yes'", nil, "8:22 transports.orders.dsn (query auto_setup)"},
		"auto_setup behind a variable":    {autoSetupInProduction, ordersDSN, "'amqp://rabbit/%%2f/orders?auto_setup=%env(SETUP)%'", nil, ""},
		"auto_setup of beanstalkd":        {autoSetupInProduction, mailLine, "mail: 'beanstalkd://b'", nil, ""},
		"query and options differ":        {optionShadowed, mailLine, "mail: { dsn: 'doctrine://default?queue_name=a', options: { queue_name: b } }", nil, "11:84 transports.mail.options.queue_name"},
		"query and options agree":         {optionShadowed, mailLine, "mail: { dsn: 'doctrine://default?queue_name=a', options: { queue_name: a } }", nil, ""},
		"beanstalkd prefers options":      {optionShadowed, mailLine, "mail: { dsn: 'beanstalkd://b?ttr=100', options: { ttr: 200 } }", nil, "11:26 transports.mail.dsn (query ttr)"},
		"password in the DSN":             {credentialsWrittenOut, ordersDSN, "'amqp://user:password@rabbit/%2f/orders?auto_setup=0'", nil, "8:22 transports.orders.dsn"},
		"password in options":             {credentialsWrittenOut, mailLine, "mail: { dsn: 'redis://redis/mail', options: { auth: password } }", nil, "11:13 transports.mail.options"},
		"password behind a variable":      {credentialsWrittenOut, ordersDSN, "'amqp://user:%env(PASSWORD)%@rabbit/%2f/orders?auto_setup=0'", nil, ""},
	} {
		t.Run(test.rule.ID+": "+name, func(t *testing.T) {
			content, facts := sound, soundFacts
			if test.before != "" {
				content = change(t, test.before, test.after)
			}
			if test.facts != nil {
				facts = *test.facts
			}
			found := foundBy(test.rule, lintText(t, content, facts))
			if test.found == "" && len(found) > 0 || test.found != "" && !slices.Contains(found, test.found) {
				t.Errorf("found %q, want %q", found, test.found)
			}
		})
	}
}

// foundBy has the position and the key of each finding of a rule.
func foundBy(rule *Rule, findings []Finding) []string {
	var found []string
	for _, finding := range findings {
		if finding.Rule == rule.ID {
			found = append(found, fmt.Sprintf("%d:%d %s", finding.At.Line, finding.At.Column, finding.Key))
		}
	}
	return found
}

func TestEveryRuleIsExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range Rules() {
		if seen[rule.ID] {
			t.Errorf("%s is there twice", rule.ID)
		}
		seen[rule.ID] = true
		if rule.Summary == "" || rule.Why == "" || rule.Fix == "" || (rule.Severity != Error && rule.Severity != Warning) {
			t.Errorf("%s is not explained: %+v", rule.ID, rule)
		}
		if (rule.check == nil) != (rule == invalidConfiguration) {
			t.Errorf("%s has no check", rule.ID)
		}
	}
}

// A transport without a broker is handled by the relay of its outbox, so the outbox's
// failure transport counts, not its own.
func TestTheOutboxOfSyncNeedsTheFailureTransport(t *testing.T) {
	const content = `
framework:
    messenger:
        transports:
            now: { dsn: 'sync://', inbox: true, outbox: outbox, failure_transport: failed }
            outbox: 'doctrine://default?queue_name=outbox'
            failed: 'doctrine://default?queue_name=failed'
`
	findings := lintText(t, content, Facts{})
	if found := foundBy(failureTransportAbsent, findings); !slices.Equal(found, []string{"6:13 transports.outbox"}) {
		t.Errorf("without a failure transport: %q", found)
	}
	if found := foundBy(failureTransportUnbounded, findings); !slices.Equal(found, []string{"7:13 transports.failed"}) {
		t.Errorf("without a bound: %q", found)
	}
}

func TestAutoSetupIsFineOutsideOfProduction(t *testing.T) {
	configuration, err := messenger.Load([]messenger.Source{{Name: "m.yaml", Content: []byte(change(t, ordersDSN, "'amqp://rabbit/%2f/orders'"))}}, messenger.Options{Environment: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	if findings := Run(configuration, soundFacts); len(findings) > 0 {
		t.Errorf("found %+v", findings)
	}
}

func TestNothingIsFoundWhereMessengerIsOff(t *testing.T) {
	for _, content := range []string{"framework: { messenger: false }", "twig: ~"} {
		if findings := lintText(t, content, Facts{}); len(findings) > 0 {
			t.Errorf("%s: %+v", content, findings)
		}
	}
}
