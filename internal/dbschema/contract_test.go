package dbschema

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	_ Querier = (*pgx.Conn)(nil)
	_ Querier = (*pgxpool.Pool)(nil)
	_ Querier = pgx.Tx(nil)
)

func contract() Contract {
	return Contract{Schema: "app", Table: "inbox", Transport: "transport", MessageID: "message_id", ProcessedAt: "processed_at", TimeZone: "UTC"}
}

func TestIndexNamesFitPostgreSQL(t *testing.T) {
	for _, test := range []struct{ name, table, want string }{
		{"short", "messenger_inbox", "messenger_inbox_processed_at_idx"},
		{"just fits", strings.Repeat("a", 46), strings.Repeat("a", 46) + "_processed_at_idx"},
		{"one byte too long", strings.Repeat("a", 47), strings.Repeat("a", 37) + "_11eaed93_processed_at_idx"},
		{"cut between two characters", strings.Repeat("ü", 31), strings.Repeat("ü", 18) + "_31102692_processed_at_idx"},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := Contract{Table: test.table}.TimestampIndexName()
			if name != test.want {
				t.Errorf("name is %s, want %s", name, test.want)
			}
			if len(name) > 63 || !utf8.ValidString(name) {
				t.Errorf("%q has %d bytes", name, len(name))
			}
		})
	}
	first, second := Contract{Table: strings.Repeat("a", 62) + "1"}, Contract{Table: strings.Repeat("a", 62) + "2"}
	if first.TimestampIndexName() == second.TimestampIndexName() || first.UniqueIndexName() == second.UniqueIndexName() {
		t.Error("two long tables share an index name")
	}
	if declared := (Contract{Table: "inbox", TimestampIndex: "mine"}); declared.TimestampIndexName() != "mine" {
		t.Error("the declared name is not taken")
	}
}

func TestValidateRefusesNamesThatPostgreSQLCannotHold(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*Contract)
		message string
	}{
		{"empty schema", func(c *Contract) { c.Schema = "" }, `the name of the schema, "", is empty`},
		{"64 bytes", func(c *Contract) { c.Table = strings.Repeat("a", 64) }, "has 64 bytes"},
		{"NUL", func(c *Contract) { c.MessageID = "a\x00" }, "NUL"},
		{"not UTF-8", func(c *Contract) { c.ProcessedAt = "\xff" }, "UTF-8"},
		{"long index", func(c *Contract) { c.TimestampIndex = strings.Repeat("ü", 32) }, "timestamp index"},
		{"one column twice", func(c *Contract) { c.MessageID = c.Transport }, "three different columns"},
		{"NUL in the time zone", func(c *Contract) { c.TimeZone = "UTC\x00" }, "time zone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := contract()
			test.change(&c)
			err := c.Validate()
			if !errors.Is(err, ErrInvalidContract) || !strings.Contains(err.Error(), test.message) {
				t.Errorf("error is %v, want %q in it", err, test.message)
			}
		})
	}
	for _, name := range []string{`"`, "ü ' ;--", strings.Repeat("a", 63)} {
		c := contract()
		c.Table = name
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
}
