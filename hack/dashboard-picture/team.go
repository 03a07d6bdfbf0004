package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/test/consumer"
	"github.com/messaginginbox/operator/test/faults/brokers"
	"github.com/messaginginbox/operator/test/postgres"
)

// Queues of the Doctrine transport in each database.
const (
	failedQueue = "failed"
	outboxQueue = "outbox"
)

// team is one application: a database with an inbox, and one transport.
type team struct {
	namespace, name, transport string
	broker                     brokers.Address
	databaseURL                string
	// pace is the time between two messages, before the play and during it.
	pace time.Duration
	// history is how far back the proofs reach at the start.
	history time.Duration
	// work is how long a handler takes.
	work time.Duration
	// loseEvery is after how many messages a worker dies before its acknowledgement.
	loseEvery int
	// failEvery is of how many messages one fails at its first attempt. One of 30 such
	// messages fails for good.
	failEvery int
	// outbox says that messages go through an outbox; its relay is away for a while.
	outbox    bool
	relayAway span
	// workersAway is when no worker runs.
	workersAway span
	// failed messages wait from the start.
	failed []failure
	// purgeAfter is the age at which a job of the team's own deletes proofs; 0: it has none.
	purgeAfter, purgeEvery time.Duration
}

// failure is a message in the failure transport.
type failure struct {
	// entered is how long ago it came there.
	entered time.Duration
	// handled is how long ago the message was handled for the first time; 0: never.
	handled time.Duration
}

// setUp makes the database as the team has it before the operator comes.
func (t *team) setUp(ctx context.Context, server *postgres.Server) error {
	if err := server.CreateDatabase(ctx, t.name); err != nil {
		return err
	}
	t.databaseURL = server.URL(t.name)
	if t.broker.Kind == brokers.Doctrine {
		t.broker.URL = t.databaseURL
	}
	connection, err := t.connect(ctx)
	if err != nil {
		return err
	}
	err = t.fill(ctx, connection)
	return errors.Join(err, connection.Close(ctx))
}

func (t *team) connect(ctx context.Context) (*pgx.Conn, error) {
	target, err := database.Parse(t.databaseURL)
	if err != nil {
		return nil, err
	}
	return target.Connect(ctx, database.Limits{ApplicationName: t.name, LockTimeout: time.Minute, StatementTimeout: 5 * time.Minute})
}

// proofs are of one message per pace, back to the history's begin.
const proofs = `INSERT INTO messenger_inbox (transport, message_id, processed_at)
	SELECT $1, md5(n::text), (now() AT TIME ZONE 'UTC') - n * make_interval(secs => $2) FROM generate_series(1, $3::int) n`

func (t *team) fill(ctx context.Context, connection *pgx.Conn) error {
	observed, err := dbschema.Inspect(ctx, connection, consumer.DefaultInbox)
	if err != nil {
		return err
	}
	plan := dbschema.Compare(consumer.DefaultInbox, observed).Plan
	if _, err = dbschema.Apply(ctx, connection, consumer.DefaultInbox, plan.Digest(), dbschema.ApplyOptions{}); err != nil {
		return err
	}
	if err = consumer.SetupShipments(ctx, connection); err != nil {
		return err
	}
	if err = consumer.NewDoctrine(connection, failedQueue, 0).Setup(ctx); err != nil {
		return err
	}
	if _, err = connection.Exec(ctx, proofs, t.transport, t.pace.Seconds(), int(t.history/t.pace)); err != nil {
		return fmt.Errorf("fill the inbox: %w", err)
	}
	for _, f := range t.failed {
		if err = t.fail(ctx, connection, f); err != nil {
			return err
		}
	}
	if _, err = connection.Exec(ctx, "VACUUM ANALYZE messenger_inbox"); err != nil {
		return fmt.Errorf("vacuum the inbox: %w", err)
	}
	return nil
}

// fail puts a message into the failure transport, and its proof into the inbox when it
// was handled once.
func (t *team) fail(ctx context.Context, connection *pgx.Conn, f failure) error {
	message := consumer.Message{ID: consumer.NewMessageID(), Body: "1"}
	if err := consumer.NewDoctrine(connection, failedQueue, 0).Publish(ctx, message, 0); err != nil {
		return err
	}
	_, err := connection.Exec(ctx, `UPDATE messenger_messages SET created_at = created_at - $1::interval, available_at = available_at - $1::interval
		WHERE queue_name = $2 AND headers::jsonb ->> 'messageId' = $3`, f.entered, failedQueue, message.ID)
	if err != nil {
		return fmt.Errorf("age a failed message: %w", err)
	}
	if f.handled == 0 {
		return nil
	}
	_, err = connection.Exec(ctx, `INSERT INTO messenger_inbox (transport, message_id, processed_at)
		VALUES ($1, $2, (now() AT TIME ZONE 'UTC') - $3::interval)`, t.transport, message.ID, f.handled)
	if err != nil {
		return fmt.Errorf("record a failed message: %w", err)
	}
	return nil
}

// purge deletes what is older than the team's job allows.
func (t *team) purge(ctx context.Context) error {
	connection, err := t.connect(ctx)
	if err != nil {
		return err
	}
	_, err = connection.Exec(ctx, "DELETE FROM messenger_inbox WHERE processed_at < (now() AT TIME ZONE 'UTC') - $1::interval", t.purgeAfter)
	return errors.Join(err, connection.Close(ctx))
}
