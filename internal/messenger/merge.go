package messenger

import "strings"

// mergeMessenger merges one resolved framework.messenger block over what the blocks
// before it declared: scalars and lists of middleware replace, transports, buses and
// routes merge by name, each option of a transport replaces the whole option.
func (l *loader) mergeMessenger(block *Value) {
	configuration := l.configuration
	if !configuration.Declared {
		configuration.Declared, configuration.At = true, block.At
	}
	switch block.Kind {
	case Null:
		configuration.Enabled = true
		return
	case Bool:
		configuration.Enabled = IsTrue(block.Text.text)
		return
	case Map:
		configuration.Enabled = true
	default:
		l.failures.add(block.At, "messenger is %s, not a map", block.Kind)
		return
	}
	for _, entry := range normalize(block.Entries) {
		l.recognize(messengerKeys, "key of messenger", "", entry)
		switch entry.Key {
		case "enabled":
			configuration.Enabled = l.boolean("enabled", entry).IsTrue()
		case "identity_stamps":
			configuration.IdentityStamps = l.switched("identity_stamps", entry)
		case "default_bus":
			configuration.DefaultBus = l.named(l.scalar("default_bus", entry))
		case "failure_transport":
			configuration.FailureTransport = l.named(l.scalar("failure_transport", entry))
		case "transports":
			for _, transport := range l.children("transports", entry) {
				l.mergeTransport(transport)
			}
		case "buses":
			for _, bus := range l.children("buses", entry) {
				l.mergeBus(bus)
			}
		case "routing":
			for _, route := range l.children("routing", entry) {
				l.mergeRoute(route)
			}
		}
	}
}

// scalar reads a node that Symfony declares as a scalar.
func (l *loader) scalar(key string, entry Entry) Field {
	switch entry.Value.Kind {
	case List, Map:
		l.failures.add(entry.At, "%s is %s, where Symfony expects one value", key, entry.Value.Kind)
		return Field{}
	}
	field := fieldOf(key, entry.Value)
	if entry.Value.Kind == Null {
		field.At = entry.At
	}
	return field
}

// named refuses a DSN where a name belongs: it would be quoted, and written to manifests.
func (l *loader) named(field Field) Field {
	if holdsDSN(field.Value.String()) {
		l.failures.add(field.At, "%s holds a DSN, where a name belongs", field.Key)
		return Field{}
	}
	return field
}

func holdsDSN(name string) bool { return strings.Contains(name, "://") }

// switched reads a node that can be true, false or a map with its own enabled.
func (l *loader) switched(key string, entry Entry) Field {
	if entry.Value.Kind != Map {
		return l.boolean(key, entry)
	}
	for _, child := range entry.Value.Entries {
		if child.Key == "enabled" {
			return l.boolean(key+".enabled", child)
		}
	}
	return Field{Key: key, Kind: Bool, Value: literal("true"), At: entry.At}
}

// boolean reads a node that Symfony declares as a boolean: it refuses a string or a
// number, however true it looks. Null is true.
func (l *loader) boolean(key string, entry Entry) Field {
	field := l.scalar(key, entry)
	switch {
	case field.Key == "": // refused already
	case field.Kind == Null:
		field.Kind, field.Value = Bool, literal("true")
	case field.Kind == Bool, field.IsUnknown(), entry.Value.dynamic:
	default:
		l.failures.add(field.At, "%s is %s: Symfony takes only true or false here, without quotes; in YAML 1.2, yes, no, on and off are strings", key, field.Kind)
	}
	return field
}

// children reads a node of named children.
func (l *loader) children(key string, entry Entry) []Entry {
	switch entry.Value.Kind {
	case Map:
		return entry.Value.Entries
	case Null:
		return nil
	case List:
		if len(entry.Value.Items) == 0 {
			return nil
		}
	}
	l.failures.add(entry.At, "%s is %s, not a map of names", key, entry.Value.Kind)
	return nil
}

func (l *loader) mergeTransport(entry Entry) {
	if holdsDSN(entry.Key) {
		l.failures.add(entry.At, "the name of a transport holds a DSN: write NAME: 'DSN'")
		return
	}
	key := "transports." + entry.Key
	transport := l.configuration.Transport(entry.Key)
	if transport == nil {
		transport = &Transport{Name: entry.Key, At: entry.At}
		l.configuration.Transports = append(l.configuration.Transports, transport)
	}
	switch entry.Value.Kind {
	case Null:
		return
	case Text:
		transport.DSN = fieldOf(key, entry.Value)
		return
	case Map:
	default:
		l.failures.add(entry.At, "%s is %s, where Symfony expects a DSN or a map", key, entry.Value.Kind)
		return
	}
	for _, child := range normalize(entry.Value.Entries) {
		l.recognize(transportKeys, "key of a transport", key+".", child)
		path := key + "." + child.Key
		switch child.Key {
		case "dsn":
			transport.DSN = l.scalar(path, child)
		case "options":
			l.mergeOptions(transport, path, child)
		case "failure_transport":
			transport.FailureTransport = l.named(l.scalar(path, child))
		case "retry_strategy":
			l.mergeRetryStrategy(&transport.Retry, path, child)
		case "outbox":
			transport.Outbox = l.named(l.outbox(path, child))
		case "inbox":
			l.mergeInbox(transport, path, child)
		}
	}
}

