//go:build integration

package waiting

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/test/postgres"
	"github.com/messaginginbox/operator/test/symfony"
)

// A database without an encoding keeps whatever bytes it is given, also in a text.
func TestMessagesOfInvalidUTF8InATable(t *testing.T) {
	server := postgres.Shared(t)
	run := func(name, sql string, arguments ...any) {
		t.Helper()
		if err := server.Exec(t.Context(), name, sql, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	const name = "without_encoding"
	run("postgres", `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'`)
	run(name, symfony.MessagesTable)
	headers, body := symfony.JSON("stamped")
	_, envelope := symfony.PHP("serialized")
	for _, message := range [][2]string{
		{headers, body + "\xff"}, {"[]", envelope[:len(envelope)-1] + "\xff}"}, {"\xff\xfe", "{}"}, {"[]", "\xff\xfe"}, {`{"message_id":"` + "\xff" + `"}`, "{}"},
	} {
		run(name, `INSERT INTO messenger_messages (headers, body, queue_name) VALUES ($1, $2, 'failed')`, pgx.QueryExecModeExec, message[0], message[1])
	}
	target := failedIn(t, server.URL(name))
	if seen, err := probe.Probe(t.Context(), target); err != nil || seen.Pending != 5 {
		t.Errorf("seen %+v, %v; want 5 pending", seen, err)
	}
	messages := mustRead(t, 10, target)
	// JSON replaces what is not UTF-8: an id that no proof has.
	if want := []string{"serialized", "stamped", "\ufffd"}; !slices.Equal(messages.IDs, want) || messages.Unidentified != 2 {
		t.Errorf("ids %q and %d unidentified, want %q and 2", messages.IDs, messages.Unidentified, want)
	}
}
