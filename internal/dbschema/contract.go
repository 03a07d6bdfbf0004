package dbschema

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// ErrInvalidContract is in the chain of every error about names that PostgreSQL
// could not hold.
var ErrInvalidContract = errors.New("invalid table contract")

// maxIdentifierBytes is PostgreSQL's NAMEDATALEN - 1.
const maxIdentifierBytes = 63

// Contract names the inbox table and what its columns mean.
type Contract struct {
	// Schema of the table. It must exist; it is never created.
	Schema string
	// Table name.
	Table string
	// Transport is the column with the name of the transport.
	Transport string
	// MessageID is the column with the id of the message.
	MessageID string
	// ProcessedAt is the column with the time at which the message was handled.
	ProcessedAt string
	// TimeZone in which a ProcessedAt column without time zone is written, as in
	// pg_timezone_names. Empty: UTC.
	TimeZone string
	// TimestampIndex is the name of the index on ProcessedAt. Empty: the table's name
	// followed by _processed_at_idx, shortened to fit.
	TimestampIndex string
}

// TimestampIndexName is the name that the index on ProcessedAt gets when it is made.
func (c Contract) TimestampIndexName() string {
	if c.TimestampIndex != "" {
		return c.TimestampIndex
	}
	return deriveName(c.Table, "_processed_at_idx")
}

// UniqueIndexName is the name that the unique index on transport and message id gets
// when it is added to a table that lacks one.
func (c Contract) UniqueIndexName() string {
	return deriveName(c.Table, "_transport_message_id_key")
}

// Validate reports names that PostgreSQL would cut, refuse or confuse. The error
// wraps ErrInvalidContract.
func (c Contract) Validate() error {
	names := []struct{ role, name string }{
		{"schema", c.Schema},
		{"table", c.Table},
		{"transport column", c.Transport},
		{"message id column", c.MessageID},
		{"processed-at column", c.ProcessedAt},
		{"timestamp index", c.TimestampIndexName()},
	}
	for _, n := range names {
		if problem := identifierProblem(n.name); problem != "" {
			return fmt.Errorf("%w: the name of the %s, %q, %s", ErrInvalidContract, n.role, n.name, problem)
		}
	}
	if c.Transport == c.MessageID || c.MessageID == c.ProcessedAt || c.Transport == c.ProcessedAt {
		return fmt.Errorf("%w: transport (%q), message id (%q) and processed-at (%q) must be three different columns",
			ErrInvalidContract, c.Transport, c.MessageID, c.ProcessedAt)
	}
	if strings.ContainsRune(c.TimeZone, 0) || !utf8.ValidString(c.TimeZone) {
		return fmt.Errorf("%w: the time zone %q is not valid text", ErrInvalidContract, c.TimeZone)
	}
	return nil
}

func identifierProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxIdentifierBytes:
		return fmt.Sprintf("has %d bytes, and PostgreSQL keeps %d", len(name), maxIdentifierBytes)
	case strings.ContainsRune(name, 0):
		return "contains a NUL character"
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	}
	return ""
}

func (c Contract) timeZone() string {
	if c.TimeZone == "" {
		return "UTC"
	}
	return c.TimeZone
}

func (c Contract) qualifiedTable() string {
	return pgx.Identifier{c.Schema, c.Table}.Sanitize()
}

func quote(name string) string {
	return pgx.Identifier{name}.Sanitize()
}

// quoteAll lists columns; an expression of an index is the empty string.
func quoteAll(columns []string) string {
	quoted := make([]string, 0, len(columns))
	for _, column := range columns {
		if column == "" {
			quoted = append(quoted, "an expression")
			continue
		}
		quoted = append(quoted, quote(column))
	}
	return strings.Join(quoted, ", ")
}

// deriveName appends suffix to base. When that does not fit, base is cut between
// two characters and a hash of it keeps two long names apart.
func deriveName(base, suffix string) string {
	if len(base)+len(suffix) <= maxIdentifierBytes {
		return base + suffix
	}
	sum := sha256.Sum256([]byte(base))
	tail := "_" + hex.EncodeToString(sum[:4]) + suffix
	cut := min(maxIdentifierBytes-len(tail), len(base))
	for cut > 0 && !utf8.RuneStart(base[cut]) {
		cut--
	}
	return base[:cut] + tail
}
