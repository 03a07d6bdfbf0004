package messenger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLaterBlocksAreMergedOverEarlierOnes(t *testing.T) {
	configuration, err := Load([]Source{
		{Name: "a.yaml", Content: []byte(`
framework:
    messenger:
        failure_transport: failed
        transports:
            orders: 'amqp://a/%2f/orders'
            mail:
                dsn: 'redis://a/mail'
                options: { queues: { a: ~ }, heartbeat: 1, stream: old }
                retry_strategy: { delay: 5, max_retries: 9 }
        buses:
            command.bus: { middleware: [one, two] }
        routing:
            App\A: [orders, mail]
when@prod:
    framework:
        messenger:
            transports:
                mail: { options: { queues: { b: ~ } }, retry_strategy: { delay: 6 } }
when@dev:
    framework: { messenger: { failure_transport: never } }
`)},
		{Name: "b.yaml", Content: []byte(`
framework:
    messenger:
        failure_transport: ~
        transports:
            orders: { inbox: { connection: ledger } }
            late: 'sync://'
        buses:
            command.bus: { middleware: three }
        routing:
            App\A: { senders: [late] }
`)},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, transport := range configuration.Transports {
		names = append(names, transport.Name)
	}
	if want := []string{"orders", "mail", "late"}; !slices.Equal(names, want) {
		t.Errorf("the transports are %v, want %v", names, want)
	}
	orders, mail := configuration.Transport("orders"), configuration.Transport("mail")
	if got := orders.DSN.Text(); got != "amqp://a/%2f/orders" {
		t.Errorf("the DSN of orders, once a string and then a map without dsn, is %q", got)
	}
	if !orders.Inbox.IsTrue() || orders.InboxConnection.Text() != "ledger" || orders.InboxConnection.At.String() != "b.yaml:6:44" {
		t.Errorf("the inbox of orders is %+v on %+v", orders.Inbox, orders.InboxConnection)
	}
	if got := mail.Queues(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("the option queues is replaced as a whole, but is %v", got)
	}
	if got := mail.Setting("heartbeat").Text(); got != "1" {
		t.Errorf("other options stay, but heartbeat is %q", got)
	}
	if mail.Retry.Delay.Text() != "6" || mail.Retry.MaxRetries.Text() != "9" {
		t.Errorf("the retry strategy merges by key, but is %+v", mail.Retry)
	}
	if configuration.FailureTransport.IsSet() {
		t.Errorf("a later null unsets, but the failure transport is %q", configuration.FailureTransport.Text())
	}
	if bus := configuration.Buses[0]; len(bus.Middleware) != 1 || bus.Has("three") == nil {
		t.Errorf("middleware is replaced as a whole, but is %+v", bus.Middleware)
	}
	if senders := configuration.Routes[0].Senders; len(senders) != 1 || senders[0].Text() != "late" {
		t.Errorf("senders are replaced as a whole, but are %+v", senders)
	}
}

func TestSwitches(t *testing.T) {
	for content, want := range map[string]struct{ declared, enabled bool }{
		"messenger: false":                             {true, false},
		"messenger: true":                              {true, true},
		"messenger: ~":                                 {true, true},
		"messenger: { enabled: false }":                {true, false},
		"messenger: { transports: {} }":                {true, true},
		"secret: x":                                    {false, true},
		"messenger: { identity-stamps: { } }":          {true, true},
		"messenger: { transports: { a-b: 'sync://' }}": {true, true},
	} {
		configuration := load(t, "framework: { "+content+" }")
		if configuration.Declared != want.declared || configuration.Enabled != want.enabled {
			t.Errorf("%s: declared %t, enabled %t", content, configuration.Declared, configuration.Enabled)
		}
	}
}

func TestKeysAreNormalisedAsSymfonyDoes(t *testing.T) {
	got := normalize([]Entry{{Key: "max-retries"}, {Key: "a-b_c"}, {Key: "x-y"}, {Key: "x_y"}})
	var keys []string
	for _, entry := range got {
		keys = append(keys, entry.Key)
	}
	if want := []string{"max_retries", "a-b_c", "x-y", "x_y"}; !slices.Equal(keys, want) {
		t.Errorf("got %v, want %v", keys, want)
	}
}

func TestParametersAndVariables(t *testing.T) {
	const parameters = `
parameters:
    dsn: 'redis://%host%/events'
    host: redis
    percent: '100%%'
    number: 7
    list: [1]
    env(WITH_DEFAULT): 'amqp://default'
    env(NULL): ~
    nested: '%dsn%?stream=%env(STREAM)%'
`
	for value, want := range map[string]string{
		"%dsn%":                               "redis://redis/events",
		"x%percent%":                          "x100%",
		"%%env(A)%%":                          "%env(A)%",
		"%unknown%":                           "%unknown%",
		"%kernel.project_dir%/x":              "%kernel.project_dir%/x",
		"%env(GIVEN)%":                        "given",
		"%env(MISSING)%":                      "%env(MISSING)%",
		"%env(WITH_DEFAULT)%":                 "amqp://default",
		"a%env(GIVEN)%b%env(MISSING)%c":       "agivenb%env(MISSING)%c",
		"%env(int:FIVE)%":                     "5",
		"%env(float:HALF)%":                   "0.5",
		"%env(bool:FIVE)%":                    "true",
		"%env(not:bool:FIVE)%":                "false",
		"%env(trim:SPACED)%":                  "x y",
		"%env(urlencode:SPACED)%":             "%20x%20y%20",
		"%env(string:trim:SPACED)%":           "x y",
		"%env(base64:ENCODED)%":               "hello",
		"%env(int:MISSING)%":                  "%env(int:MISSING)%",
		"%env(file:GIVEN)%":                   "%env(file:GIVEN)%",
		"%env(require:GIVEN)%":                "%env(require:GIVEN)%",
		"%env(key:a:json:GIVEN)%":             "%env(key:a:json:GIVEN)%",
		"%env(default:host:MISSING)%":         "redis",
		"%env(default:host:GIVEN)%":           "given",
		"%env(default:host:EMPTY)%":           "redis",
		"%env(default:host:int:MISSING)%":     "redis",
		"%nested%":                            "redis://redis/events?stream=%env(STREAM)%",
		"%env(SCHEME)%://x?a=%env(int:FIVE)%": "%env(SCHEME)%://x?a=5",
	} {
		configuration, err := Load([]Source{{Name: "m.yaml", Content: []byte(parameters + "framework: { messenger: { transports: { a: { dsn: '" + value + "' } } } }")}}, Options{
			Variables: map[string]string{"GIVEN": "given", "FIVE": "5", "HALF": "0.5", "EMPTY": "", "SPACED": " x y ", "ENCODED": "aGVsbG8="},
		})
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if got := configuration.Transports[0].DSN.Value.String(); got != want {
			t.Errorf("%s is %q, want %q", value, got, want)
		}
	}
}

func TestNoVariableOfTheProcessIsLookedUp(t *testing.T) {
	t.Setenv("MESSENGER_TRANSPORT_DSN", "amqp://of-this-process")
	configuration := load(t, "framework: { messenger: { transports: { a: '%env(MESSENGER_TRANSPORT_DSN)%' } } }")
	if got := configuration.Transports[0].DSN; !got.IsUnknown() || !slices.Equal(got.Value.Variables(), []string{"MESSENGER_TRANSPORT_DSN"}) {
		t.Errorf("the DSN is %+v", got)
	}
}

func TestDefaultsOfVariablesAreReported(t *testing.T) {
	configuration := load(t, "parameters:\n  env(A): 'sync://'\nframework: { messenger: { transports: { a: '%env(A)%', b: '%env(default::B)%' } } }")
	if got := slices.Sorted(maps.Keys(configuration.DefaultedVariables)); !slices.Equal(got, []string{"A", "B"}) {
		t.Errorf("got %v", got)
	}
	if at := configuration.DefaultedVariables["A"].String(); at != "m.yaml:2:11" {
		t.Errorf("the default of A is at %s", at)
	}
	if configuration.Transport("b").DSN.IsSet() {
		t.Error("default without a parameter is null")
	}
}

func TestParametersThatGoWrong(t *testing.T) {
	growing := "parameters:\n  p0: 'xxxxxxxxxx'\n"
	for i := 1; i < 30; i++ {
		growing += fmt.Sprintf("  p%d: '%%p%d%%%%p%d%%'\n", i, i-1, i-1)
	}
	for name, test := range map[string]struct{ yaml, want string }{
		"a percent sign":      {"framework: { messenger: { transports: { t: 'amqp://h/%2f/x?a=%env(A)%' } } }", "m.yaml:1:44: what is between two percent signs here would be a parameter"},
		"a circle":            {"parameters: { a: '%b%', b: '%a%' }\nframework: { messenger: { transports: { t: '%a%' } } }", "refers to itself"},
		"a list inside text":  {"parameters: { a: [1] }\nframework: { messenger: { transports: { t: 'x%a%' } } }", "%a% is a list, which cannot stand inside a text"},
		"exponential growth":  {growing + "framework: { messenger: { transports: { t: '%p29%' } } }", "are longer than 64 KiB together"},
		"default without end": {"framework: { messenger: { transports: { t: '%env(default:a)%' } } }", "must be %env(default:PARAMETER:VARIABLE)%"},
		"too many processors": {"framework: { messenger: { transports: { t: '%env(" + strings.Repeat("trim:", 40) + "A)%' } } }", "chains more than 32 processors"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := loadError(t, test.yaml); !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %q", got, test.want)
			}
		})
	}
}

