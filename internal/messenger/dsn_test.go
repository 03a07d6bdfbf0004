package messenger

import (
	"slices"
	"testing"

	"github.com/messaginginbox/operator/internal/redelivery"
)

func transportOf(t *testing.T, dsn, options string) *Transport {
	t.Helper()
	return load(t, "framework: { messenger: { transports: { a: { dsn: '"+dsn+"', options: {"+options+"} } } } }").Transports[0]
}

func TestTypesFollowFromTheScheme(t *testing.T) {
	for dsn, want := range map[string]struct {
		kind  redelivery.Type
		known bool
	}{
		"doctrine://default":                        {redelivery.Doctrine, true},
		"redis://localhost":                         {redelivery.Redis, true},
		"rediss://localhost":                        {redelivery.Redis, true},
		"redis:///run/redis.sock":                   {redelivery.Redis, true},
		"redis:?host[a]&host[b]":                    {redelivery.Redis, true},
		"valkey://localhost":                        {redelivery.Redis, true},
		"valkeys://localhost":                       {redelivery.Redis, true},
		"amqp://localhost":                          {redelivery.AMQP, true},
		"amqps://localhost":                         {redelivery.AMQP, true},
		"sqs://default/q":                           {redelivery.SQS, true},
		"https://sqs.eu-west-3.amazonaws.com/123/q": {redelivery.SQS, true},
		"https://example.org/q":                     {redelivery.Custom, true},
		"beanstalkd://localhost":                    {redelivery.Beanstalkd, true},
		"sync://":                                   {redelivery.Sync, true},
		"in-memory://":                              {redelivery.InMemory, true},
		"in-memory://?serialize=1":                  {redelivery.InMemory, true},
		"AMQP://localhost":                          {redelivery.Custom, true},
		"kafka://broker":                            {redelivery.Custom, true},
		"gps:":                                      {redelivery.Custom, true},
		"schedule://default":                        {redelivery.Custom, true},
		"%env(DSN)%":                                {redelivery.Custom, false},
		"%env(DSN)%?queue_name=a:b":                 {redelivery.Custom, false},
		"%env(SCHEME)%://host":                      {redelivery.Custom, false},
		"no scheme at all":                          {redelivery.Custom, false},
		"amqp://%env(USER)%@host":                   {redelivery.AMQP, true},
	} {
		transport := transportOf(t, dsn, "")
		if transport.Type() != want.kind || transport.TypeKnown() != want.known {
			t.Errorf("%s is %s (known: %t), want %s (%t)", dsn, transport.Type(), transport.TypeKnown(), want.kind, want.known)
		}
	}
}

func TestWhichOptionCounts(t *testing.T) {
	for _, test := range []struct{ dsn, options, name, want, key string }{
		{"doctrine://default?redeliver_timeout=1", "redeliver_timeout: 2", "redeliver_timeout", "1", "transports.a.dsn (query redeliver_timeout)"},
		{"redis://h?redeliver_timeout=1", "redeliver_timeout: 2", "redeliver_timeout", "1", "transports.a.dsn (query redeliver_timeout)"},
		{"amqp://h?heartbeat=1", "heartbeat: 2", "heartbeat", "1", "transports.a.dsn (query heartbeat)"},
		{"sqs://default/q?visibility_timeout=1", "visibility_timeout: 2", "visibility_timeout", "1", "transports.a.dsn (query visibility_timeout)"},
		{"beanstalkd://h?ttr=1", "ttr: 2", "ttr", "2", "transports.a.options.ttr"},
		{"beanstalkd://h?ttr=1", "ttr: ~", "ttr", "1", "transports.a.dsn (query ttr)"},
		{"doctrine://default", "redeliver_timeout: 2", "redeliver_timeout", "2", "transports.a.options.redeliver_timeout"},
		{"doctrine://default?queue_name=a&queue_name=b", "", "queue_name", "b", "transports.a.dsn (query queue_name)"},
		{"doctrine://default?queue.name=a", "", "queue_name", "a", "transports.a.dsn (query queue_name)"},
		{"doctrine://default?queue_name=a%20b+c", "", "queue_name", "a b c", "transports.a.dsn (query queue_name)"},
		{"doctrine://default?queue_name=a%zz", "", "queue_name", "a%zz", "transports.a.dsn (query queue_name)"},
		{"redis://h/s/g/c?stream=other", "stream: third", "stream", "s", "transports.a.dsn (path)"},
		{"redis://h/s/g/c", "", "consumer", "c", "transports.a.dsn (path)"},
		{"redis://h/s", "group: g", "group", "g", "transports.a.options.group"},
		{"redis:///run/redis.sock?stream=s", "", "stream", "s", "transports.a.dsn (query stream)"},
		{"redis://h1/s,redis://h2/s,h3/t?group=g", "", "stream", "t", "transports.a.dsn (path)"},
		{"sqs://default/account/q?queue_name=other", "", "queue_name", "q", "transports.a.dsn (path)"},
		{"redis://h/m?consumer=%env(HOSTNAME)%", "", "consumer", "%env(HOSTNAME)%", "transports.a.dsn (query consumer)"},
		{"doctrine://default?queue_name=a#fragment", "", "queue_name", "a", "transports.a.dsn (query queue_name)"},
	} {
		option, ok := transportOf(t, test.dsn, test.options).Option(test.name)
		if !ok || option.Value() != test.want || option.Field.Key != test.key {
			t.Errorf("%s with {%s}: %s is %q from %s, want %q from %s", test.dsn, test.options, test.name, option.Value(), option.Field.Key, test.want, test.key)
		}
	}
	if _, ok := transportOf(t, "redis:///run/redis.sock", "").Option("stream"); ok {
		t.Error("the path of a socket is no stream")
	}
}

