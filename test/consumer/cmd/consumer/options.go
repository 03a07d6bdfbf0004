package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/test/consumer"
)

type options struct {
	queue, transport string
	inbox            dbschema.Contract
	count            int
	loseAcks         int
	redeliverTimeout time.Duration
	maxDuration      time.Duration
	target           *database.Config
}

func parseOptions(command string, arguments []string) (options, error) {
	o := options{inbox: consumer.DefaultInbox}
	flags := flag.NewFlagSet("consumer "+command, flag.ContinueOnError)
	flags.StringVar(&o.queue, "queue", "orders", "`name` of the queue")
	flags.StringVar(&o.transport, "transport", "", "`name` of the transport that the inbox records (default that of the queue)")
	flags.StringVar(&o.inbox.Schema, "schema", o.inbox.Schema, "`schema` of the inbox table")
	flags.StringVar(&o.inbox.Table, "table", o.inbox.Table, "`name` of the inbox table")
	flags.IntVar(&o.count, "count", 10, "`number` of orders")
	flags.IntVar(&o.loseAcks, "lose-acks", 0, "`number` of handled messages whose acknowledgement is lost")
	flags.DurationVar(&o.redeliverTimeout, "redeliver-timeout", time.Hour, "time after which an unacknowledged message comes back")
	flags.DurationVar(&o.maxDuration, "max-duration", time.Minute, "time after which to stop though messages are left")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.count < 0 || o.loseAcks < 0 || o.redeliverTimeout < time.Second || o.maxDuration <= 0 {
		return o, errors.New("numbers must not be negative, the redeliver timeout at least 1s, the maximum duration positive")
	}
	if o.transport == "" {
		o.transport = o.queue
	}
	target, err := database.Parse(os.Getenv(urlVariable))
	if err != nil {
		return o, fmt.Errorf("the database URL in the environment variable %s: %w", urlVariable, err)
	}
	o.target = target
	return o, nil
}

// open connects and makes the tables of the transport and of the application.
func open(ctx context.Context, o options) (*consumer.Doctrine, *pgx.Conn, error) {
	connection, err := o.target.Connect(ctx, database.Limits{ApplicationName: "consumer", LockTimeout: time.Minute, StatementTimeout: time.Minute})
	if err != nil {
		return nil, nil, err
	}
	broker := consumer.NewDoctrine(connection, o.queue, o.redeliverTimeout)
	err = broker.Setup(ctx)
	if err == nil {
		err = consumer.SetupShipments(ctx, connection)
	}
	if err != nil {
		return nil, nil, errors.Join(err, broker.Close(context.WithoutCancel(ctx)))
	}
	return broker, connection, nil
}
