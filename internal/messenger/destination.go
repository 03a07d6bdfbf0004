package messenger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/messaginginbox/operator/internal/redelivery"
)

// Destination is where a transport's messages wait: a queue of a broker.
type Destination struct {
	// Broker without credentials; as in the configuration where it is not known.
	Broker string
	// Queue is the queue, stream, tube, or table and queue name.
	Queue string
}

// Destinations are the queues that a worker of the transport reads. There is none for
// transports without a broker, and for a custom one its options are the queue's name.
func (t *Transport) Destinations() []Destination {
	broker := t.broker()
	switch t.Type() {
	case redelivery.Sync, redelivery.InMemory:
		return nil
	case redelivery.Doctrine:
		return []Destination{{broker, t.setting("table_name", "messenger_messages") + ", queue_name " + t.setting("queue_name", "default")}}
	case redelivery.Redis:
		return []Destination{{cmp.Or(broker, t.Address.Address.String()) + t.database(), t.setting("stream", "messages") + ", group " + t.setting("group", "symfony")}}
	case redelivery.SQS:
		return []Destination{{t.Address.Host.String(), t.setting("queue_name", "messages")}}
	case redelivery.Beanstalkd:
		return []Destination{{broker, t.setting("tube_name", "default")}}
	case redelivery.AMQP:
		var destinations []Destination
		for _, queue := range t.Queues() {
			destinations = append(destinations, Destination{t.amqpBroker() + t.VirtualHost(), queue})
		}
		return destinations
	}
	if !t.DSN.IsSet() {
		return nil
	}
	return []Destination{{t.Address.Address.String(), t.unknownQueue()}}
}

// defaultPorts by scheme.
var defaultPorts = map[string]string{"amqp": "5672", "amqps": "5671", "redis": "6379", "rediss": "6379", "valkey": "6379", "valkeys": "6379", "beanstalkd": "11300"}

// broker is the host with its port, written the same way whether the DSN, an option or
// nothing says them. A host that is not known stays as it is in the configuration.
func (t *Transport) broker() string {
	hosts, known := t.Address.Host.Known()
	if !known {
		return t.Address.Host.String()
	}
	byDefault := defaultPorts[t.Address.Scheme]
	if t.Type() == redelivery.Doctrine {
		return cmp.Or(hosts, "default")
	}
	if hosts == "" || byDefault == "" {
		return hosts
	}
	nodes := strings.Split(strings.ToLower(hosts), ",")
	for i, node := range nodes {
		host, port := splitPort(node)
		nodes[i] = host + ":" + cmp.Or(port, byDefault)
	}
	return strings.Join(nodes, ",")
}

// amqpBroker prefers the options host and port to those of the DSN, as Symfony does. A
// host that is not known may have its port with it.
func (t *Transport) amqpBroker() string {
	hostText, portText := splitPort(t.Address.Host.text)
	host, port := t.Address.Host.of(hostText), t.setting("port", t.Address.Host.of(portText).String())
	if option, declared := t.Option("host"); declared {
		host = option.Field.Value
	}
	if known, isKnown := host.Known(); isKnown {
		return strings.ToLower(cmp.Or(known, "localhost")) + ":" + cmp.Or(port, defaultPorts[t.Address.Scheme])
	}
	if port == "" {
		return host.String()
	}
	return host.String() + ":" + port
}

// splitPort leaves the brackets of an IPv6 address; the port is "" when there is none.
func splitPort(node string) (host, port string) {
	end := strings.LastIndexByte(node, ']') + 1
	if colon := strings.IndexByte(node[end:], ':'); colon >= 0 {
		return node[:end+colon], node[end+colon+1:]
	}
	return node, ""
}

// database of redis; each has streams of its own.
func (t *Transport) database() string {
	if index := t.setting("dbindex", "0"); index != "0" {
		return " database " + index
	}
	return ""
}

// unknownQueue tells the queues of one unknown broker apart by all options of its
// transports that can name one.
func (t *Transport) unknownQueue() string {
	var named []string
	for _, name := range []string{"table_name", "queue_name", "stream", "group", "tube_name"} {
		if option, ok := t.Option(name); ok {
			named = append(named, name+" "+option.Field.Value.String())
		}
	}
	if names := t.names("queues"); len(names) > 0 {
		named = append(named, "queues "+strings.Join(names, " "))
	}
	if name := t.sub("exchange", "name"); name != "" {
		named = append(named, "exchange "+name)
	}
	return strings.Join(named, ", ")
}

func (t *Transport) setting(name, byDefault string) string {
	option, ok := t.Option(name)
	if !ok {
		return byDefault
	}
	return option.Field.Value.String()
}

// Queues are the names of an amqp transport's queues: Symfony names the queue after
// the exchange when none is declared.
func (t *Transport) Queues() []string {
	if names := t.names("queues"); len(names) > 0 {
		return names
	}
	return []string{t.Exchange()}
}

// VirtualHost of an amqp transport: of the option vhost, else of the DSN's path, else /.
func (t *Transport) VirtualHost() string {
	host, _, _ := strings.Cut(strings.Trim(t.Address.Path.text, "/"), "/")
	return t.setting("vhost", cmp.Or(t.DSN.Value.of(unescape(host)).String(), "/"))
}

// names are the keys below an option, in options and in the query.
func (t *Transport) names(option string) []string {
	var names []string
	for _, declared := range t.declared {
		if declared.Name == option && declared.Nested != nil {
			for _, entry := range declared.Nested.Entries {
				names = append(names, entry.Key)
			}
		}
	}
	for _, queried := range t.queried {
		if queried.Name == option && len(queried.Sub) > 0 && !slices.Contains(names, queried.Sub[0]) {
			names = append(names, queried.Sub[0])
		}
	}
	return names
}

// sub is a text below an option; the query counts before options.
func (t *Transport) sub(option, key string) string {
	for _, queried := range slices.Backward(t.queried) {
		if queried.Name == option && len(queried.Sub) == 1 && queried.Sub[0] == key {
			return queried.Value()
		}
	}
	for _, declared := range t.declared {
		if declared.Name == option {
			if value := declared.Nested.Get(key); !value.IsNull() {
				return value.Text.String()
			}
		}
	}
	return ""
}

// Value is the option's text as in the configuration.
func (o Option) Value() string { return o.Field.Value.String() }

// Exchange of an amqp transport: of the options, else of the DSN's path, else messages.
func (t *Transport) Exchange() string {
	path := strings.Split(strings.Trim(t.Address.Path.text, "/"), "/")
	exchange := ""
	if len(path) > 1 {
		exchange = t.DSN.Value.of(path[1]).String()
	}
	return cmp.Or(t.sub("exchange", "name"), exchange, "messages")
}
