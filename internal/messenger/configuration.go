package messenger

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// Options say for which environment the configuration is read.
type Options struct {
	// Environment is the kernel's environment, whose when@ blocks count. Default: prod.
	Environment string
	// Variables are the environment variables that are known; no others are looked up.
	Variables map[string]string
}

// Configuration is what the sources declare together.
type Configuration struct {
	Sources     []Source
	Environment string

	// Declared says that a source holds framework.messenger, and At where the first does.
	Declared bool
	At       Position
	// Enabled is false after messenger: false.
	Enabled bool

	IdentityStamps   Field
	DefaultBus       Field
	FailureTransport Field
	Transports       []*Transport
	Buses            []*Bus
	Routes           []Route
	Doctrine         Doctrine

	// Unrecognized are the keys of Messenger, its transports and buses that Symfony refuses.
	Unrecognized []Unrecognized
	// Imports are other files that the sources import; they are never read.
	Imports []Field
	// DefaultedVariables are variables that nobody gave, and where the default that was used stands.
	DefaultedVariables map[string]Position
}

// Field is one scalar of the configuration.
type Field struct {
	// Key is its path below framework.messenger, such as transports.orders.dsn; "" when it is not set.
	Key   string
	Value Expression
	Kind  Kind
	At    Position
}

// IsSet says whether the field has a value; null is none.
func (f Field) IsSet() bool { return f.Key != "" && f.Kind != Null }

// Text is the field's known text; "" when it is not set or not known.
func (f Field) Text() string {
	text, known := f.Value.Known()
	if !known || !f.IsSet() || f.Kind == Opaque {
		return ""
	}
	return text
}

// IsUnknown says that the field has a value which only the application knows.
func (f Field) IsUnknown() bool {
	_, known := f.Value.Known()
	return f.IsSet() && (!known || f.Kind == Opaque)
}

// IsTrue says that the field is on; unknown is not.
func (f Field) IsTrue() bool { return IsTrue(f.Text()) }

// Transport returns a transport by its name; nil when there is none.
func (c *Configuration) Transport(name string) *Transport {
	for _, transport := range c.Transports {
		if transport.Name == name {
			return transport
		}
	}
	return nil
}

// FailureTransportOf is the transport's own failure transport, else the global one.
func (c *Configuration) FailureTransportOf(transport *Transport) Field {
	if transport.FailureTransport.IsSet() {
		return transport.FailureTransport
	}
	return c.FailureTransport
}

// Source returns a source by its name.
func (c *Configuration) Source(name string) Source {
	for _, source := range c.Sources {
		if source.Name == name {
			return source
		}
	}
	return Source{Name: name}
}

// Load reads the sources in order. An error holds Errors: each has the position of
// something that cannot be read or that Symfony would refuse.
func Load(sources []Source, options Options) (*Configuration, error) {
	if options.Environment == "" {
		options.Environment = "prod"
	}
	loader := &loader{
		configuration: &Configuration{Sources: sources, Environment: options.Environment, Enabled: true, DefaultedVariables: map[string]Position{}},
	}
	loader.parameters = parameters{
		values: map[string]*Value{}, variables: options.Variables, resolved: map[string]*Value{}, open: map[string]bool{},
		failures: &loader.failures, defaults: loader.configuration.DefaultedVariables,
	}
	for _, source := range sources {
		if err := loader.read(source); err != nil {
			return nil, asErrors(err)
		}
	}
	for _, block := range loader.doctrine {
		loader.configuration.Doctrine.merge(loader.parameters.resolve(block))
	}
	for _, block := range loader.messenger {
		loader.mergeMessenger(loader.parameters.resolve(block))
	}
	loader.finish()
	if len(loader.failures) > 0 {
		return nil, loader.failures
	}
	return loader.configuration, nil
}

func asErrors(err error) error {
	if one, ok := errors.AsType[*Error](err); ok {
		return Errors{one}
	}
	return err
}

