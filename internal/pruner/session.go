package pruner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// errClockMovedBack says that the cutoff may have come from a clock that was wrong.
var errClockMovedBack = errors.New("the clock of the database was set back")

// settings apply to one transaction only, so that they also work, and leave no trace,
// behind a pooler. Deletes that a crash of the server loses are done again by the next
// run, so no commit has to wait for the disk. The planner is kept on the timestamp index
// or the page ranges, whatever the statistics say, and off the workers' other cores.
const settings = `SELECT clock_timestamp(),
	set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true),
	set_config('synchronous_commit', 'off', true), set_config('enable_seqscan', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)`

// clockTolerance is a step back of the clock that time synchronisation may make.
const clockTolerance = time.Second

// session runs short transactions.
type session struct {
	conn             *pgx.Conn
	pooled           bool // a pooler may give every transaction another session of the server
	lockTimeout      time.Duration
	statementTimeout time.Duration
	earliest         time.Time     // the database's clock must not show an earlier time
	longest          time.Duration // of all transactions
}

// openSession finds out what the connection leads to: a pooler makes up the process id
// that it gives its clients.
func openSession(ctx context.Context, conn *pgx.Conn, o Options) (*session, error) {
	var pid uint32
	if err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		return nil, fmt.Errorf("ask for the process of the session: %w", err)
	}
	return &session{conn: conn, pooled: pid != conn.PgConn().PID(), lockTimeout: o.LockTimeout, statementTimeout: o.StatementTimeout}, nil
}

// prepare returns the name under which the statement is prepared: a run repeats few
// statements often. Behind a pooler the statement stands for itself.
func (s *session) prepare(ctx context.Context, sql string) (string, error) {
	if s.pooled {
		return sql, nil
	}
	// pgx prepares a name only once.
	name := fmt.Sprintf("inbox_prune_%x", sha256.Sum256([]byte(sql)))[:40]
	_, err := s.conn.Prepare(ctx, name, sql)
	return name, err
}

// statement is one statement of a transaction and where its outcome goes.
type statement struct {
	sql       string
	arguments []any
	affected  *int64 // the number of records that it changed
	row       []any  // or where the values of the one row go that it returns
}

func (s statement) receive(results pgx.BatchResults) error {
	if s.row != nil {
		return results.QueryRow().Scan(s.row...)
	}
	tag, err := results.Exec()
	*s.affected = tag.RowsAffected()
	return err
}

// read scans the one value of one row; pgx.ErrNoRows says that there is none.
func (s *session) read(ctx context.Context, value any, sql string, arguments ...any) error {
	return s.transaction(ctx, statement{sql: sql, arguments: arguments, row: []any{value}})
}

// transaction runs the settings and the statements, in one round trip. What is sent
// together is one transaction, which the server commits when it has answered all of it.
func (s *session) transaction(ctx context.Context, statements ...statement) error {
	// A slice under way is finished also when the run shall stop: it takes
	// milliseconds, and closing the connection instead would leave its outcome unknown.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(len(statements)+1)*s.statementTimeout)
	defer cancel()
	batch := &pgx.Batch{}
	all := append([]statement{{sql: settings, arguments: []any{milliseconds(s.lockTimeout), milliseconds(s.statementTimeout)}}}, statements...)
	for _, statement := range all {
		name, err := s.prepare(ctx, statement.sql)
		if err != nil {
			return err
		}
		batch.Queue(name, statement.arguments...)
	}

	started := time.Now()
	results := s.conn.SendBatch(ctx, batch)
	clock, err := receiveClock(results)
	for _, statement := range statements {
		if err == nil {
			err = statement.receive(results)
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	s.longest = max(s.longest, time.Since(started))
	if err == nil && clock.Add(clockTolerance).Before(s.earliest) {
		return fmt.Errorf("%w from %s to %s", errClockMovedBack, s.earliest.UTC().Format(time.RFC3339), clock.UTC().Format(time.RFC3339))
	}
	return err
}

func receiveClock(results pgx.BatchResults) (time.Time, error) {
	rows, err := results.Query()
	if err != nil {
		return time.Time{}, err
	}
	return pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (time.Time, error) {
		values, err := row.Values()
		if err != nil {
			return time.Time{}, err
		}
		clock, ok := values[0].(time.Time)
		if !ok {
			return time.Time{}, fmt.Errorf("the database's clock is %T", values[0])
		}
		return clock, nil
	})
}

// milliseconds rounds up: 0 would mean no limit.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}
