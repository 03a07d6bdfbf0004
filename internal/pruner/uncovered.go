package pruner

import (
	"context"
	"fmt"
)

// maxUncovered bounds how many records of other transports are counted.
const maxUncovered = 10_000

// noteUncovered says that expired records were kept because their transport is not among
// those whose window is known. After the run little else is left in front of the cutoff.
func (r *run) noteUncovered(ctx context.Context, t table, c cutoff) error {
	if t.covered == nil {
		return nil
	}
	var found struct {
		Count int64  `json:"count"`
		Name  string `json:"name"`
	}
	err := r.session.read(ctx, &found, t.sql(fmt.Sprintf(`SELECT json_build_object('count', count(*), 'name', coalesce(min(transport), '')) FROM (
		SELECT {transport}::text AS transport FROM {table} WHERE {time} < $1 AND {time} > '-infinity' AND NOT ({transport} || '') = ANY ($2::text[])
		ORDER BY {time} LIMIT %d) AS kept`, maxUncovered)), t.value(c.position), t.covered)
	if err != nil {
		return fmt.Errorf("count the records of other transports in %s: %w", t.name, err)
	}
	if found.Count > 0 {
		more := ""
		if found.Count == maxUncovered {
			more = " or more"
		}
		r.report.note("kept %d%s expired records of transports that are not declared with an inbox, such as %q: declare them, so that their window is known", found.Count, more, found.Name)
	}
	return nil
}
