package dbschema

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// minTextLength is the shortest varchar(n) or char(n) that may hold a transport's
// name or a message's id: Symfony's default id has 32 characters
// (symfony-messenger.md, section 1). A longer id of an application's own generator
// fails loudly on insert, so it loses no proof.
const minTextLength = 32

// compareColumns checks that the three mapped columns exist and can tell messages
// apart and times in order.
func compareColumns(c Contract, o Observed) []Finding {
	var missing []string
	for _, name := range []string{c.Transport, c.MessageID, c.ProcessedAt} {
		if _, found := o.Column(name); !found {
			missing = append(missing, quote(name))
		}
	}
	if len(missing) > 0 {
		return []Finding{blocking(ReasonColumnMissing, "%s has no column %s; it has %s. Map spec.table.columns to the columns "+
			"that hold the transport, the message id and the time, or set spec.table.name to another table.",
			c.qualifiedTable(), strings.Join(missing, ", "), columnList(o))}
	}
	transport, _ := o.Column(c.Transport)
	messageID, _ := o.Column(c.MessageID)
	processedAt, _ := o.Column(c.ProcessedAt)

	var findings []Finding
	findings = append(findings, compareText(c, transport, false)...)
	findings = append(findings, compareText(c, messageID, true)...)
	if processedAt.TypeOID != pgtype.TimestampOID && processedAt.TypeOID != pgtype.TimestamptzOID {
		findings = append(findings, typeMismatch(c, processedAt, "timestamp with or without time zone"))
	}
	findings = append(findings, compareNullability(c, o, transport, messageID, processedAt)...)
	if processedAt.WithoutTimeZone() && !o.TimeZoneValid {
		findings = append(findings, invalidTimeZone(c))
	}
	return findings
}

func columnList(o Observed) string {
	if len(o.Columns) == 0 {
		return "no columns"
	}
	names := make([]string, 0, len(o.Columns))
	for _, col := range o.Columns {
		names = append(names, col.Name)
	}
	return quoteAll(names)
}

// compareText accepts the types that keep different texts different: text, varchar
// and char. A uuid is fitting for an id too: it takes Symfony's 32 hexadecimal
// characters as they are, and refuses other ids loudly. Refused are citext and
// nondeterministic collations (two ids that differ in case would be one message, and
// the second one lost), name (it cuts in silence), domains and bytea (a consumer binds
// text).
func compareText(c Contract, col Column, uuidFits bool) []Finding {
	wanted := fmt.Sprintf("text, varchar(n) or char(n) with n >= %d", minTextLength)
	if uuidFits {
		wanted += ", or uuid"
	}
	switch {
	case uuidFits && col.TypeOID == pgtype.UUIDOID:
		return nil
	case col.TypeOID != pgtype.TextOID && col.TypeOID != pgtype.VarcharOID && col.TypeOID != pgtype.BPCharOID:
		return []Finding{typeMismatch(c, col, wanted)}
	case col.MaxLength > 0 && col.MaxLength < minTextLength:
		return []Finding{typeMismatch(c, col, wanted)}
	case col.NondeterministicCollation:
		return []Finding{typeMismatch(c, col, "of a deterministic collation: its own takes different texts for equal, and would skip a message that was never handled")}
	}
	return nil
}

func typeMismatch(c Contract, col Column, wanted string) Finding {
	return blocking(ReasonColumnTypeMismatch, "Column %s of %s is %s, and must be %s. Map another column in spec.table.columns, or change its type in a migration.",
		quote(col.Name), c.qualifiedTable(), col.Type, wanted)
}

func compareNullability(c Contract, o Observed, transport, messageID, processedAt Column) []Finding {
	var findings []Finding
	key, found := o.UniqueKey(c)
	for _, col := range []Column{transport, messageID} {
		if col.Nullable && (!found || !key.NullsNotDistinct) {
			findings = append(findings, blocking(ReasonColumnNullable, "Column %s of %s accepts NULL, and a unique key takes no two NULLs for equal. "+
				"Run ALTER TABLE %s ALTER COLUMN %s SET NOT NULL.", quote(col.Name), c.qualifiedTable(), c.qualifiedTable(), quote(col.Name)))
		}
	}
	if processedAt.Nullable {
		findings = append(findings, remark(ReasonColumnNullable, "Column %s of %s accepts NULL: a record without a time is never pruned.",
			quote(processedAt.Name), c.qualifiedTable()))
	}
	return findings
}

func invalidTimeZone(c Contract) Finding {
	return blocking(ReasonInvalidTimeZone, "The PostgreSQL server knows no time zone %q: set spec.table.timeZone to a name of pg_timezone_names, such as UTC or Europe/Paris.", c.timeZone())
}
