package messenger

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/messaginginbox/operator/internal/redelivery"
)

// optionIs says what Symfony makes of an option's value.
type optionIs int

const (
	free optionIs = iota
	number
)

// options that the transports of Symfony's own bridges know, in any version up to 8.2.
// A type that is not here takes any option.
var options = map[redelivery.Type]map[string]optionIs{
	redelivery.Doctrine: {
		"auto_setup": free, "check_delayed_interval": number, "get_notify_timeout": number, "queue_name": free,
		"redeliver_timeout": number, "table_name": free, "use_notify": free,
	},
	redelivery.Redis: {
		"auth": free, "auto_setup": free, "claim_interval": number, "consumer": free, "dbindex": number,
		"delete_after_ack": free, "delete_after_reject": free, "group": free, "host": free, "lazy": free,
		"persistent_id": free, "port": number, "read_timeout": number, "redeliver_timeout": number,
		"redis_sentinel": free, "retry_interval": number, "sentinel_master": free, "serializer": free, "ssl": free,
		"stream": free, "stream_max_entries": number, "timeout": number, "tls": free,
	},
	redelivery.AMQP: {
		"auto_setup": free, "cacert": free, "cert": free, "channel_max": number, "confirm_timeout": number,
		"connect_timeout": number, "connection_name": free, "delay": free, "exchange": free, "frame_max": number,
		"heartbeat": number, "host": free, "key": free, "login": free, "password": free, "persistent": free,
		"port": number, "prefetch_count": number, "queues": free, "read_timeout": number, "retry": free,
		"rpc_timeout": number, "sasl_method": free, "user": free, "verify": free, "vhost": free, "write_timeout": number,
	},
	redelivery.SQS: {
		"access_key": free, "account": free, "auto_setup": free, "buffer_size": number, "debug": free,
		"delete_on_rejection": free, "endpoint": free, "poll_timeout": number, "queue_attributes": free,
		"queue_name": free, "queue_tags": free, "region": free, "retry_delay": number, "secret_key": free,
		"session_token": free, "sslmode": free, "visibility_timeout": number, "wait_time": number,
	},
	redelivery.Beanstalkd: {"bury_on_reject": free, "timeout": number, "ttr": number, "tube_name": free},
}

// The names below two options of amqp.
var (
	exchangeOptions = []string{"arguments", "bindings", "default_publish_routing_key", "flags", "name", "type"}
	queueOptions    = []string{"arguments", "binding_arguments", "binding_keys", "flags"}
)

// written are all options that the sources write out, those of the DSN's query last.
func (t *Transport) written() []Option { return slices.Concat(t.declared, t.queried) }

// Unrecognized are the options that Symfony's own transport of this type does not know.
func (t *Transport) Unrecognized() []Unrecognized {
	known, own := options[t.Type()]
	if !own {
		return nil
	}
	names := slices.Sorted(maps.Keys(known))
	var found []Unrecognized
	add := func(key string, at Position, place, name string, candidates []string) {
		if !slices.Contains(candidates, name) && !strings.ContainsRune(name, opening) {
			found = append(found, Unrecognized{Key: key, At: at, Place: place, Suggestion: resembling(name, candidates)})
		}
	}
	for _, option := range t.written() {
		add(option.shownKey(), option.keyAt(), "option of "+string(t.Type()), option.Name, names)
		for _, below := range option.below() {
			switch {
			case t.Type() != redelivery.AMQP:
			case option.Name == "exchange" && len(below.path) == 1:
				add(below.key, below.at, "option of an exchange", below.path[0], exchangeOptions)
			case option.Name == "queues" && len(below.path) == 2:
				add(below.key, below.at, "option of a queue", below.path[1], queueOptions)
			}
		}
	}
	return found
}

// shownKey is the option's path, without a name that may be a password.
func (o Option) shownKey() string {
	if o.fromDSN {
		return strings.TrimSuffix(o.Field.Key, o.Name+")") + Shown(o.Name) + ")"
	}
	return strings.TrimSuffix(o.Field.Key, o.Name) + Shown(o.Name)
}

// keyAt is where the option's name stands.
func (o Option) keyAt() Position {
	if o.fromDSN {
		return o.Field.At
	}
	return o.At
}

// belowOption is a name below an option, one or two deep.
type belowOption struct {
	path []string
	key  string
	at   Position
}

func (o Option) below() []belowOption {
	if o.fromDSN {
		if len(o.Sub) == 0 {
			return nil
		}
		shown := make([]string, 0, len(o.Sub))
		for _, name := range o.Sub {
			shown = append(shown, "["+Shown(name)+"]")
		}
		key := strings.TrimSuffix(o.shownKey(), ")") + strings.Join(shown, "") + ")"
		return []belowOption{{path: o.Sub[:min(len(o.Sub), 2)], key: key, at: o.Field.At}}
	}
	if o.Nested == nil {
		return nil
	}
	var names []belowOption
	for _, entry := range o.Nested.Entries {
		key := o.Field.Key + "." + Shown(entry.Key)
		names = append(names, belowOption{path: []string{entry.Key}, key: key, at: entry.At})
		for _, deeper := range entry.Value.Entries {
			names = append(names, belowOption{path: []string{entry.Key, deeper.Key}, key: key + "." + Shown(deeper.Key), at: deeper.At})
		}
	}
	return names
}

// NotNumbers are the options of which PHP expects a number from 0 and finds something
// else, which it takes for 0 or refuses.
func (t *Transport) NotNumbers() []Option {
	var wrong []Option
	for _, option := range t.written() {
		if options[t.Type()][option.Name] == number && len(option.Sub) == 0 && option.Field.IsSet() && !option.Field.IsUnknown() && !option.isNumber() {
			wrong = append(wrong, option)
		}
	}
	return wrong
}

func (o Option) isNumber() bool {
	if o.Field.Kind != Number && o.Field.Kind != Text {
		return false
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(o.Field.Text()), 64)
	return err == nil && value >= 0 && !math.IsInf(value, 0) // false for NaN
}
