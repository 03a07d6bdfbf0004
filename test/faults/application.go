package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/test/consumer"
	"github.com/messaginginbox/operator/test/faults/brokers"
	"github.com/messaginginbox/operator/test/faults/worker"
)

const (
	transport    = "orders"
	failureQueue = "_failed"
)

// application is one database with an inbox that the operator's own code made, and one
// queue on one broker.
type application struct {
	kind   brokers.Kind
	url    string // of the database
	db     *pgx.Conn
	broker consumer.Broker // to publish with
	config worker.Config   // of its workers
	random *rand.Rand

	mutex     sync.Mutex
	events    []worker.Event // of all workers
	published []string       // orders
}

// newApplication makes the tables and the queue.
func newApplication(ctx context.Context, e *environment, kind brokers.Kind, seed uint64) (*application, error) {
	name := fmt.Sprintf("application_%d", e.started.Add(1))
	if err := e.postgres.CreateDatabase(ctx, name); err != nil {
		return nil, err
	}
	a := &application{kind: kind, url: e.postgres.URL(name), random: rand.New(rand.NewPCG(seed, 1))} // #nosec G404 -- not a secret
	a.config = worker.Config{
		Broker: e.address(kind, a.url), Queue: name, FailureQueue: name + failureQueue,
		DatabaseURL: a.url, Transport: transport, ChargeTimeout: 2 * time.Second,
	}
	a.config.Broker.Consumer = "publisher"
	var err error
	if a.db, err = a.connect(ctx, "faults"); err != nil {
		return nil, err
	}
	if err := a.setUp(ctx); err != nil {
		return nil, errors.Join(err, a.db.Close(ctx))
	}
	return a, nil
}

func (a *application) connect(ctx context.Context, name string) (*pgx.Conn, error) {
	target, err := database.Parse(a.url)
	if err != nil {
		return nil, err
	}
	return target.Connect(ctx, database.Limits{ApplicationName: name, StatementTimeout: time.Minute})
}

func (a *application) setUp(ctx context.Context) error {
	observed, err := dbschema.Inspect(ctx, a.db, consumer.DefaultInbox)
	if err != nil {
		return err
	}
	plan := dbschema.Compare(consumer.DefaultInbox, observed).Plan
	if _, err = dbschema.Apply(ctx, a.db, consumer.DefaultInbox, plan.Digest(), dbschema.ApplyOptions{}); err != nil {
		return err
	}
	if err = consumer.SetupShipments(ctx, a.db); err != nil {
		return err
	}
	if err = consumer.NewDoctrine(a.db, a.config.Queue, 0).Setup(ctx); err != nil {
		return err
	}
	a.broker, err = a.config.Broker.Open(ctx, a.config.Queue)
	return err
}

// close ends the application's connections.
func (a *application) close(ctx context.Context) error {
	return errors.Join(a.broker.Close(ctx), a.db.Close(ctx))
}

// publish sends orders with new numbers, each in so many copies with one id.
func (a *application) publish(ctx context.Context, orders, copies int) error {
	for range orders {
		message := consumer.Message{ID: consumer.NewMessageID(), Body: fmt.Sprintf("order-%d", len(a.published)+1)}
		for range copies {
			if err := a.broker.Publish(ctx, message, 0); err != nil {
				return err
			}
		}
		a.published = append(a.published, message.Body)
	}
	return nil
}

// start runs a worker. Its name matters to Redis: a second worker of the same name gets at
// once what the first one left unacknowledged.
func (a *application) start(name string, change func(*worker.Config), observe func(worker.Event)) (*worker.Process, error) {
	config := a.config
	config.Broker.Consumer = name
	config.Seed = a.random.Uint64()
	if change != nil {
		change(&config)
	}
	return worker.Start(config, func(event worker.Event) {
		a.mutex.Lock()
		a.events = append(a.events, event)
		a.mutex.Unlock()
		if observe != nil {
			observe(event)
		}
	})
}

// drain lets an unharmed worker handle what is left: the queue, then, as
// messenger:consume does with a failure transport, what went there.
func (a *application) drain(ctx context.Context, change func(*worker.Config)) error {
	for _, queue := range []string{a.config.Queue, a.config.FailureQueue} {
		p, err := a.start("drain", func(config *worker.Config) {
			if change != nil {
				change(config)
			}
			config.LoseAcks, config.StepDelay, config.UntilDrained = 0, 0, true
			config.Queue, config.FailureQueue = queue, ""
			config.Broker.MaxRetries = 10
		}, nil)
		if err != nil {
			return err
		}
		if _, err := p.Wait(ctx); err != nil {
			return fmt.Errorf("drain %s: %w", queue, err)
		}
	}
	return nil
}

// count is how many events fulfil the condition.
func (a *application) count(condition func(worker.Event) bool) int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	n := 0
	for _, event := range a.events {
		if condition(event) {
			n++
		}
	}
	return n
}

func (a *application) outcomes(outcome consumer.Outcome) int {
	return a.count(func(event worker.Event) bool { return event.Outcome == outcome })
}

func (a *application) failures() int {
	return a.count(func(event worker.Event) bool { return event.Failure != "" })
}

// balance is what became of the published orders.
type balance struct {
	orders, effects, doubled, lost, proofs int
}

// exact says that each order has one effect and one proof.
func (b balance) exact() bool {
	return b.doubled == 0 && b.lost == 0 && b.effects == b.orders && b.proofs == b.orders
}

// String is the balance in words.
func (b balance) String() string {
	return fmt.Sprintf("%d orders, %d effects (%d double, %d lost), %d proofs", b.orders, b.effects, b.doubled, b.lost, b.proofs)
}

// balance reads the application's table and the inbox.
func (a *application) balance(ctx context.Context) (balance, error) {
	b := balance{orders: len(a.published)}
	err := a.db.QueryRow(ctx, `SELECT coalesce(sum(n), 0)::bigint, count(*) FILTER (WHERE n > 1), count(*) FILTER (WHERE n = 0),
			(SELECT count(*) FROM messenger_inbox)
		FROM (SELECT count(shipments.id) AS n FROM unnest($1::text[]) published (order_number)
			LEFT JOIN shipments USING (order_number) GROUP BY order_number) orders`, a.published).
		Scan(&b.effects, &b.doubled, &b.lost, &b.proofs)
	if err != nil {
		return b, fmt.Errorf("count effects and proofs: %w", err)
	}
	return b, nil
}
