package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/messenger"
	"github.com/messaginginbox/operator/internal/redelivery"
)

const (
	maxTransports    = 320
	maxTransportName = 190
)

// Declare says what the configuration declares of each transport. An error is
// something that Symfony or the API server would refuse.
func Declare(configuration *messenger.Configuration, options Options) ([]Declaration, error) {
	if err := importable(configuration); err != nil {
		return nil, err
	}
	connection, err := inboxConnection(configuration, options.Connection)
	if err != nil {
		return nil, err
	}
	declarations := make([]Declaration, 0, len(configuration.Transports))
	secrets := map[string]bool{options.Secret: true}
	for _, transport := range configuration.Transports {
		declaring := declaring{configuration: configuration, transport: transport, connection: connection, options: options, secrets: secrets}
		declaration, err := declaring.declare()
		if err != nil {
			return nil, err
		}
		declarations = append(declarations, declaration)
	}
	return declarations, nil
}

func importable(configuration *messenger.Configuration) error {
	switch {
	case !configuration.Declared:
		return fmt.Errorf("none of %s holds framework.messenger for the environment %s", sourceNames(configuration), configuration.Environment)
	case !configuration.Enabled:
		return &messenger.Error{At: configuration.At, Message: "messenger is off here: there is nothing to import"}
	case len(configuration.Transports) == 0:
		return &messenger.Error{At: configuration.At, Message: "messenger declares no transport: nothing can be redelivered, so there is nothing to import"}
	case len(configuration.Transports) > maxTransports:
		return &messenger.Error{At: configuration.Transports[maxTransports].At, Message: fmt.Sprintf("there are %d transports; one resource holds %d", len(configuration.Transports), maxTransports)}
	}
	var misspelt messenger.Errors
	for _, key := range configuration.Unrecognized {
		if key.Suggestion != "" {
			misspelt = append(misspelt, &messenger.Error{At: key.At, Message: key.String()})
		}
	}
	if len(misspelt) > 0 {
		return misspelt
	}
	return nil
}

func sourceNames(configuration *messenger.Configuration) string {
	names := make([]string, 0, len(configuration.Sources))
	for _, source := range configuration.Sources {
		names = append(names, source.Name)
	}
	return strings.Join(names, ", ")
}

// inboxConnection is the one connection whose inbox table the resource is about.
func inboxConnection(configuration *messenger.Configuration, wanted string) (string, error) {
	if wanted != "" {
		return wanted, nil
	}
	var connections, users []string
	for _, transport := range configuration.Transports {
		if !transport.Inbox.IsTrue() {
			continue
		}
		if name := connectionOf(configuration, transport); !slices.Contains(connections, name) {
			connections = append(connections, name)
			users = append(users, fmt.Sprintf("%s (%s, %s)", name, transport.Name, transport.Inbox.At))
		}
	}
	if len(connections) > 1 {
		return "", fmt.Errorf("the inboxes are in more than one database: connections %s; import each with --connection and a --name of its own", strings.Join(users, ", "))
	}
	return strings.Join(connections, ""), nil
}

func connectionOf(configuration *messenger.Configuration, transport *messenger.Transport) string {
	return cmp.Or(transport.InboxConnection.Value.String(), configuration.Doctrine.DefaultConnection())
}

// declaring collects the facts of one transport.
type declaring struct {
	configuration *messenger.Configuration
	transport     *messenger.Transport
	connection    string
	options       Options
	secrets       map[string]bool // the names that are taken
	result        Declaration
	unbounded     []string // what keeps the window from being known
}

func (d *declaring) declare() (Declaration, error) {
	transport := d.transport
	d.result = Declaration{Name: transport.Name, At: transport.At}
	switch {
	case transport.Name == "" || len([]rune(transport.Name)) > maxTransportName:
		return d.result, &messenger.Error{At: transport.At, Message: fmt.Sprintf("the transport's name has %d characters; a resource holds 1 to %d", len([]rune(transport.Name)), maxTransportName)}
	case transport.Name == v1alpha1.ReservedTransportName:
		return d.result, &messenger.Error{At: transport.At, Message: "the transport name " + transport.Name + " is reserved for drills"}
	}
	d.declareType()
	d.declareInbox()
	if err := d.declareTargets(); err != nil {
		return d.result, err
	}
	if err := d.declareRedelivery(); err != nil {
		return d.result, err
	}
	if isFailureTransport(d.configuration, transport) && !slices.Contains([]redelivery.Type{redelivery.Sync, redelivery.InMemory}, transport.Type()) {
		d.note("redelivery.maxAge", transport.At, "how long may a failed message stay here, from its first entry? Nothing in Symfony bounds it, and without a bound no proof can be pruned")
	}
	d.declareWindow()
	d.declareObserve()
	return d.result, nil
}

