package businesskeys

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Finding says whether one key is enforced.
type Finding struct {
	// Key that was judged.
	Key Key
	// Enforced is true when PostgreSQL refuses a second row with the key at once.
	Enforced bool
	// Index that enforces the key.
	Index string
	// Missing says which part is missing.
	Missing string
	// SQL adds what is missing; empty when a person must decide first.
	SQL string
}

// relkinds of pg_class. https://www.postgresql.org/docs/current/catalog-pg-class.html
const (
	kindTable       = "r"
	kindPartitioned = "p"
)

var otherKinds = map[string]string{
	"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "i": "an index", "I": "an index", "c": "a type",
}

// Judge compares a key with its table. It reads nothing but its arguments.
func Judge(key Key, table Table) Finding {
	if problem := unfit(key, table); problem != "" {
		return Finding{Key: key, Missing: problem}
	}
	var nullable []string
	for _, column := range key.Columns {
		if !table.Columns[column] {
			nullable = append(nullable, quote(column))
		}
	}
	var flawed []string
	for _, index := range table.Indexes {
		if !sameColumns(index.Columns, key.Columns) {
			continue
		}
		flaw := flawOf(index)
		if flaw == "" && len(nullable) > 0 && !index.NullsNotDistinct {
			return acceptsNulls(key, table, index, nullable)
		}
		if flaw == "" {
			return Finding{Key: key, Enforced: true, Index: index.Name}
		}
		flawed = append(flawed, fmt.Sprintf("%s %s", quote(index.Name), flaw))
	}
	return noIndex(key, table, flawed, len(nullable) > 0)
}

// unfit says why no index of the table could enforce the key.
func unfit(key Key, table Table) string {
	if table.Kind == "" {
		return fmt.Sprintf("table %s does not exist in the inbox's database", key.table())
	}
	if table.Kind != kindTable && table.Kind != kindPartitioned {
		kind, known := otherKinds[table.Kind]
		if !known {
			kind = "no table"
		}
		return fmt.Sprintf("%s is %s, which has no unique index", key.table(), kind)
	}
	var missing []string
	for _, column := range key.Columns {
		if _, found := table.Columns[column]; !found {
			missing = append(missing, quote(column))
		}
	}
	switch {
	case len(missing) > 0:
		return fmt.Sprintf("table %s has no column %s", key.table(), strings.Join(missing, ", "))
	case table.Inherited:
		return fmt.Sprintf("other tables inherit from %s, and a unique index does not reach across them", key.table())
	default:
		return ""
	}
}

func acceptsNulls(key Key, table Table, index Index, nullable []string) Finding {
	var changes []string
	for _, column := range nullable {
		changes = append(changes, fmt.Sprintf("ALTER COLUMN %s SET NOT NULL", column))
	}
	missing := fmt.Sprintf("unique index %s of %s takes no two NULLs for equal, and %s can be NULL", quote(index.Name), key.table(), strings.Join(nullable, ", "))
	if table.NullsNotDistinct {
		missing += " (an index with NULLS NOT DISTINCT would do too)"
	}
	return Finding{Key: key, Missing: missing, SQL: fmt.Sprintf("ALTER TABLE %s %s", key.table(), strings.Join(changes, ", "))}
}

func noIndex(key Key, table Table, flawed []string, nullable bool) Finding {
	columns := make([]string, 0, len(key.Columns))
	for _, column := range key.Columns {
		columns = append(columns, quote(column))
	}
	list := strings.Join(columns, ", ")
	missing := fmt.Sprintf("table %s has no unique index on exactly (%s)", key.table(), list)
	if len(flawed) > 0 {
		missing += " that counts: " + strings.Join(flawed, "; ")
	}
	concurrently := " CONCURRENTLY"
	if table.Kind == kindPartitioned {
		concurrently = "" // PostgreSQL refuses it there
	}
	nulls := ""
	if nullable {
		if table.NullsNotDistinct {
			nulls = " NULLS NOT DISTINCT"
		}
		missing += ", and a column of it can be NULL"
	}
	return Finding{Key: key, Missing: missing, SQL: fmt.Sprintf("CREATE UNIQUE INDEX%s ON %s (%s)%s", concurrently, key.table(), list, nulls)}
}

// flawOf says why an index over the right columns does not refuse a second row at once.
func flawOf(index Index) string {
	switch {
	case !index.Valid || !index.Ready:
		return "is invalid (its build failed or is under way; drop it first if nobody builds it)"
	case index.Partial:
		return "is partial, so rows outside its WHERE clause are not refused"
	case !index.Immediate:
		return "is deferrable, so the second row may be refused only at its commit"
	default:
		return ""
	}
}

func sameColumns(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
