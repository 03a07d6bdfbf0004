package messenger

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestLinesAreShownWithoutTheirSecrets(t *testing.T) {
	for line, want := range map[string]string{
		"dsn: 'amqp://user:password@rabbit/x'":                           "dsn: 'amqp://***@rabbit/x'",
		"dsn: 'amqp://user:p@ss@rabbit/x'":                               "dsn: 'amqp://***@rabbit/x'",
		"dsn: 'amqp://user:a/S3cr3tPassw0rd@rabbit/x'":                   "dsn: 'amqp://***@rabbit/x'",
		"dsn: amqp://user:p#s w?rd@rabbit:5672/x":                        "dsn: amqp://***@rabbit:5672/x",
		"dsn: 'amqp://user:it''s@rabbit/x'":                              "dsn: 'amqp://***@rabbit/x'",
		`orders: "amqp://user:p\x40ss\x40rabbit"`:                        `orders: "amqp://***"`,
		"dsn: 'amqp://user:begins-here":                                  "dsn: '***",
		"dsn: amqp://user:begins-here":                                   "dsn: amqp://***",
		"a: 'redis://a:one@h1,redis://b:two@h2'":                         "a: 'redis://***@h2'",
		"a: 'redis://h1:6379,redis://h2:6379/messages'":                  "a: 'redis://h1:6379,redis://h2:6379/messages'",
		"a: 'redis://h?auth=abc&stream=x'":                               "a: 'redis://h?auth=***&stream=x'",
		"a: 'x://h?credentials=a&api-key=b&sasl_%70assword=c&d'":         "a: 'x://h?credentials=***&api-key=***&sasl_%70assword=***&***'",
		"a: 'x://h?%71ueue_name=q&timeout=2#secret'":                     "a: 'x://h?%71ueue_name=q&timeout=2#***'",
		"a: 'x://h?queues[one][binding_keys][0]=key'":                    "a: 'x://h?queues[one][binding_keys][0]=key'",
		"a: 'redis:?host[b]&auth=abc'":                                   "a: 'redis:?host[b]&auth=***'",
		"a: '%env(DSN)%?queue_name=high&token=abc'":                      "a: '%env(DSN)%?queue_name=high&token=***'",
		"a: '%env(default:fallback:DSN)%'":                               "a: '%env(default:fallback:DSN)%'",
		"a: '%env(DSN)%secret'":                                          "a: '***'",
		"a: 'amqp://rabbit:%env(PORT)%/x'":                               "a: 'amqp://rabbit:%env(PORT)%/x'",
		"secret_key: abc # old: def":                                     "secret_key: *** # ***",
		`"password": "abc"`:                                              `"password": "***"`,
		"password: abc: def":                                             "password: ***: ***",
		"options: { pin: 1234, queue_name: high, lazy: yes }":            "options: { pin: ***, queue_name: high, lazy: yes }",
		"  mail: { dsn: 'redis://h', consumer: '%env(HOST)%' }":          "  mail: { dsn: 'redis://h', consumer: '%env(HOST)%' }",
		"  middleware: [validation, { doctrine_transaction: [ledger] }]": "  middleware: [validation, { doctrine_transaction: [ledger] }]",
		"service: amqp://u:p@h":                                          "service: amqp://***@h",
		"queue_name: 'user:p@h'":                                         "queue_name: '***'",
		"'amqp://u:p@h': ~":                                              "'***': ~",
		"redeliver-timeout: 30":                                          "redeliver-timeout: 30",
		"stream: authors":                                                "stream: authors",
		"when@prod:":                                                     "when@prod:",
	} {
		if got := MaskLine(line); got != want {
			t.Errorf("%s is shown as %s, want %s", line, got, want)
		}
	}
}

func TestShownNames(t *testing.T) {
	for text, shown := range map[string]bool{
		"failed": true, `App\Retry\Slow`: true, "%env(NAME)%": true, "!php/const App\\Retry::DELAY": true, "1m30.5s": true, "messages, group app:high": true,
		"amqp://h": false, "u:p@h": false, "%env(SCHEME)%://h": false, "redis:?auth=x": false, "a\x1b[31m": false,
	} {
		if (Shown(text) == text) != shown {
			t.Errorf("%q is shown as %q", text, Shown(text))
		}
	}
}

func TestNoPasswordOfADSNIsShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.StringMatching(`S3cr3t[a-z0-9/?#@:&=%+,.{}\[\] -]*`).Draw(t, "password")
		before := rapid.StringMatching(`[a-z/?&=@:]*`).Draw(t, "before")
		for _, line := range []string{
			"orders: 'amqp://user:" + before + password + "@rabbit/x'",
			"  { dsn: \"amqp://" + before + ":" + password + "@rabbit\", inbox: true }",
			"orders: 'x://rabbit/x?stream=y&token=" + password + "'",
			"password: '" + password + "'",
		} {
			if masked := MaskLine(line); strings.Contains(masked, "S3cr3t") {
				t.Errorf("%s is shown as %s", line, masked)
			}
		}
	})
}
