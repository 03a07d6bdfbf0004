package waiting

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/probe"
)

// readTable reads one queue of a doctrine transport: one statement, so one snapshot, in
// which a message that is just being retried is either still the old row or already the
// new one. A body is fetched only where the headers hold no id.
func readTable(ctx context.Context, target probe.Target, c *collection) error {
	pool, err := target.Open(ctx)
	if err != nil {
		return probe.Explain(target, err)
	}
	table, queueName := target.DoctrineTable()
	statement := fmt.Sprintf(`SELECT headers, CASE WHEN headers LIKE '%%%s%%' THEN '' ELSE body END FROM %s WHERE queue_name = $1 LIMIT $2`, stampClass, table)
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := (database.Limits{StatementTimeout: timeLimit}).ApplyLocal(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, statement, queueName, int64(c.limit-c.seen+1))
		if err != nil {
			return err
		}
		var headers, body []byte
		_, err = pgx.ForEachRow(rows, []any{&headers, &body}, func() error {
			c.add(Identify(headers, body))
			return nil
		})
		return err
	})
	if err != nil {
		return probe.Explain(target, err)
	}
	return nil
}
