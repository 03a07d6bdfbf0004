package dbschema

import (
	"fmt"
	"slices"
	"strings"
)

// Access methods whose order or ranges find expired records.
const (
	methodBtree = "btree"
	methodBrin  = "brin"
)

// compareIndexes adds what concerns indexes to the findings of the table and plans
// what may be built. Nothing is planned for a table that a person must mend first.
func compareIndexes(c Contract, o Observed, findings []Finding) Verdict {
	for _, finding := range findings {
		if finding.Reason == ReasonColumnMissing {
			return Verdict{Findings: findings}
		}
	}
	tableBlocked := anyBlocking(findings)
	keyFindings, keyPlanned := compareUniqueKey(c, o)
	timestampFindings, timestampPlanned := compareTimestampIndex(c, o)

	verdict := Verdict{Findings: slices.Concat(findings, keyFindings, timestampFindings)}
	slices.SortStableFunc(verdict.Findings, blockingFirst)
	if tableBlocked || (anyBlocking(keyFindings) && !keyPlanned) {
		return verdict
	}
	if keyPlanned {
		verdict.Plan.Steps = append(verdict.Plan.Steps, wantedUniqueIndex(c, o).steps(c, o)...)
	}
	if timestampPlanned {
		verdict.Plan.Steps = append(verdict.Plan.Steps, wantedTimestampIndex(c, o).steps(c, o)...)
	}
	return verdict
}

func blockingFirst(a, b Finding) int {
	switch {
	case a.Blocking == b.Blocking:
		return 0
	case a.Blocking:
		return -1
	default:
		return 1
	}
}

// compareUniqueKey returns what is wrong with the key on (transport, message id), and
// whether building one would mend all of it.
func compareUniqueKey(c Contract, o Observed) (findings []Finding, planned bool) {
	findings = compareNarrowKeys(c, o)
	if _, found := o.UniqueKey(c); found {
		return findings, false
	}
	missing := fmt.Sprintf("%s has no valid unique key on exactly (%s, %s)%s",
		c.qualifiedTable(), quote(c.Transport), quote(c.MessageID), nearMisses(c, o))
	wanted := wantedUniqueIndex(c, o)
	if index, found := wanted.building(c, o); found {
		return append(findings, blocking(ReasonUniqueKeyMissing, "%s. Index %s is being built at this moment.", missing, quote(index.Name))), false
	}
	switch duplicates := o.Duplicates; {
	case o.Kind == KindPartitioned:
		return append(findings, blocking(ReasonUniqueKeyMissing, "%s. It is a partitioned table, on which no index can be built concurrently: add the key in a migration.", missing)), false
	case duplicates == nil || duplicates.TimedOut:
		return append(findings, blocking(ReasonUniqueKeyMissing, "%s, and whether duplicates stand in its way is unknown%s. It is left alone; add the key in a migration.",
			missing, countLimit(duplicates))), false
	case duplicates.Groups > 0:
		return append(findings, blocking(ReasonDuplicateRecords, "%s, and cannot get one: %d messages are recorded more than once, in %d rows. "+
			"Nothing is deleted for you; keep one row of each: SELECT %s, %s, count(*) FROM %s GROUP BY 1, 2 HAVING count(*) > 1.",
			missing, duplicates.Groups, duplicates.Rows, quote(c.Transport), quote(c.MessageID), c.qualifiedTable())), false
	}
	if taken := wanted.nameTaken(o); taken != "" {
		return append(findings, blocking(ReasonUniqueKeyMissing, "%s.", missing),
			blocking(ReasonIndexNameTaken, "The name %s of the unique index is taken by %s: add the key in a migration under another name.", quote(wanted.name), taken)), false
	}
	return append(findings, blocking(ReasonUniqueKeyMissing, "%s, and no duplicates.", missing)), true
}

func countLimit(duplicates *DuplicateCount) string {
	if duplicates == nil {
		return ""
	}
	return fmt.Sprintf(": there are more records than could be compared in %s", duplicates.Limit)
}

