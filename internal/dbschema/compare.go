package dbschema

import (
	"fmt"
	"strings"
)

// Compare says how the observed table differs from the contract, and what may be done
// about it. It reads nothing but its arguments.
func Compare(c Contract, o Observed) Verdict {
	switch {
	case !o.SchemaExists:
		return refuse(ReasonSchemaNotFound, "Schema %s does not exist: create it, or correct spec.database.schema.", quote(c.Schema))
	case !o.Exists:
		return compareMissingTable(c, o)
	case o.Kind != KindTable && o.Kind != KindPartitioned:
		return refuse(ReasonNotATable, "%s is %s %s, and the inbox must be a table of its own: %s.",
			c.qualifiedTable(), o.Kind.article(), o.Kind, kindAdvice(o.Kind))
	}
	if columns := queueColumns(o); columns != nil {
		return refuse(ReasonForeignTable, "%s belongs to another package: the columns %s are those of a message queue "+
			"(messenger_messages of Symfony's Doctrine transport, or messenger_inbox of freyr/message-broker). "+
			"It is left alone; set spec.table.name to a name of its own.", c.qualifiedTable(), strings.Join(columns, ", "))
	}
	findings := compareColumns(c, o)
	findings = append(findings, compareTable(c, o)...)
	return compareIndexes(c, o, findings)
}

func refuse(reason, format string, arguments ...any) Verdict {
	return Verdict{Findings: []Finding{blocking(reason, format, arguments...)}}
}

func blocking(reason, format string, arguments ...any) Finding {
	return Finding{Reason: reason, Message: fmt.Sprintf(format, arguments...), Blocking: true}
}

func remark(reason, format string, arguments ...any) Finding {
	return Finding{Reason: reason, Message: fmt.Sprintf(format, arguments...)}
}

func compareMissingTable(c Contract, o Observed) Verdict {
	missing := blocking(ReasonTableMissing, "Table %s does not exist.", c.qualifiedTable())
	if !o.TimeZoneValid {
		// The table would be made with a timestamp that nobody can read.
		return Verdict{Findings: []Finding{invalidTimeZone(c), missing}}
	}
	verdict := Verdict{Findings: []Finding{missing}}
	taken := o.TimestampIndexNameTakenBy
	if c.TimestampIndexName() == c.Table {
		taken = "the table itself"
	}
	if taken != "" {
		verdict.Findings = append(verdict.Findings, timestampNameTaken(c, taken))
	}
	verdict.Plan.Steps = planTable(c, taken == "")
	return verdict
}

// kindAdvice says what to name instead.
func kindAdvice(kind Kind) string {
	switch kind {
	case KindPartition:
		return "a unique key on one partition protects nothing in the others; name the partitioned table in spec.table.name"
	case KindInherited:
		return "its unique key does not hold for the tables that inherit from it; set spec.table.name to another table"
	case KindView, KindMaterializedView, KindForeign:
		return "set spec.table.name to the table behind it"
	default:
		return "set spec.table.name to another name"
	}
}

// queueColumns returns the columns that give away a queue of messages, or nil. They
// decide even when the contract maps its columns onto such a table: to prune it would
// be to delete messages.
func queueColumns(o Observed) []string {
	signature := []string{"body", "headers", "queue_name", "available_at", "delivered_at"}
	for _, name := range signature {
		if _, found := o.Column(name); !found {
			return nil
		}
	}
	return signature
}

// compareTable looks at what concerns the table as a whole.
func compareTable(c Contract, o Observed) []Finding {
	var findings []Finding
	if o.Persistence != Permanent {
		findings = append(findings, blocking(ReasonUnloggedTable, "%s is %s: a crash of the server would empty it, and every proof with it. "+
			"Run ALTER TABLE %s SET LOGGED.", c.qualifiedTable(), o.Persistence, c.qualifiedTable()))
	}
	if len(o.ReferencedBy) > 0 {
		findings = append(findings, blocking(ReasonReferencedTable, "Pruning %s would fail on, or change rows behind, the foreign key %s: "+
			"drop it, or keep the reference in a column without a foreign key.", c.qualifiedTable(), strings.Join(o.ReferencedBy, ", ")))
	}
	if names := append(append([]string{}, o.Triggers...), o.Rules...); len(names) > 0 {
		findings = append(findings, remark(ReasonTriggersOrRules, "%s has triggers or rules that also see each record that is inserted or pruned: %s.",
			c.qualifiedTable(), strings.Join(names, ", ")))
	}
	return findings
}