// loader collects the blocks of all sources before it merges them, since a parameter
// may be defined after it is used.
type loader struct {
	configuration *Configuration
	parameters    parameters
	failures      Errors
	messenger     []*Value
	doctrine      []*Value
}

func (l *loader) read(source Source) error {
	root, err := parse(source)
	if err != nil {
		return err
	}
	if root.Kind == Null {
		return nil
	}
	if root.Kind != Map {
		return errorAt(root.At, "the file holds %s, not a map: this is no configuration of Symfony", root.Kind)
	}
	if err := l.collect(root); err != nil {
		return err
	}
	block := root.Get("when@" + l.configuration.Environment)
	if block.IsNull() {
		return nil
	}
	if block.Kind != Map {
		return errorAt(block.At, "when@%s is %s, not a map", l.configuration.Environment, block.Kind)
	}
	return l.collect(block)
}

func (l *loader) collect(content *Value) error {
	for _, imported := range itemsOf(content.Get("imports")) {
		resource := imported
		if imported.Kind == Map {
			resource = imported.Get("resource")
		}
		if !resource.IsNull() {
			l.configuration.Imports = append(l.configuration.Imports, fieldOf("imports", resource))
		}
	}
	if block := content.Get("parameters"); !block.IsNull() {
		if block.Kind != Map {
			return errorAt(block.At, "parameters is %s, not a map", block.Kind)
		}
		for _, entry := range block.Entries {
			l.parameters.values[entry.Key] = entry.Value
		}
	}
	if block := content.Get("doctrine"); !block.IsNull() && block.Kind == Map {
		l.doctrine = append(l.doctrine, block)
	}
	framework := content.Get("framework")
	if framework.IsNull() {
		return nil
	}
	if framework.Kind != Map {
		return errorAt(framework.At, "framework is %s, not a map", framework.Kind)
	}
	for _, entry := range framework.Entries {
		if entry.Key == "messenger" {
			block := *entry.Value
			block.At = entry.At // the key: an empty value has no place of its own
			l.messenger = append(l.messenger, &block)
		}
	}
	return nil
}

func itemsOf(value *Value) []*Value {
	if value == nil {
		return nil
	}
	if value.Kind != List {
		return []*Value{value}
	}
	return value.Items
}

func fieldOf(key string, value *Value) Field {
	return Field{Key: key, Value: value.Text, Kind: value.Kind, At: value.At}
}

// normalize is what Symfony's configuration tree makes of the keys of a node with
// fixed children: dashes are underscores, unless the key has underscores already or
// the normalised key is there too.
func normalize(entries []Entry) []Entry {
	normalized := slices.Clone(entries)
	present := map[string]bool{}
	for _, entry := range entries {
		present[entry.Key] = true
	}
	for i, entry := range normalized {
		if strings.Contains(entry.Key, "-") && !strings.Contains(entry.Key, "_") {
			if key := strings.ReplaceAll(entry.Key, "-", "_"); !present[key] {
				normalized[i].Key = key
				present[key] = true
			}
		}
	}
	return normalized
}

// finish checks what can only be known once everything is merged.
func (l *loader) finish() {
	configuration := l.configuration
	if bus := configuration.DefaultBus; bus.Text() != "" && len(configuration.Buses) > 0 &&
		!slices.ContainsFunc(configuration.Buses, func(b *Bus) bool { return b.Name == bus.Text() }) {
		l.failures.add(bus.At, "default_bus is %q, but no bus of this name is declared", Shown(bus.Text()))
	}
	if len(configuration.Buses) > 1 && !configuration.DefaultBus.IsSet() {
		l.failures.add(configuration.Buses[1].At, "there are %d buses and no default_bus: Symfony asks for one", len(configuration.Buses))
	}
	for _, transport := range configuration.Transports {
		transport.describe()
	}
}

// VariableNames are the names of the variables whose defaults were used, sorted.
func (c *Configuration) VariableNames() []string {
	return slices.Sorted(maps.Keys(c.DefaultedVariables))
}
