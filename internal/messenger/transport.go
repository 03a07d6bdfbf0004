package messenger

import (
	"slices"
	"strings"

	"github.com/messaginginbox/operator/internal/redelivery"
)

// Transport is one declared transport after all merges.
type Transport struct {
	Name string
	// At is where the transport is first declared.
	At               Position
	DSN              Field
	FailureTransport Field
	Retry            RetryStrategy
	// Outbox is the name of the transport through which messages reach this one.
	Outbox Field
	// Inbox is on when handled messages are recorded.
	Inbox Field
	// InboxConnection is the Doctrine connection of the inbox; not set is the default one.
	InboxConnection Field
	// UnknownOptions is set when all options together come from one variable or tag.
	UnknownOptions Field

	// Address is the DSN, taken apart.
	Address DSN

	declared []Option // by options
	queried  []Option // by the DSN's query
	path     []Option // by the DSN's path
}

// Bus is one message bus.
type Bus struct {
	Name       string
	At         Position
	Middleware []Middleware
}

// Middleware is one middleware of a bus.
type Middleware struct {
	Name      string
	Arguments []*Value
	At        Position
}

// Has returns the middleware of a name; nil when the bus has none.
func (b *Bus) Has(name string) *Middleware {
	for i := range b.Middleware {
		if b.Middleware[i].Name == name {
			return &b.Middleware[i]
		}
	}
	return nil
}

// Argument is the middleware's first argument; "" when it has none.
func (m *Middleware) Argument() string {
	if len(m.Arguments) == 0 {
		return ""
	}
	return textOf(m.Arguments[0])
}

// Route sends a message class to transports.
type Route struct {
	Message string
	Senders []Field
	At      Position
}

// Option is one option of a transport, from its options, its DSN's query or its DSN's path.
type Option struct {
	Name  string
	Field Field
	// At is where the name stands; unknown when it came from the DSN.
	At Position
	// Nested is the whole value when it came from options and is a list or map.
	Nested  *Value
	fromDSN bool
	// Sub has the keys below the name when it came from a query: queues[orders].
	Sub []string
}

// Queried says that the option came from the DSN, where every value is a text.
func (o Option) Queried() bool { return o.fromDSN }

func (t *Transport) setDeclared(option Option) {
	for i := range t.declared {
		if t.declared[i].Name == option.Name {
			t.declared[i] = option
			return
		}
	}
	t.declared = append(t.declared, option)
}

// Type of the transport; Custom also when it is not known.
func (t *Transport) Type() redelivery.Type { return t.Address.Type }

// TypeKnown is false when the DSN, or its scheme, is not in the sources.
func (t *Transport) TypeKnown() bool { return t.Address.SchemeKnown }

// describe takes the DSN apart once all sources are merged.
func (t *Transport) describe() {
	t.Address = ParseDSN(t.DSN.Value)
	for _, option := range t.Address.Query {
		t.queried = append(t.queried, Option{Name: option.Name, Sub: option.Sub, fromDSN: true, Field: t.partOfDSN("query "+option.Name, option.Value)})
	}
	parts := strings.Split(strings.TrimRight(t.Address.Path.text, "/"), "/")
	switch t.Type() {
	case redelivery.Redis:
		if t.Address.Host.text == "" {
			return // the path is a socket
		}
		for i, name := range []string{"stream", "group", "consumer"} {
			if i+1 < len(parts) && parts[i+1] != "" {
				t.path = append(t.path, Option{Name: name, Field: t.partOfDSN("path", t.DSN.Value.of(parts[i+1]))})
			}
		}
	case redelivery.SQS:
		if last := parts[len(parts)-1]; last != "" {
			t.path = append(t.path, Option{Name: "queue_name", Field: t.partOfDSN("path", t.DSN.Value.of(last))})
		}
	}
}

func (t *Transport) partOfDSN(what string, value Expression) Field {
	return Field{Key: t.DSN.Key + " (" + what + ")", Value: value, Kind: Text, At: t.DSN.At}
}

// Option returns the option that counts: Symfony prefers the DSN's path to its query
// and its query to options, but for beanstalkd, where options win.
func (t *Transport) Option(name string) (Option, bool) {
	for _, origin := range t.origins() {
		// PHP keeps the last of a repeated option.
		for _, option := range slices.Backward(origin) {
			if option.Name == name && len(option.Sub) == 0 && option.Field.Kind != Null {
				return option, true
			}
		}
	}
	return Option{}, false
}

func (t *Transport) origins() [][]Option {
	if t.Type() == redelivery.Beanstalkd {
		return [][]Option{t.declared, t.queried}
	}
	return [][]Option{t.path, t.queried, t.declared}
}

// Shadowed returns, for each option that the DSN and options set differently, the one
// that counts and the one that does not.
func (t *Transport) Shadowed() [][2]Option {
	var shadowed [][2]Option
	for _, declared := range t.declared {
		if declared.Field.Kind == Null {
			continue
		}
		for _, queried := range slices.Concat(t.path, t.queried) {
			if queried.Name != declared.Name || len(queried.Sub) > 0 || queried.Field.Value.String() == declared.Field.Value.String() {
				continue
			}
			winner, _ := t.Option(declared.Name)
			loser := declared
			if winner.Field.Key == declared.Field.Key {
				loser = queried
			}
			shadowed = append(shadowed, [2]Option{winner, loser})
			break
		}
	}
	return shadowed
}

// Setting is the field of an option; one that is not set has no key.
func (t *Transport) Setting(name string) Field {
	option, _ := t.Option(name)
	return option.Field
}

// HasCredentials says that the DSN or an option carries a user, a password or a key.
func (t *Transport) HasCredentials() bool {
	return t.Address.Credentials || slices.ContainsFunc(t.declared, func(option Option) bool {
		return IsSecretOption(option.Name) && option.Field.IsSet()
	})
}

// Secrets are the credentials that are written out in the sources; never show them.
func (t *Transport) Secrets() []string {
	secrets := slices.Clone(t.Address.Secrets)
	for _, option := range t.declared {
		if IsSecretOption(option.Name) {
			secrets = append(secrets, option.Field.Value.literals()...)
		}
	}
	return secrets
}
