package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/messaginginbox/operator/internal/manifest"
	"github.com/messaginginbox/operator/internal/messenger"
)

func TestNoNameCanBreakOutOfTheManifest(t *testing.T) {
	content := `
framework:
    messenger:
        transports:
            "a\nspec: {}\n---\nkind: Secret": { dsn: "%env(X\nY)%", inbox: { connection: "c\nd: e" } }
            "\e[31mred": 'doctrine://default'
            "# comment": 'doctrine://default?queue_name=c'
            "yes": 'doctrine://default?queue_name=y'
            "1e3": 'doctrine://default?queue_name=n'
`
	configuration, err := messenger.Load([]messenger.Source{{Name: "m\n.yaml", Content: []byte(content)}}, messenger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Name: "shop", Secret: "db"}
	declarations, err := Declare(configuration, options)
	if err != nil {
		t.Fatal(err)
	}
	document, err := Document(configuration, declarations, options)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := EncodeDocument(document)
	if err != nil {
		t.Fatal(err)
	}
	inboxes, err := manifest.Parse("m", encoded)
	if err != nil || len(inboxes) != 1 {
		t.Fatalf("%d resources, %v in\n%s", len(inboxes), err, encoded)
	}
	var names []string
	for _, transport := range inboxes[0].Spec.Transports {
		names = append(names, string(transport.Name))
	}
	if want := []string{"a\nspec: {}\n---\nkind: Secret", "\x1b[31mred", "# comment", "yes", "1e3"}; !slices.Equal(names, want) {
		t.Errorf("the transports are %q, want %q", names, want)
	}
	if strings.ContainsRune(string(encoded), '\x1b') {
		t.Error("an escape reaches the terminal")
	}
}

func TestWhatNoManifestCanHold(t *testing.T) {
	many := strings.Builder{}
	for i := range 321 {
		fmt.Fprintf(&many, "t%d: 'sync://', ", i)
	}
	for transports, want := range map[string]string{
		many.String():                            "there are 321 transports; one resource holds 320",
		"'': 'sync://'":                          "the transport's name has 0 characters",
		strings.Repeat("x", 191) + ": 'sync://'": "the transport's name has 191 characters",
		"messaginginbox.drill: 'sync://'":        "is reserved for drills",
		"a: { dsn: 'amqp://h', retry_strategy: { multiplier: 1001 } }":         `retry_strategy.multiplier is "1001"`,
		"a: { dsn: 'amqp://h', retry_strategy: { max_retries: 1000001 } }":     `retry_strategy.max_retries is "1000001"`,
		"a: { dsn: 'amqp://h', retry_strategy: { delay: 99999999999999999 } }": `retry_strategy.delay is "99999999999999999"`,
		"a: 'doctrine://default?redeliver_timeout=soon'":                       `redeliver_timeout) is no number`,
		"a: { dsn: 'amqp://h', outbox: a }":                                    "names the transport itself",
		"a: { dsn: 'amqp://h', outbox: b }":                                    `names "b", which is not a declared transport`,
		"":                                                                     "messenger declares no transport",
	} {
		configuration, err := messenger.Load([]messenger.Source{{Name: "m.yaml", Content: []byte("framework: { messenger: { transports: {" + transports + "} } }")}}, messenger.Options{})
		if err != nil {
			t.Errorf("%.60s: %v", transports, err)
			continue
		}
		if _, err := Declare(configuration, Options{Name: "shop"}); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "m.yaml:1:") {
			t.Errorf("%.60s: %v, want %q with its place", transports, err, want)
		}
	}
}