// outbox is the name of a transport; false is none.
func (l *loader) outbox(path string, entry Entry) Field {
	if entry.Value.Kind == Map {
		if name := entry.Value.Get("transport"); name != nil {
			return fieldOf(path+".transport", name)
		}
	}
	field := l.scalar(path, entry)
	if field.Kind == Bool && !field.IsTrue() {
		field.Kind = Null
	}
	return field
}

func (l *loader) mergeInbox(transport *Transport, path string, entry Entry) {
	transport.Inbox = l.switched(path, entry)
	for _, child := range entry.Value.Entries {
		// What else an inbox can be told is not documented, so only a typing error is reported.
		if resembling(child.Key, inboxKeys) != "" {
			l.recognize(inboxKeys, "key of an inbox", path+".", child)
		}
	}
	if connection := entry.Value.Get("connection"); connection != nil {
		transport.InboxConnection = l.named(fieldOf(path+".connection", connection))
	}
}

func (l *loader) mergeOptions(transport *Transport, path string, entry Entry) {
	switch entry.Value.Kind {
	case Text, Opaque:
		transport.UnknownOptions = fieldOf(path, entry.Value)
		return
	case Null:
		return
	}
	for _, option := range l.children(path, entry) {
		field := fieldOf(path+"."+option.Key, option.Value)
		if option.Value.Kind == Null {
			field.At = option.At
		}
		transport.setDeclared(Option{Name: option.Key, Field: field, At: option.At, Nested: option.Value})
	}
}

func (l *loader) mergeBus(entry Entry) {
	if holdsDSN(entry.Key) {
		l.failures.add(entry.At, "the name of a bus holds a DSN")
		return
	}
	var bus *Bus
	for _, known := range l.configuration.Buses {
		if known.Name == entry.Key {
			bus = known
		}
	}
	if bus == nil {
		bus = &Bus{Name: entry.Key, At: entry.At}
		l.configuration.Buses = append(l.configuration.Buses, bus)
	}
	if entry.Value.Kind == Null {
		return
	}
	for _, child := range normalize(l.children("buses."+entry.Key, entry)) {
		l.recognize(busKeys, "key of a bus", "buses."+entry.Key+".", child)
		if child.Key == "middleware" {
			bus.Middleware = l.middleware("buses."+entry.Key+".middleware", child)
		}
	}
}

// middleware reads a name, a map of one name to its arguments, or a list of those.
func (l *loader) middleware(path string, entry Entry) []Middleware {
	if entry.Value.Kind == Null {
		return nil
	}
	var list []Middleware
	for _, item := range itemsOf(entry.Value) {
		switch {
		case item.Kind == Text:
			list = append(list, Middleware{Name: item.Text.String(), At: item.At})
		case item.Kind == Opaque: // a service of its own
			list = append(list, Middleware{Name: item.Text.String(), At: item.At})
		case item.Kind == Map && item.Get("id") != nil:
			list = append(list, Middleware{Name: item.Get("id").Text.String(), Arguments: itemsOf(item.Get("arguments")), At: item.At})
		case item.Kind == Map && len(item.Entries) == 1:
			list = append(list, Middleware{Name: item.Entries[0].Key, Arguments: itemsOf(item.Entries[0].Value), At: item.At})
		default:
			l.failures.add(item.At, "%s: a middleware is a name, or a map of one name to its arguments", path)
		}
	}
	return list
}

func (l *loader) mergeRoute(entry Entry) {
	route := Route{Message: entry.Key, At: entry.At}
	senders := entry.Value
	if senders.Kind == Map {
		senders = senders.Get("senders")
	}
	for _, sender := range itemsOf(senders) {
		if sender.Kind == Text {
			route.Senders = append(route.Senders, fieldOf("routing."+entry.Key, sender))
		}
	}
	for i, known := range l.configuration.Routes {
		if known.Message == route.Message {
			l.configuration.Routes[i] = route
			return
		}
	}
	l.configuration.Routes = append(l.configuration.Routes, route)
}
