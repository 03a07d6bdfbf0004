package consumer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/dbschema"
)

// DefaultInbox is the table that the operator makes unless the resource names another.
var DefaultInbox = dbschema.Contract{
	Schema: "public", Table: "messenger_inbox", Transport: "transport", MessageID: "message_id", ProcessedAt: "processed_at",
}

// record writes the proof that the message is handled, and says whether it is the first.
// While another transaction writes the proof of the same message it waits for the end
// of that one. The table must exist: the operator makes it, never the consumer.
func record(ctx context.Context, tx pgx.Tx, inbox dbschema.Contract, transport, messageID string) (bool, error) {
	// The session's time zone is UTC, so this also fits a timestamp with time zone.
	tag, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (%s, %s, %s) VALUES ($1, $2, clock_timestamp() AT TIME ZONE 'UTC')
		ON CONFLICT (%[2]s, %[3]s) DO NOTHING`,
		pgx.Identifier{inbox.Schema, inbox.Table}.Sanitize(),
		pgx.Identifier{inbox.Transport}.Sanitize(),
		pgx.Identifier{inbox.MessageID}.Sanitize(),
		pgx.Identifier{inbox.ProcessedAt}.Sanitize()), transport, messageID)
	if err != nil {
		return false, fmt.Errorf("record message %s of transport %s in the inbox: %w", messageID, transport, err)
	}
	return tag.RowsAffected() == 1, nil
}
