package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/test/consumer"
)

// publish sends orders, numbered on from the highest number in the queue and the shipments.
func publish(ctx context.Context, o options) (result any, err error) {
	broker, connection, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = broker.Close(context.WithoutCancel(ctx)) }() // everything is committed
	var last int
	err = connection.QueryRow(ctx, `SELECT coalesce(max(substring(number from 'order-(\d+)$')::int), 0)
		FROM (SELECT order_number FROM shipments UNION ALL SELECT body FROM messenger_messages) numbers (number)`).Scan(&last)
	if err != nil {
		return nil, fmt.Errorf("read the last order's number: %w", err)
	}
	ids := make([]string, 0, o.count)
	for number := last + 1; number <= last+o.count; number++ {
		message := consumer.Message{ID: consumer.NewMessageID(), Body: fmt.Sprintf("order-%d", number)}
		if err := broker.Publish(ctx, message, 0); err != nil {
			return nil, err
		}
		ids = append(ids, message.ID)
	}
	return struct {
		Published  int      `json:"published"`
		MessageIDs []string `json:"messageIDs"`
	}{len(ids), ids}, nil
}

// report counts effects, proofs and messages.
func report(ctx context.Context, o options) (result any, err error) {
	broker, connection, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = broker.Close(context.WithoutCancel(ctx)) }() // nothing was written
	shipments, err := consumer.CountShipments(ctx, connection)
	if err != nil {
		return nil, err
	}
	waiting, err := broker.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	var proofs int64
	err = connection.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM %s WHERE %s = $1`,
		pgx.Identifier{o.inbox.Schema, o.inbox.Table}.Sanitize(), pgx.Identifier{o.inbox.Transport}.Sanitize()), o.transport).Scan(&proofs)
	if err != nil {
		return nil, fmt.Errorf("count the proofs in %s.%s: %w", o.inbox.Schema, o.inbox.Table, err)
	}
	return struct {
		consumer.Shipments
		Proofs  int64 `json:"proofs"`
		Waiting int64 `json:"waiting"`
	}{shipments, proofs, waiting}, nil
}