func TestDestinations(t *testing.T) {
	for _, test := range []struct {
		dsn, options string
		want         []Destination
	}{
		{"doctrine://default", "", []Destination{{"default", "messenger_messages, queue_name default"}}},
		{"doctrine://other?queue_name=q", "table_name: t", []Destination{{"other", "t, queue_name q"}}},
		{"redis://user:password@h:6379/s/g", "", []Destination{{"h:6379", "s, group g"}}},
		{"redis://a:7000,redis://u:p@b:7001/s/g", "", []Destination{{"a:7000,b:7001", "s, group g"}}},
		{"redis://a,b:7001/s/g", "", []Destination{{"a:6379,b:7001", "s, group g"}}},
		{"valkeys://a,valkeys://b/s", "", []Destination{{"a:6379,b:6379", "s, group symfony"}}},
		{"redis:///run/redis.sock", "", []Destination{{"/run/redis.sock", "messages, group symfony"}}},
		{"amqp://u:p@h/%2f/ex", "", []Destination{{"h:5672/", "ex"}}},
		{"amqp://h", "", []Destination{{"h:5672/", "messages"}}},
		{"amqp://h/shop/ex", "exchange: { name: named }", []Destination{{"h:5672shop", "named"}}},
		{"amqp://h/%2f/ex", "queues: { one: ~, two: ~ }", []Destination{{"h:5672/", "one"}, {"h:5672/", "two"}}},
		{"amqp://h/%2f/ex?queues[one][binding_keys][0]=x", "", []Destination{{"h:5672/", "one"}}},
		{"amqp://h/%2f/ex?exchange[name]=queried", "exchange: { name: named }", []Destination{{"h:5672/", "queried"}}},
		{"beanstalkd://h", "tube_name: t", []Destination{{"h:11300", "t"}}},
		{"sqs://default/q", "", []Destination{{"default", "q"}}},
		{"%env(DSN)%", "queue_name: q", []Destination{{"%env(DSN)%", "queue_name q"}}},
		{"%env(DSN)%?queue_name=q", "", []Destination{{"%env(DSN)%", "queue_name q"}}},
		{"sync://", "", nil},
		{"amqp://", "", []Destination{{"localhost:5672/", "messages"}}},
		{"amqps://MQ", "", []Destination{{"mq:5671/", "messages"}}},
		{"redis://h", "", []Destination{{"h:6379", "messages, group symfony"}}},
		{"redis://h1,redis://h2:6380/messages/symfony", "", []Destination{{"h1:6379,h2:6380", "messages, group symfony"}}},
		{"redis://[::1]/messages?dbindex=2", "", []Destination{{"[::1]:6379 database 2", "messages, group symfony"}}},
		{"doctrine://", "", []Destination{{"default", "messenger_messages, queue_name default"}}},
		{"amqp://%env(HOST)%/%2f/x", "", []Destination{{"%env(HOST)%/", "x"}}},
		{"amqp://user:a/b/S3cr3t@h/%2f/x", "", []Destination{{"h:5672/", "x"}}},
	} {
		if got := transportOf(t, test.dsn, test.options).Destinations(); !slices.Equal(got, test.want) {
			t.Errorf("%s with {%s}: %q, want %q", test.dsn, test.options, got, test.want)
		}
	}
}

func TestCredentialsAreRecognised(t *testing.T) {
	for _, test := range []struct {
		dsn, options string
		credentials  bool
		secrets      []string
	}{
		{"amqp://rabbit/%2f/orders", "", false, nil},
		{"amqp://user:pa%24s@rabbit", "", true, []string{"pa%24s"}},
		{"redis://secret@redis", "", true, []string{"secret"}},
		{"amqp://%env(USER)%:%env(PASSWORD)%@rabbit", "", true, nil},
		{"amqp://user:prefix%env(PASSWORD)%@rabbit", "", true, []string{"prefix"}},
		{"amqp://user:a/b?c#d@rabbit/%2f/orders", "", true, []string{"a/b?c#d"}},
		{"redis://redis:6379/orders@eu", "", false, nil},
		{"redis://redis?auth=sec%20ret", "", true, []string{"sec ret", "sec%20ret"}},
		{"sqs://default/q?access_key=key&secret_key=sec", "", true, []string{"key", "key", "sec", "sec"}},
		{"redis://redis", "auth: hidden", true, []string{"hidden"}},
		{"redis://a:one@h1,redis://b:two@h2", "", true, []string{"one", "two"}},
	} {
		transport := transportOf(t, test.dsn, test.options)
		if got := transport.Secrets(); transport.HasCredentials() != test.credentials || !slices.Equal(got, test.secrets) {
			t.Errorf("%s with {%s}: %t %q, want %t %q", test.dsn, test.options, transport.HasCredentials(), got, test.credentials, test.secrets)
		}
	}
}