func (d *declaring) set(path, value string, kind Kind, source messenger.Field) {
	d.result.Fields = append(d.result.Fields, Field{Path: path, Value: value, Kind: kind, At: source.At, Key: source.Key})
}

func (d *declaring) note(field string, at messenger.Position, format string, arguments ...any) {
	d.result.Notes = append(d.result.Notes, Note{Transport: d.transport.Name, Field: field, Message: fmt.Sprintf(format, arguments...), At: at})
}

// unknown notes a value that only the application's environment knows.
func (d *declaring) unknown(field string, value messenger.Field) {
	if variables := value.Value.Variables(); len(variables) > 0 {
		d.note(field, value.At, "%s is behind %s: import again with --set-env or --env-file, or declare it", value.Key, strings.Join(variables, ", "))
		return
	}
	d.note(field, value.At, "%s is %s, which these files do not explain: declare it", value.Key, messenger.Shown(value.Value.String()))
}

func (d *declaring) declareType() {
	transport := d.transport
	source := transport.DSN
	if !source.IsSet() {
		source = messenger.Field{Key: "transports." + transport.Name, At: transport.At}
	}
	d.set("type", string(transport.Type()), Text, source)
	switch {
	case !transport.DSN.IsSet():
		d.note("type", transport.At, "the transport has no DSN in these files, so its broker is not known")
	case !transport.TypeKnown() && len(transport.DSN.Value.Variables()) > 0:
		d.note("type", source.At, "the scheme of the DSN is behind %s: import again with --set-env or --env-file, or declare the type", strings.Join(transport.DSN.Value.Variables(), ", "))
	case !transport.TypeKnown():
		d.note("type", source.At, "the DSN has no scheme in these files, so its broker is not known")
	case transport.Type() != redelivery.Custom:
		return
	}
	d.unbounded = append(d.unbounded, "the broker")
}

func (d *declaring) declareInbox() {
	transport := d.transport
	inbox := transport.Inbox
	switch {
	case inbox.IsUnknown():
		d.set("inbox", "true", Bool, inbox)
		d.unknown("inbox", inbox)
	case inbox.IsTrue() && connectionOf(d.configuration, transport) != d.connection:
		d.set("inbox", "false", Bool, transport.InboxConnection)
	case inbox.IsSet():
		d.set("inbox", fmt.Sprint(inbox.IsTrue()), Bool, inbox)
	default:
		d.set("inbox", "false", Bool, messenger.Field{Key: "transports." + transport.Name + " (no inbox)", At: transport.At})
	}
}

// declareTargets names the outbox and the failure transport.
func (d *declaring) declareTargets() error {
	for _, target := range []struct {
		path  string
		field messenger.Field
	}{
		{"outbox", d.transport.Outbox},
		{"failureTransport", d.configuration.FailureTransportOf(d.transport)},
	} {
		name := target.field.Text()
		switch {
		case !target.field.IsSet():
		case target.field.IsUnknown():
			d.unknown(target.path, target.field)
			d.unbounded = append(d.unbounded, "the "+target.path)
		case name == d.transport.Name && target.path == "failureTransport":
			// The global one stands for itself too; Symfony does not send a failed message there again.
		case name == d.transport.Name:
			return &messenger.Error{At: target.field.At, Message: fmt.Sprintf("%s names the transport itself", target.field.Key)}
		case d.configuration.Transport(name) == nil:
			return &messenger.Error{At: target.field.At, Message: fmt.Sprintf("%s names %q, which is not a declared transport", target.field.Key, messenger.Shown(name))}
		default:
			d.set(target.path, name, Text, target.field)
		}
	}
	return nil
}

func isFailureTransport(configuration *messenger.Configuration, transport *messenger.Transport) bool {
	return slices.ContainsFunc(configuration.Transports, func(other *messenger.Transport) bool {
		return other != transport && configuration.FailureTransportOf(other).Text() == transport.Name
	})
}

// declareWindow keeps the window open when something that it depends on is not known.
func (d *declaring) declareWindow() {
	if len(d.unbounded) == 0 {
		return
	}
	source := d.transport.DSN
	if !source.IsSet() {
		source = messenger.Field{Key: "transports." + d.transport.Name, At: d.transport.At}
	}
	at := slices.IndexFunc(d.result.Fields, func(field Field) bool { return strings.HasPrefix(field.Path, "redelivery.") })
	if at < 0 {
		at = len(d.result.Fields)
	}
	field := Field{Path: "redelivery.window", Value: Unbounded, At: source.At, Key: source.Key}
	d.result.Fields = slices.Insert(d.result.Fields, at, field)
	d.note("redelivery.window", source.At, "it stands at its largest, so that no proof is pruned, since this is not known: %s. Declare how late a message can come back, or declare what is missing and delete the window", strings.Join(d.unbounded, ", "))
}
