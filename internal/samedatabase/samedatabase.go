// Package samedatabase tells whether two connections reach the same running database and
// the same inbox table. An inbox protects nothing when the handlers commit elsewhere.
//
// Names and addresses prove nothing: one server has many of them, and a restored backup
// has the same ones. An advisory lock does: it lives in the memory of one server, for one
// database, and is neither replicated nor restored. A lock that is taken through one
// connection and refused through the other shows one database; a lock that is granted
// shows two. Both are tried inside a transaction, so that it also holds through PgBouncer
// in transaction mode.
package samedatabase

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
)

// Beginner begins transactions: a connection or a pool.
type Beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// patience bounds the comparison. A pooler with no server connection left would hold it
// up for minutes otherwise.
const patience = 10 * time.Second

// ErrNoAnswer says that the handlers' connection was open and silent.
var ErrNoAnswer = errors.New("no answer")

// Side is what one of the two connections says of itself.
type Side struct {
	// SystemIdentifier of the cluster; empty when the role may not read it.
	SystemIdentifier string
	// Database is the name of the database.
	Database string
	// DatabaseOID of the database.
	DatabaseOID uint32
	// Address of the server, as it sees itself; empty through a Unix socket.
	Address string
	// InRecovery says that the server is a replica.
	InRecovery bool
	// ReadOnly says that transactions cannot write.
	ReadOnly bool
	// Table is the oid of the inbox table by its schema and name; 0 when there is none.
	Table uint32
	// Found is the table that the name finds without the schema, by the search_path, as
	// an application writes it; 0 when there is none.
	Found uint32
	// FoundName is the name of Found, with its schema.
	FoundName string
}

// Observation is what was seen through both connections.
type Observation struct {
	// Inbox is the connection of the inbox.
	Inbox Side
	// Handler is the handlers' connection.
	Handler Side
	// LockRefused says that the handlers' connection met the lock that the inbox's holds.
	LockRefused bool
}

// Compare looks through both connections, which must be able to have a transaction open at
// the same time, and judges what it saw. It writes nothing. The error is the server's or
// the driver's, for database.Classify.
func Compare(ctx context.Context, inbox Beginner, handler *pgx.Conn, schema, table string) (Verdict, error) {
	observation, err := observe(ctx, inbox, handler, schema, table)
	if err != nil {
		return Verdict{}, err
	}
	return Judge(observation), nil
}

func observe(ctx context.Context, inbox Beginner, handler *pgx.Conn, schema, table string) (o Observation, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// The transactions end with a rollback: all they hold is the lock.
	holder, err := begin(ctx, inbox)
	if err != nil {
		return o, fmt.Errorf("begin a transaction on the inbox's connection: %w", err)
	}
	defer rollback(ctx, holder)
	key, err := takeLock(ctx, holder)
	if err != nil {
		return o, fmt.Errorf("take an advisory lock on the inbox's connection: %w", err)
	}
	if o.Inbox, err = look(ctx, holder, schema, table); err != nil {
		return o, fmt.Errorf("look through the inbox's connection: %w", err)
	}

	other, err := begin(ctx, handler)
	if err != nil {
		return o, silent(ctx, err)
	}
	defer rollback(ctx, other)
	if o.Handler, err = look(ctx, other, schema, table); err != nil {
		return o, silent(ctx, err)
	}
	var granted bool
	if err := other.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, key).Scan(&granted); err != nil {
		return o, silent(ctx, err)
	}
	o.LockRefused = !granted
	return o, nil
}

// begin sets the limits in the transaction: a pooler takes none for the session. Each
// statement has its own snapshot, whatever the session's default.
func begin(ctx context.Context, on Beginner) (pgx.Tx, error) {
	tx, err := on.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, err
	}
	if err := (database.Limits{}).ApplyLocal(ctx, tx); err != nil {
		rollback(ctx, tx)
		return nil, err
	}
	return tx, nil
}

func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = tx.Rollback(ctx) // nothing was written; a lost connection rolls back by itself
}

// takeLock takes an advisory lock that nobody else has and returns its key.
func takeLock(ctx context.Context, tx pgx.Tx) (int64, error) {
	for {
		var random [8]byte
		_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
		key := int64(binary.BigEndian.Uint64(random[:]) >> 1)
		var granted bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, key).Scan(&granted); err != nil {
			return 0, err
		}
		if granted {
			return key, nil
		}
	}
}

func look(ctx context.Context, tx pgx.Tx, schema, table string) (Side, error) {
	facts, err := database.ReadFacts(ctx, tx)
	if err != nil {
		return Side{}, err
	}
	side := Side{SystemIdentifier: facts.SystemIdentifier, Database: facts.Database, InRecovery: facts.InRecovery, ReadOnly: facts.ReadOnly}
	// By the catalogue: to_regclass of a qualified name fails without USAGE on the schema.
	err = tx.QueryRow(ctx, `SELECT d.oid::bigint, coalesce(host(inet_server_addr()) || ':' || inet_server_port(), ''),
			coalesce((SELECT c.oid::bigint FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
				WHERE n.nspname = $1::text AND c.relname = $2::text), 0),
			coalesce(f.oid::bigint, 0), coalesce(quote_ident(fn.nspname) || '.' || quote_ident(f.relname), '')
		FROM pg_catalog.pg_database d
		LEFT JOIN pg_catalog.pg_class f ON f.oid = to_regclass(quote_ident($2::text))
		LEFT JOIN pg_catalog.pg_namespace fn ON fn.oid = f.relnamespace
		WHERE d.datname = current_database()`, schema, table).
		Scan(&side.DatabaseOID, &side.Address, &side.Table, &side.Found, &side.FoundName)
	return side, err
}

// silent says what a time-out of ours most likely means: the connection was open already.
func silent(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return fmt.Errorf("look through the handlers' connection: %w", err)
	}
	return fmt.Errorf("%w through the handlers' connection within %s; behind a pooler that also serves the inbox, its pool needs two server connections: %w",
		ErrNoAnswer, patience, err)
}
