package messenger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestUnrecognizedKeys(t *testing.T) {
	for name, test := range map[string]struct {
		messenger string
		want      []string
	}{
		"all that Symfony knows": {messenger: "{ enabled: true, default_bus: b, failure_transport: ~, identity-stamps: true, reject_redelivered_messages: true, reset_on_message: true, routing: {}, serializer: {}, stop_worker_on_signals: [], transports: { t: { claim-check: {}, dsn: x, failure_transport: ~, inbox: { enabled: true, connection: c }, options: {}, outbox: ~, priority: 1, rate_limiter: r, retry_strategy: ~, serializer: s, sign: true } }, buses: { b: { default_middleware: {}, message: x, messages: [], middleware: [], unwrap_exceptions: true } } }"},
		"a letter is missing":    {messenger: "{ transports: { orders: { inbx: true } } }", want: []string{"m.yaml:1:51: transports.orders.inbx is no key of a transport that Symfony knows: did you mean inbox?"}},
		"the singular":           {messenger: "{ transport: {} }", want: []string{"m.yaml:1:27: transport is no key of messenger that Symfony knows: did you mean transports?"}},
		"with dashes":            {messenger: "{ transports: { orders: { failure-transprot: x } } }", want: []string{"m.yaml:1:51: transports.orders.failure_transprot is no key of a transport that Symfony knows: did you mean failure_transport?"}},
		"like nothing":           {messenger: "{ transports: { orders: { lease: 5 } } }", want: []string{"m.yaml:1:51: transports.orders.lease is no key of a transport that Symfony knows"}},
		"of a bus":               {messenger: "{ buses: { b: { midleware: [] } } }", want: []string{"m.yaml:1:41: buses.b.midleware is no key of a bus that Symfony knows: did you mean middleware?"}},
		"of an inbox":            {messenger: "{ transports: { orders: { inbox: { connectoin: x, lease: 5 } } } }", want: []string{"m.yaml:1:60: transports.orders.inbox.connectoin is no key of an inbox that Symfony knows: did you mean connection?"}},
		"a DSN that slipped":     {messenger: "{ 'amqp://u:secret@h': {} }", want: []string{"m.yaml:1:27: *** is no key of messenger that Symfony knows"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, key := range load(t, "framework: { messenger: "+test.messenger+" }").Unrecognized {
				got = append(got, fmt.Sprintf("%s: %s", key.At, key))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestUnrecognizedOptions(t *testing.T) {
	for name, test := range map[string]struct {
		transport string
		want      []string
	}{
		"all of doctrine":         {transport: "{ dsn: 'doctrine://default?table_name=a&queue_name=b&redeliver_timeout=1', options: { auto_setup: false, use_notify: false, check_delayed_interval: 1, get_notify_timeout: 1 } }"},
		"sentinels of redis":      {transport: "'redis:?host[a:1]&host[b:2]&sentinel_master=m'"},
		"below an option of amqp": {transport: "{ dsn: 'amqp://?queues[q][binding_keys][]=k', options: { exchange: { name: e, bindings: {} }, queues: { q: { arguments: { x-max-priority: 5 } } }, delay: { anything: 1 } } }"},
		"queues of amqp off":      {transport: "{ dsn: 'amqp://', options: { queues: false } }"},
		"another package's":       {transport: "{ dsn: 'kafka://h?anything=1', options: { more: 1 } }"},
		"a scheme behind a variable": {
			transport: "{ dsn: '%env(DSN)%?anything=1', options: { more: 1 } }",
		},
		"a name behind a variable": {transport: "'amqp://h/%%2f/x?%env(NAME)%=1'"},
		"all behind a variable":    {transport: "{ dsn: 'amqp://', options: '%env(json:OPTIONS)%' }"},
		"misspelt in the DSN":      {transport: "'amqp://h?hearbeat=60'", want: []string{"m.yaml:1:45: transports.t (query hearbeat) is no option of amqp that Symfony knows: did you mean heartbeat?"}},
		"misspelt in options":      {transport: "{ dsn: 'redis://h', options: { redelivery_timeout: 60 } }", want: []string{"m.yaml:1:76: transports.t.options.redelivery_timeout is no option of redis that Symfony knows: did you mean redeliver_timeout?"}},
		"of another type":          {transport: "{ dsn: 'sqs://default/q', options: { redeliver_timeout: 60 } }", want: []string{"m.yaml:1:82: transports.t.options.redeliver_timeout is no option of sqs that Symfony knows"}},
		"a name that may be more":  {transport: "'amqp://h?h$nter2=1'", want: []string{"m.yaml:1:45: transports.t (query ***) is no option of amqp that Symfony knows"}},
		"of an exchange":           {transport: "'amqp://?exchange[nme]=e'", want: []string{"m.yaml:1:45: transports.t (query exchange[nme]) is no option of an exchange that Symfony knows: did you mean name?"}},
		"of a queue":               {transport: "{ dsn: 'amqp://', options: { queues: { q: { binding_key: [k] } } } }", want: []string{"m.yaml:1:89: transports.t.options.queues.q.binding_key is no option of a queue that Symfony knows: did you mean binding_keys?"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, option := range load(t, "framework: { messenger: { transports: { t:  "+test.transport+" } } }").Transports[0].Unrecognized() {
				got = append(got, fmt.Sprintf("%s: %s", option.At, option))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOptionsThatAreNoNumbers(t *testing.T) {
	for transport, want := range map[string]string{
		"{ dsn: 'amqp://', options: { heartbeat: '60' } }":                      "",
		"{ dsn: 'amqp://', options: { heartbeat: 60, read_timeout: 0.5 } }":     "",
		"{ dsn: 'amqp://', options: { heartbeat: ~ } }":                         "",
		"{ dsn: 'amqp://', options: { heartbeat: '%env(int:HEARTBEAT)%' } }":    "",
		"{ dsn: 'amqp://', options: { heartbeat: !php/const App\\HEARTBEAT } }": "",
		"{ dsn: 'kafka://h', options: { heartbeat: abc } }":                     "",
		"{ dsn: 'amqp://', options: { heartbeat: abc } }":                       "transports.t.options.heartbeat",
		"{ dsn: 'amqp://', options: { heartbeat: true } }":                      "transports.t.options.heartbeat",
		"{ dsn: 'amqp://', options: { heartbeat: [60] } }":                      "transports.t.options.heartbeat",
		"{ dsn: 'amqp://', options: { heartbeat: -1 } }":                        "transports.t.options.heartbeat",
		"'doctrine://default?redeliver_timeout=1h'":                             "transports.t (query redeliver_timeout)",
		"'doctrine://default?redeliver_timeout='":                               "transports.t (query redeliver_timeout)",
		"'beanstalkd://h?ttr=NaN'":                                              "transports.t (query ttr)",
	} {
		var got []string
		for _, option := range load(t, "framework: { messenger: { transports: { t: "+transport+" } } }").Transports[0].NotNumbers() {
			got = append(got, option.Field.Key)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %q, want %q", transport, got, want)
		}
	}
}

// Symfony's tree has booleans here: a string is refused, however true it looks.
func TestSwitchesAreBooleans(t *testing.T) {
	transport := func(inbox string) string { return "transports: { t: { dsn: 'amqp://', inbox: " + inbox + " } }" }
	for content, want := range map[string]string{
		transport("true"):                       "",
		transport("False"):                      "",
		transport("~"):                          "",
		transport("{ enabled: true }"):          "",
		transport("'%env(bool:INBOX)%'"):        "",
		transport("'%env(INBOX)%'"):             "",
		transport("'%env(DEFAULTED)%'"):         "",
		transport("'%parameter%'"):              "",
		transport("!php/const App\\INBOX"):      "",
		transport("yes"):                        "transports.t.inbox is a string",
		transport("on"):                         "transports.t.inbox is a string",
		transport(`"true"`):                     "transports.t.inbox is a string",
		transport("1"):                          "transports.t.inbox is a number",
		transport("[]"):                         "transports.t.inbox is a list",
		transport("'%text%'"):                   "transports.t.inbox is a string",
		transport("{ enabled: 'false' }"):       "transports.t.inbox.enabled is a string",
		"identity_stamps: 'true'":               "identity_stamps is a string",
		"enabled: off":                          "enabled is a string",
		"identity_stamps: '%env(bool:STAMPS)%'": "",
	} {
		_, err := Load([]Source{{Name: "m.yaml", Content: []byte("parameters: { env(DEFAULTED): 'yes', parameter: true, text: 'yes' }\nframework: { messenger: { " + content + " } }")}}, Options{})
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", content, err, want)
		}
	}
}

func TestARetryStrategyIsAlsoTheNameOfAService(t *testing.T) {
	retry := load(t, "framework: { messenger: { transports: { t: { dsn: 'amqp://', retry_strategy: app.retries } } } }").Transports[0].Retry
	if retry.Service.Text() != "app.retries" || retry.Service.Key != "transports.t.retry_strategy" {
		t.Errorf("the service is %+v", retry.Service)
	}
}