func TestNoErrorShowsAPartOfAPassword(t *testing.T) {
	if got := loadError(t, "framework: { messenger: { transports: { t: 'amqp://u:p%40hidden@h/%2f/x' } } }"); strings.Contains(got, "hidden") {
		t.Error(got)
	}
}

func TestDurations(t *testing.T) {
	for _, test := range []struct {
		text string
		unit time.Duration
		want time.Duration
		ok   bool
	}{
		{"3600", time.Second, time.Hour, true},
		{"60000", time.Millisecond, time.Minute, true},
		{"0.5", time.Second, 500 * time.Millisecond, true},
		{"0", time.Second, 0, true},
		{"-1", time.Second, 0, false},
		{"x", time.Second, 0, false},
		{"NaN", time.Second, 0, false},
		{"1e300", time.Second, 0, false},
		{"9223372036854775807", time.Second, 0, false},
		{"9223372036", time.Second, 9223372036 * time.Second, true},
	} {
		field := Field{Key: "k", Kind: Text, Value: literal(test.text)}
		if got, ok := field.Duration(test.unit); got != test.want || ok != test.ok {
			t.Errorf("%s * %s is %s, %t; want %s, %t", test.text, test.unit, got, ok, test.want, test.ok)
		}
	}
}

func TestConnectionsOfEntityManagers(t *testing.T) {
	configuration := load(t, `
doctrine:
    dbal: { default_connection: main }
    orm:
        default_entity_manager: app
        entity_managers: { app: { connection: main }, books: { connection: ledger }, plain: ~ }
`)
	for manager, want := range map[string]string{"": "main", "app": "main", "books": "ledger", "plain": "main"} {
		if got, known := configuration.Doctrine.ConnectionOf(manager); got != want || !known {
			t.Errorf("the connection of %q is %q, %t; want %q", manager, got, known, want)
		}
	}
	if _, known := configuration.Doctrine.ConnectionOf("nowhere"); known {
		t.Error("the connection of an undeclared manager is known")
	}
}