func TestNoMessageQuotesAValueFromTheWrongField(t *testing.T) {
	const dsn, secret = "amqp://user:S3cr3t@rabbit/x", "S3cr3t"
	parameters := "parameters: { dsn: '" + dsn + "' }\n"
	for transports, want := range map[string]string{
		"a: { dsn: 'amqp://h', failure_transport: '" + dsn + "' }":                 "m.yaml:2:81: transports.a.failure_transport holds a DSN, where a name belongs",
		"a: { dsn: 'amqp://h', outbox: '%dsn%' }":                                  "transports.a.outbox holds a DSN, where a name belongs",
		"a: { dsn: 'amqp://h', inbox: { connection: '%dsn%' } }":                   "transports.a.inbox.connection holds a DSN, where a name belongs",
		"a: { dsn: 'amqp://h', retry_strategy: { service: '" + dsn + "' } }":       "transports.a.retry_strategy.service holds a DSN, where a name belongs",
		"a: { dsn: 'amqp://h', retry_strategy: { service: '%dsn%' } }":             "transports.a.retry_strategy.service holds a DSN, where a name belongs",
		"a: { dsn: 'amqp://h', retry_strategy: { delay: '%dsn%' } }":               "transports.a.retry_strategy.delay is not a number",
		"a: { dsn: 'amqp://h', retry_strategy: { max_retries: 'S3cr3t' } }":        "transports.a.retry_strategy.max_retries is not a number",
		"a: { dsn: 'amqp://h', retry_strategy: { '" + dsn + "': 1 } }":             "is no option of a retry strategy",
		"a: { dsn: 'doctrine://default', options: { redeliver_timeout: S3cr3t } }": "transports.a.options.redeliver_timeout is no number",
		"'" + dsn + "': ~": "m.yaml:2:40: the name of a transport holds a DSN",
		"a: { dsn: 'amqp://h', failure_transport: 'user:S3cr3t@h' }": `failure_transport names "***"`,
	} {
		source := messenger.Source{Name: "m.yaml", Content: []byte(parameters + "framework: { messenger: { transports: {" + transports + "} } }")}
		configuration, err := messenger.Load([]messenger.Source{source}, messenger.Options{})
		if err == nil {
			_, err = Declare(configuration, Options{Name: "shop"})
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "m.yaml:2:") {
			t.Errorf("%s: %v, want %q with its place", transports, err, want)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error shows the secret: %v", transports, err)
		}
	}
}

func TestOnlyFalseMeansPolling(t *testing.T) {
	for transport, polls := range map[string]bool{
		"{ dsn: 'doctrine://default', options: { use_notify: false } }":           true,
		"'doctrine://default?use_notify=false'":                                   true,
		"'doctrine://default?use_notify=0'":                                       true,
		"{ dsn: 'doctrine://default', options: { use_notify: '%env(bool:N)%' } }": true,
		"{ dsn: 'doctrine://default', options: { use_notify: 'false' } }":         false,
		"{ dsn: 'doctrine://default', options: { use_notify: '%env(N)%' } }":      false,
		"{ dsn: 'doctrine://default', options: { use_notify: 'no' } }":            false,
		"{ dsn: 'doctrine://default', options: { use_notify: true } }":            false,
		"{ dsn: 'doctrine://default', options: { use_notify: ~ } }":               false,
	} {
		_, declarations, _ := importText(t, "framework: { messenger: { transports: { a: "+transport+" } } }", map[string]string{"N": "false"})
		if field, _ := declarations[0].Field(checkDelayedInterval); (field.Value == "0s") != polls {
			t.Errorf("%s: the interval is %q, polling %t", transport, field.Value, polls)
		}
	}
}

func TestTransportsHaveSecretsOfTheirOwn(t *testing.T) {
	_, declarations, options := importText(t, `
framework:
    messenger:
        transports:
            a.b: 'redis://:password@redis/1'
            A_B: 'redis://:password@redis/2'
            database: 'redis://:password@redis/3'
`, nil)
	var names []string
	for _, declaration := range declarations {
		name, _ := declaration.Field("observe.urlSecretRef.name")
		names = append(names, name.Value)
	}
	if want := []string{"shop-a-b", "shop-a-b-2", "shop-database-2"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if commands := Secrets(declarations, options); len(commands) != 4 || slices.ContainsFunc(commands, func(command string) bool { return strings.Contains(command, "password@") }) {
		t.Errorf("got %q", commands)
	}
}
