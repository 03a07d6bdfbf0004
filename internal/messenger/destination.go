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
			destinations = append(destinations, Destination{broker + t.VirtualHost(), queue})
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
	port := defaultPorts[t.Address.Scheme]
	switch t.Type() {
	case redelivery.Doctrine:
		return cmp.Or(hosts, "default")
	case redelivery.AMQP:
		hosts = cmp.Or(hosts, "localhost")
	}
	if hosts == "" || port == "" {
		return hosts
	}
	nodes := strings.Split(strings.ToLower(hosts), ",")
	for i, node := range nodes {
		if _, after, found := strings.Cut(node[strings.LastIndexByte(node, ']')+1:], ":"); !found || after == "" {
			nodes[i] = strings.TrimSuffix(node, ":") + ":" + port
		}
	}
	return strings.Join(nodes, ",")
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

// VirtualHost of an amqp transport; / when it names none.
func (t *Transport) VirtualHost() string {
	host, _, _ := strings.Cut(strings.Trim(t.Address.Path.text, "/"), "/")
	return cmp.Or(t.DSN.Value.of(unescape(host)).String(), "/")
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
