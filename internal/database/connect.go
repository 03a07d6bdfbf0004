package database

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Limits bound what a session may take. A zero field means its default.
type Limits struct {
	ConnectTimeout           time.Duration // for each host; default 5 s. A shorter connect_timeout of the URL wins
	StatementTimeout         time.Duration // default 10 s
	LockTimeout              time.Duration // default 2 s
	IdleInTransactionTimeout time.Duration // default 30 s
	ApplicationName          string        // default "messaging-inbox"; one in the URL wins
}

func (l Limits) withDefaults() Limits {
	for _, field := range []struct {
		value    *time.Duration
		byItself time.Duration
	}{
		{&l.ConnectTimeout, 5 * time.Second},
		{&l.StatementTimeout, 10 * time.Second},
		{&l.LockTimeout, 2 * time.Second},
		{&l.IdleInTransactionTimeout, 30 * time.Second},
	} {
		if *field.value <= 0 {
			*field.value = field.byItself
		}
	}
	if l.ApplicationName == "" {
		l.ApplicationName = "messaging-inbox"
	}
	return l
}

// timeouts are the server's parameters for the limits.
func (l Limits) timeouts() map[string]string {
	l = l.withDefaults()
	return map[string]string{
		"statement_timeout":                   milliseconds(l.StatementTimeout),
		"lock_timeout":                        milliseconds(l.LockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(l.IdleInTransactionTimeout),
	}
}

// milliseconds rounds up: a limit under a millisecond must not become 0, which is none.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10) + "ms"
}

// ApplyLocal sets the limits for the current transaction only. Behind a pooler it is the one
// way that reaches the server, so transactions that rely on a limit call it first.
func (l Limits) ApplyLocal(ctx context.Context, tx Querier) error {
	t := l.timeouts()
	_, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true),
		set_config('idle_in_transaction_session_timeout', $3, true)`,
		t["statement_timeout"], t["lock_timeout"], t["idle_in_transaction_session_timeout"])
	return err
}

// Querier is what a connection, a pool and a transaction of pgx have in common.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// ConnectError is a failure to connect. Its text is that of Classify: what failed, on which
// redacted target, and what to do next. The cause is behind Unwrap.
type ConnectError struct {
	config *Config
	cause  error
}

// Error is the message of the failure.
func (e *ConnectError) Error() string { return Classify(e).Message }

// Unwrap is the driver's error.
func (e *ConnectError) Unwrap() error { return e.cause }

// Connect opens one connection. The error is a *ConnectError.
//
// The limits are sent as startup parameters. PgBouncer refuses those; then the connection is
// opened without them, and only ApplyLocal sets limits: a SET for the session would stay on
// the pooler's server connection and hit whoever gets it next. The time zone (UTC), the style
// of dates (ISO), the encoding and the application name are parameters that PgBouncer keeps
// for each client. So what a role sets for these does not count.
//
// Queries use the extended protocol in one round trip without a prepared or described
// statement (pgx.QueryExecModeExec), so they also work in PgBouncer's transaction mode.
// Parameter types follow from the Go types: cast in SQL where that is not what is wanted.
func (c *Config) Connect(ctx context.Context, limits Limits) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience(limits))
	defer cancel()
	connection, err := pgx.ConnectConfig(ctx, c.connConfig(limits, false))
	if refusesStartupParameter(err) {
		connection, err = pgx.ConnectConfig(ctx, c.connConfig(limits, true))
	}
	if err != nil {
		return nil, &ConnectError{config: c, cause: err}
	}
	return connection, nil
}

// connConfig is what pgx connects with; pooler says that the server refuses the limits.
func (c *Config) connConfig(limits Limits, pooler bool) *pgx.ConnConfig {
	limits = limits.withDefaults()
	config := c.pgx.Copy()
	config.ConnectTimeout = c.timeoutPerHost(limits)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.StatementCacheCapacity = 0
	config.DescriptionCacheCapacity = 0
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = limits.ApplicationName
	}
	if !pooler {
		for key, value := range limits.timeouts() {
			config.RuntimeParams[key] = value
		}
		config.RuntimeParams["extra_float_digits"] = "1" // numbers in full, whatever the role has
	}
	return config
}

func (c *Config) timeoutPerHost(limits Limits) time.Duration {
	timeout := limits.withDefaults().ConnectTimeout
	if c.connectTimeout > 0 {
		timeout = min(timeout, c.connectTimeout)
	}
	return timeout
}

// patience bounds a whole attempt: name resolution and all hosts.
func (c *Config) patience(limits Limits) time.Duration {
	return c.timeoutPerHost(limits) * time.Duration(len(c.hosts()))
}

// refusesStartupParameter recognises PgBouncer's answer to a parameter that it does not keep.
func refusesStartupParameter(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "08P01" && strings.Contains(server.Message, "startup parameter")
}
