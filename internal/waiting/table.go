package waiting

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/probe"
)

// waitingMessages selects headers and bodies as bytes: a database without an encoding can
// hold some that are not UTF-8, which the server would refuse to send as text.
const waitingMessages = `
	SELECT convert_to(headers, encoding), CASE WHEN headers LIKE '%%%[1]s%%' THEN '' ELSE convert_to(body, encoding) END
	FROM %[2]s, (SELECT CASE getdatabaseencoding() WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END::name AS encoding) AS database
	WHERE queue_name = $1 LIMIT $2`

// readTable reads one queue of a doctrine transport: one statement, so one snapshot, in
// which a message that is just being retried is either still the old row or already the
// new one. A body is fetched only where the headers hold no id.
func readTable(ctx context.Context, target probe.Target, c *collection) error {
	pool, err := target.Open(ctx)
	if err != nil {
		return probe.Explain(target, err)
	}
	table, queueName := target.DoctrineTable()
	statement := fmt.Sprintf(waitingMessages, stampClass, table)
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if limitErr := (database.Limits{StatementTimeout: timeLimit}).ApplyLocal(ctx, tx); limitErr != nil {
			return limitErr
		}
		rows, queryErr := tx.Query(ctx, statement, queueName, int64(c.limit-c.seen+1))
		if queryErr != nil {
			return queryErr
		}
		defer rows.Close()
		var headers, body []byte
		for rows.Next() {
			if scanErr := rows.Scan(&headers, &body); scanErr != nil {
				return scanErr
			}
			c.add(Identify(headers, body))
		}
		return rows.Err()
	})
	if err != nil {
		return probe.Explain(target, err)
	}
	return nil
}
