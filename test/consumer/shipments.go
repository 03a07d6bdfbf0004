package consumer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
)

// SetupShipments makes the application's table unless it exists. It has no unique key on
// the order: nothing but the inbox stands between a redelivery and a second shipment.
func SetupShipments(ctx context.Context, db database.Querier) error {
	_, err := db.Exec(ctx, `CREATE TABLE IF NOT EXISTS shipments (
		id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		order_number text NOT NULL,
		shipped_at timestamptz NOT NULL DEFAULT clock_timestamp())`)
	if err != nil {
		return fmt.Errorf("make the table shipments: %w", err)
	}
	return nil
}

// Ship is the handler of an order: its body is the order's number, its effect one row.
func Ship(ctx context.Context, tx pgx.Tx, message Message) error {
	if _, err := tx.Exec(ctx, `INSERT INTO shipments (order_number) VALUES ($1)`, message.Body); err != nil {
		return fmt.Errorf("ship order %s: %w", message.Body, err)
	}
	return nil
}

// Shipments counts the effects.
type Shipments struct {
	// Total is the number of shipments.
	Total int64 `json:"shipments"`
	// ShippedTwice is the number of orders that were shipped more than once.
	ShippedTwice int64 `json:"ordersShippedTwice"`
}

// CountShipments reads the application's table.
func CountShipments(ctx context.Context, db database.Querier) (Shipments, error) {
	var s Shipments
	err := db.QueryRow(ctx, `SELECT coalesce(sum(n), 0)::bigint, count(*) FILTER (WHERE n > 1)
		FROM (SELECT count(*) AS n FROM shipments GROUP BY order_number) orders`).Scan(&s.Total, &s.ShippedTwice)
	if err != nil {
		return Shipments{}, fmt.Errorf("count the shipments: %w", err)
	}
	return s, nil
}
