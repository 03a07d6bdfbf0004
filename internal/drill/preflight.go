package drill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/messaginginbox/operator/internal/dbschema"
)

const (
	checkTableName = "table"
	inboxName      = "inbox"
	expectedTable  = "a logged table with an immediate unique key, which nothing but retention deletes from"
)

// untriable are the findings after which there is nothing to write a record to.
var untriable = []string{
	dbschema.ReasonSchemaNotFound, dbschema.ReasonTableMissing, dbschema.ReasonNotATable, dbschema.ReasonForeignTable,
	dbschema.ReasonColumnMissing, dbschema.ReasonColumnTypeMismatch, dbschema.ReasonInvalidTimeZone,
}

// checkTable judges the table by its catalogue: one failed check for each problem, or one
// that passed. goOn is false when no record could be written at all.
func (r *run) checkTable(ctx context.Context) (goOn bool, err error) {
	started := time.Now()
	problems, goOn := r.findings()
	if goOn {
		more, err := r.catalogueProblems(ctx)
		if err != nil {
			return false, err
		}
		problems = append(problems, more...)
	}
	seconds := time.Since(started).Seconds()
	for _, problem := range problems {
		r.report.Checks = append(r.report.Checks, Check{
			Name: checkTableName, Connection: inboxName, Expected: expectedTable, Happened: problem.happened, Reason: problem.reason, Seconds: seconds,
		})
	}
	if len(problems) == 0 {
		r.report.Checks = append(r.report.Checks, Check{
			Name: checkTableName, Connection: inboxName, Passed: true, Expected: expectedTable, Happened: "it is so", Seconds: seconds,
		})
	}
	return goOn, nil
}

// findings are those of the schema's own comparison that break the contract.
func (r *run) findings() (problems []violation, goOn bool) {
	goOn = true
	for _, finding := range dbschema.Compare(r.options.Contract, r.observed).Findings {
		if !finding.Blocking || finding.Reason == dbschema.ReasonIndexNameTaken {
			continue // a name only hinders the plan
		}
		reason := finding.Reason
		if reason == dbschema.ReasonUniqueKeyMissing && r.keyIsDeferrable() {
			reason = ReasonKeyDeferrable
		}
		problems = append(problems, violation{reason, finding.Message})
		goOn = goOn && !slices.Contains(untriable, finding.Reason)
	}
	return problems, goOn
}

func (r *run) keyIsDeferrable() bool {
	return slices.ContainsFunc(r.observed.Indexes, func(index dbschema.Index) bool {
		columns := slices.Sorted(slices.Values(index.Columns))
		pair := slices.Sorted(slices.Values([]string{r.options.Contract.Transport, r.options.Contract.MessageID}))
		return index.Unique && !index.Immediate && slices.Equal(columns, pair)
	})
}

// catalogueProblems looks for what the schema's comparison does not: foreign keys that
// remove proofs. Policies and columns that a drill cannot fill are obstacles.
func (r *run) catalogueProblems(ctx context.Context) ([]violation, error) {
	var hidden bool
	var foreignKeys []string
	err := r.cleaner.QueryRow(ctx, `SELECT row_security_active(c.oid),
			ARRAY(SELECT format('%I (to %s, ON DELETE %s)', k.conname, k.confrelid::regclass,
					CASE k.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'SET DEFAULT' END)
				FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.confdeltype IN ('c', 'n', 'd') ORDER BY k.conname)
		FROM pg_catalog.pg_class c WHERE c.oid = $1::bigint::oid`, int64(r.table.oid)).Scan(&hidden, &foreignKeys)
	if err != nil {
		return nil, err
	}
	if hidden {
		return nil, hinder(ReasonRowSecurity, "row-level security of %s applies to the drill's role, which may then not see, and not remove, its own records: "+
			"give the role BYPASSRLS or a policy as the table's owner", r.table.name)
	}
	if columns := r.unknownColumns(); len(columns) > 0 {
		return nil, hinder(ReasonColumnsWithoutDefault, "%s wants a value in %s, and a drill has none: give each a default, or let it accept NULL", r.table.name, strings.Join(columns, ", "))
	}
	var problems []violation
	for _, key := range foreignKeys {
		problems = append(problems, violation{ReasonProofsDeleted, fmt.Sprintf("foreign key %s of %s removes or changes proofs when the row that they point to is deleted: drop the foreign key", key, r.table.name)})
	}
	return problems, nil
}

// unknownColumns want a value that only the application knows.
func (r *run) unknownColumns() []string {
	c := r.options.Contract
	var columns []string
	for _, column := range r.observed.Columns {
		ours := slices.Contains([]string{c.Transport, c.MessageID, c.ProcessedAt}, column.Name)
		if !ours && !column.Nullable && !column.HasDefault {
			columns = append(columns, quote(column.Name))
		}
	}
	return columns
}

// suspects are the rules and triggers that could have dropped, changed or kept a record.
func (r *run) suspects() string {
	var named []string
	for _, rule := range r.observed.Rules {
		named = append(named, "rule "+quote(rule))
	}
	for _, trigger := range r.observed.Triggers {
		named = append(named, "trigger "+quote(trigger))
	}
	if len(named) == 0 {
		return "nothing in the catalogue explains it"
	}
	return "the table has " + strings.Join(named, ", ")
}
