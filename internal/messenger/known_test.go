package messenger

import "testing"

func TestTheLoginOfAWhollyKnownDSN(t *testing.T) {
	for dsn, want := range map[string][2]string{
		"amqp://app:p%40ss@mq:5672/%2f/orders":       {"app", "p@ss"},
		"redis://hunter2@cache:6379/orders":          {"", "hunter2"},
		"redis://app:a+b@cache:6379":                 {"app", "a+b"},
		"redis://a:6379,redis://app:later@b:6379/in": {"app", "later"},
		"doctrine://default":                         {"", ""},
		"amqp://guest:not%zzescaped@mq":              {"guest", "not%zzescaped"},
	} {
		transport := NewTransport("orders", dsn)
		if user, password := transport.Address.Login(); user != want[0] || password != want[1] {
			t.Errorf("%s: login %q %q, want %q", dsn, user, password, want)
		}
	}
}