// nearMisses says of each unique index on the pair why it is not the key.
func nearMisses(c Contract, o Observed) string {
	var reasons []string
	for _, index := range o.Indexes {
		if index.BeingBuilt || !index.Unique || !slices.Contains(index.Columns, c.Transport) || !slices.Contains(index.Columns, c.MessageID) {
			continue
		}
		reasons = append(reasons, fmt.Sprintf("%s %s", quote(index.Name), whyNotTheKey(index)))
	}
	if len(reasons) == 0 {
		return ""
	}
	return " (" + strings.Join(reasons, "; ") + ")"
}

func whyNotTheKey(index Index) string {
	switch {
	case !index.Valid || !index.Ready:
		return "is invalid"
	case index.Partial:
		return "is partial"
	case !index.Immediate:
		return "is deferrable"
	case index.NondeterministicCollation:
		return "has a nondeterministic collation"
	default:
		return "has more columns"
	}
}

// compareNarrowKeys finds unique indexes that refuse records which the contract wants
// kept: one on the message id alone takes the same id on a second transport, which
// a message with two senders has, for a redelivery.
func compareNarrowKeys(c Contract, o Observed) []Finding {
	var findings []Finding
	mapped := []string{c.Transport, c.MessageID, c.ProcessedAt}
	for _, index := range o.Indexes {
		foreign := slices.ContainsFunc(index.Columns, func(column string) bool { return !slices.Contains(mapped, column) })
		tellsApart := slices.Contains(index.Columns, c.Transport) && slices.Contains(index.Columns, c.MessageID) && !index.NondeterministicCollation
		if index.Unique && !foreign && !tellsApart {
			findings = append(findings, blocking(ReasonUniqueKeyTooNarrow, "Unique index %s on (%s) of %s takes two different messages for one, "+
				"and the second would be lost: drop it once the key on (%s, %s) exists.",
				quote(index.Name), quoteAll(index.Columns), c.qualifiedTable(), quote(c.Transport), quote(c.MessageID)))
		}
	}
	return findings
}

// compareTimestampIndex returns what is wrong with the index on the time, and whether
// building one would mend it. Nothing here blocks: without it pruning reads the heap.
func compareTimestampIndex(c Contract, o Observed) (findings []Finding, planned bool) {
	if _, found := o.TimestampIndex(c); found {
		return nil, false
	}
	missing := fmt.Sprintf("%s has no index that begins with %s, so pruning reads the whole table", c.qualifiedTable(), quote(c.ProcessedAt))
	wanted := wantedTimestampIndex(c, o)
	if index, found := wanted.building(c, o); found {
		return []Finding{remark(ReasonTimestampIndexMissing, "%s; index %s is being built at this moment.", missing, quote(index.Name))}, false
	}
	if o.Kind == KindPartitioned {
		return []Finding{remark(ReasonTimestampIndexMissing, "%s. It is a partitioned table, on which no index can be built concurrently: add one in a migration.", missing)}, false
	}
	if taken := wanted.nameTaken(o); taken != "" {
		return []Finding{timestampNameTaken(c, taken)}, false
	}
	return []Finding{remark(ReasonTimestampIndexMissing, "%s.", missing)}, true
}

func timestampNameTaken(c Contract, taken string) Finding {
	return remark(ReasonIndexNameTaken, "The name %s of the timestamp index is taken by %s: set spec.table.timestampIndex to another name.",
		quote(c.TimestampIndexName()), taken)
}

func isUniqueKey(c Contract, index Index) bool {
	pair := len(index.Columns) == 2 && slices.Contains(index.Columns, c.Transport) && slices.Contains(index.Columns, c.MessageID)
	usable := index.Valid && index.Ready && index.Immediate && !index.Partial && !index.NondeterministicCollation
	return index.Unique && pair && usable
}

func servesTimestamp(c Contract, index Index) bool {
	method := index.Method == methodBtree || index.Method == methodBrin
	return method && index.Valid && index.Ready && !index.Partial && len(index.Columns) > 0 && index.Columns[0] == c.ProcessedAt
}
