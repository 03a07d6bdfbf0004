package drill

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/messaginginbox/operator/internal/dbschema"
)

// The message ids of a drill are always the same, so that what a killed drill left is
// found through the unique key, however large the table is. They fit every type that the
// contract allows: 32 hexadecimal digits.
var (
	proofID       = messageID("proof")
	effectID      = messageID("effect")
	secondEffect  = messageID("effect of a redelivery")
	allMessageIDs = []string{proofID, effectID, secondEffect}
)

func messageID(purpose string) string {
	sum := sha256.Sum256([]byte(TransportName + "/" + purpose))
	return hex.EncodeToString(sum[:16])
}

// table has the statements for the inbox table. Parameters are $1 the transport, $2 the
// message id or ids, and, where the time column has no zone, $3 the zone.
type table struct {
	oid    uint32
	name   string // quoted and qualified
	insert string
	ignore string // insert that takes a duplicate for no error
	count  string
	remove string
	zone   []any
}

func newTable(c dbschema.Contract, o dbschema.Observed) table {
	t := table{oid: o.OID, name: pgx.Identifier{c.Schema, c.Table}.Sanitize()}
	clock := "clock_timestamp()"
	if column, found := o.Column(c.ProcessedAt); found && column.WithoutTimeZone() {
		clock = "clock_timestamp() AT TIME ZONE $3::text"
		t.zone = []any{c.TimeZone}
		if c.TimeZone == "" {
			t.zone = []any{"UTC"}
		}
	}
	fill := strings.NewReplacer(
		"{table}", t.name, "{clock}", clock,
		"{transport}", quote(c.Transport), "{id}", quote(c.MessageID), "{time}", quote(c.ProcessedAt),
		"{transportType}", parameterType(o, c.Transport), "{idType}", parameterType(o, c.MessageID),
	)
	t.insert = fill.Replace(`INSERT INTO {table} ({transport}, {id}, {time}) VALUES ($1::{transportType}, $2::{idType}, {clock})`)
	t.ignore = t.insert + " ON CONFLICT DO NOTHING"
	condition := fill.Replace(` FROM {table} WHERE {transport} = $1::{transportType} AND {id} = ANY ($2::{idType}[])`)
	t.count, t.remove = "SELECT count(*)"+condition, "DELETE"+condition
	return t
}

// arguments of an insert.
func (t table) arguments(id string) []any {
	return append([]any{TransportName, id}, t.zone...)
}

// parameterType is the column's own type, without a length that would cut in silence: the
// index serves no other.
func parameterType(o dbschema.Observed, name string) string {
	column, _ := o.Column(name)
	switch column.TypeOID {
	case pgtype.UUIDOID:
		return "uuid"
	case pgtype.BPCharOID:
		return "bpchar"
	default:
		return "text"
	}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
