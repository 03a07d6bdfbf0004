// Package symfony writes messages as Symfony Messenger's serializers and transports keep
// them, for tests of what reads them.
package symfony

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// MessagesTable is the doctrine transport's table, with defaults for a message that is due.
const MessagesTable = `CREATE TABLE messenger_messages (id bigserial PRIMARY KEY, body text NOT NULL, headers text NOT NULL, queue_name varchar(190) NOT NULL,
	created_at timestamp(0) NOT NULL DEFAULT (now() AT TIME ZONE 'utc'), available_at timestamp(0) NOT NULL DEFAULT (now() AT TIME ZONE 'utc'), delivered_at timestamp(0))`

const (
	stamp    = `Symfony\Component\Messenger\Stamp\MessageIdStamp`
	envelope = `Symfony\Component\Messenger\Envelope`
	message  = `App\Message\Order`
)

// JSON is a message of the JSON serializer: its stamps are in the headers.
func JSON(id string) (headers, body string) {
	return encoded(map[string]string{
		"type":                     message,
		"X-Message-Stamp-" + stamp: encoded([]map[string]string{{"id": id}}),
		`X-Message-Stamp-Symfony\Component\Messenger\Stamp\DelayStamp`: `[{"delay":1000}]`,
	}), `{"order":5}`
}

// PHP is a message of the PHP serializer: all of it is in the body, with slashes added.
func PHP(id string) (headers, body string) {
	return "[]", AddSlashes(Envelope(id))
}

// Envelope is what PHP's serialize makes of an envelope with the stamp.
func Envelope(id string) string {
	return object(envelope, private(envelope, "stamps"),
		`a:1:{`+text(stamp)+`a:1:{i:0;`+object(stamp, private(stamp, "id"), text(id))+`}}`,
		private(envelope, "message"), object(message, text("text"), text("a'b")))
}

// Entry is the field "message" of a redis stream, and a member of the set of its delayed messages.
func Entry(headers, body string) string {
	return encoded(map[string]any{"body": body, "headers": json.RawMessage(headers)})
}

// AddSlashes is PHP's addslashes.
func AddSlashes(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `'`, `\'`, "\x00", `\0`).Replace(text)
}

func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // of texts in maps
	}
	return string(text)
}

// object is an object whose properties are given as pairs of name and value, serialized.
func object(class string, properties ...string) string {
	return fmt.Sprintf(`O:%s:%d:{%s}`, counted(class), len(properties)/2, strings.Join(properties, ""))
}

// private is the name of a private property.
func private(class, name string) string { return text("\x00" + class + "\x00" + name) }

func text(value string) string { return "s:" + counted(value) + ";" }

// counted is a text between quotes behind its length in bytes; PHP escapes nothing in it.
func counted(value string) string { return strconv.Itoa(len(value)) + `:"` + value + `"` }
