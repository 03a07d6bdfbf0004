package database

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// How long a target that gave no answer in time is left alone: at first, and at most. The
// time doubles with each such failure.
const (
	firstSilence   = 15 * time.Second
	longestSilence = time.Minute
)

// glance is how long Get waits for another attempt at a target that gave no answer before.
const glance = time.Second

// silence is what is remembered of a target that gave no answer in time.
type silence struct {
	err    error
	length time.Duration
	until  time.Time
}

// attempt is a pool that is being checked; those who ask for it meanwhile wait for its end.
type attempt struct {
	done   chan struct{}
	err    error // read after done
	former error // of an attempt before, when the target gave no answer then
}

// wait returns when the attempt has ended, or when the caller has waited for long enough.
func (a *attempt) wait(ctx context.Context) error {
	var enough <-chan time.Time
	if a.former != nil {
		timer := time.NewTimer(glance)
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case <-a.done:
		return a.err
	case <-enough:
		return a.former
	case <-ctx.Done():
		return ctx.Err()
	}
}

// remember notes a failure that took its time. One that comes at once, such as a wrong
// password, costs nobody anything, and ends at once when its cause does. The mutex is held.
func (p *Pools) remember(fingerprint string, err error) {
	if !timedOut(err) || classify(err).Reason != ReasonUnreachable {
		delete(p.silences, fingerprint)
		return
	}
	length := max(firstSilence, min(2*p.silences[fingerprint].length, longestSilence))
	p.silences[fingerprint] = silence{err: err, length: length, until: p.options.Clock().Add(length)}
}

// dropSilent closes a pool whose connection gave no answer in time. The next who asks for
// it has it checked anew.
func (p *Pools) dropSilent(e *entry, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.byTarget[e.fingerprint] != e {
		return // it is being checked for the first time, or was dropped already
	}
	p.remember(e.fingerprint, err)
	p.discard(e)
	p.disown()
}

// used marks a connection that has answered once.
const used = "used"

// answers makes a pool try each connection before it is used. One that was lost since its
// last use, as when the server was restarted, makes the pool take the next. One that gives
// no answer in time ends the search: the next would take as long.
func (c *Config) answers(timeout time.Duration, silent func(error)) func(context.Context, *pgx.Conn) (bool, error) {
	return func(ctx context.Context, connection *pgx.Conn) (bool, error) {
		bounded, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		err := connection.Ping(bounded)
		marks := connection.PgConn().CustomData()
		switch {
		case err == nil:
			marks[used] = true
			return true, nil
		case ctx.Err() == nil && timedOut(err):
			silent(err)
			return false, &ConnectError{config: c, cause: err}
		case ctx.Err() == nil && marks[used] != nil:
			return false, nil
		default:
			return false, err
		}
	}
}
