package pruner

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// walk visits all expired records, slice by slice.
type walk interface {
	// step deletes, or under a dry run counts, about size records in one transaction and
	// moves on. After an error it stands where it stood.
	step(ctx context.Context, size int) (int64, error)
	// lookup moves on like step and deletes nothing: it returns those of the records that
	// have ids with one of the digests.
	lookup(ctx context.Context, size int, digests []int64) (heldRecords, error)
	// skip moves on by about size records and leaves them for reopen.
	skip(ctx context.Context, size int) error
	// finished says whether nothing is left to visit but what was skipped.
	finished() bool
	// reopen goes back to what was skipped, and says whether there is any.
	reopen() bool
	// fraction of the work that is done, from 0 to 1.
	fraction() float64
	// remaining is the oldest record that is left, where that can be told.
	remaining(ctx context.Context, cutoff time.Time) (*time.Time, error)
}

// SQLSTATEs of failures that pass.
const (
	serializationFailure    = "40001"
	deadlockDetected        = "40P01"
	lockNotAvailable        = "55P03"
	queryCanceled           = "57014"
	untranslatableCharacter = "22P05"
)

const (
	// triesOfOneSlice is how often a slice is tried at its smallest size.
	triesOfOneSlice = 3
	// hopelessTries is after how many failures without a success the run ends: enough to
	// skip a million locked records in steps that double.
	hopelessTries = 60
	firstBackoff  = 20 * time.Millisecond
	maxBackoff    = 250 * time.Millisecond
)

// walk visits slices until nothing is left or something stops it, and sets the result.
func (r *run) walk(ctx context.Context, w walk) error {
	p := &patience{batch: newBatch(r.options.BatchSize), skip: 1, backoff: firstBackoff}
	lagging := &replicas{conn: r.conn}
	for {
		for !w.finished() {
			stop, err := r.slice(ctx, w, p, lagging)
			if err != nil {
				return err
			}
			if stop != "" {
				r.stop(stop)
				return nil
			}
		}
		if p.secondPass || !w.reopen() {
			break
		}
		p.secondPass = true
	}
	if p.secondPass && w.reopen() {
		r.stop(ReasonRecordsLocked)
		return nil
	}
	r.report.Result, r.report.Reason = ResultDone, ReasonCompleted
	return nil
}

// stop ends the run with expired records left.
func (r *run) stop(reason string) {
	r.report.Result, r.report.Reason = ResultTimeLimit, reason
	r.report.note("%s", map[string]string{
		ReasonTimeLimit:     "the time limit of " + r.options.MaxDuration.String() + " was reached with expired records left; the next run goes on",
		ReasonInterrupted:   "the run was asked to stop; the next run goes on",
		ReasonRecordsLocked: "other sessions held locks on some expired records, which were left for the next run",
		ReasonLockTimeout:   "another session held a lock on the table and no slice succeeded; the next run tries again",
		ReasonReplicaLag:    "a replica was more than " + r.options.MaxReplicaLag.String() + " behind until the time limit; the next run goes on",
	}[reason])
}

// slice visits one slice, or makes the best of its failure. It returns the reason to stop, if any.
func (r *run) slice(ctx context.Context, w walk, p *patience, lagging *replicas) (stop string, err error) {
	if stop, err = r.awaitReplicas(ctx, lagging); stop != "" || err != nil {
		return stop, err
	}
	if stop = r.mustStop(ctx); stop != "" {
		return stop, nil
	}
	started := time.Now()
	rows, err := w.step(ctx, p.batch.size)
	if err != nil {
		return r.recover(ctx, w, p, err)
	}
	p.succeeded(time.Since(started))
	r.report.Slices++
	r.report.RowsDeleted += rows
	r.tell(w, "")
	if !w.finished() {
		r.sleep(ctx, r.options.Pace)
	}
	return "", nil
}

// recover decides what follows a failed slice: a smaller one, the same again, or the one
// after it.
func (r *run) recover(ctx context.Context, w walk, p *patience, cause error) (stop string, err error) {
	code := codeOf(cause)
	locked := code == lockNotAvailable
	if !locked && code != queryCanceled && code != serializationFailure && code != deadlockDetected {
		return "", cause
	}
	r.report.Retries++
	p.failed()
	if p.failures > hopelessTries {
		if locked {
			return ReasonLockTimeout, nil
		}
		return "", cause
	}
	if p.tries >= triesOfOneSlice {
		if !locked {
			return "", cause
		}
		if err := r.skip(ctx, w, p); err != nil {
			return "", err
		}
	}
	r.tell(w, "the lock of another session")
	r.sleep(ctx, p.backoff)
	return "", nil
}

// codeOf is PostgreSQL's code of an error; "" when it is none of PostgreSQL's.
func codeOf(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// skip leaves locked records behind, twice as many each time in a row.
func (r *run) skip(ctx context.Context, w walk, p *patience) error {
	err := w.skip(ctx, p.skip)
	if codeOf(err) == lockNotAvailable {
		return nil // the table itself is locked: wait where we are
	}
	p.tries = triesOfOneSlice - 1
	p.skip = min(p.skip*2, 1<<30)
	return err
}

// mustStop returns why the run has to end now, if it has to.
func (r *run) mustStop(ctx context.Context) string {
	switch {
	case ctx.Err() != nil:
		return ReasonInterrupted
	case time.Since(r.started) >= r.options.MaxDuration:
		return ReasonTimeLimit
	}
	return ""
}

// awaitReplicas waits while a replica is too far behind.
func (r *run) awaitReplicas(ctx context.Context, lagging *replicas) (stop string, err error) {
	if r.options.MaxReplicaLag == 0 || !lagging.due() {
		return "", nil
	}
	for {
		// The look is short: it is finished also when the run shall stop.
		lag, err := lagging.lag(context.WithoutCancel(ctx))
		if err != nil {
			return "", err
		}
		if lag <= r.options.MaxReplicaLag {
			return "", nil
		}
		switch r.mustStop(ctx) {
		case ReasonInterrupted:
			return ReasonInterrupted, nil
		case ReasonTimeLimit:
			return ReasonReplicaLag, nil
		}
		r.progress(Progress{RowsDeleted: r.report.RowsDeleted, Waiting: "a replica that is " + lag.Round(time.Second).String() + " behind"})
		r.sleep(ctx, replicaCheckInterval)
	}
}

func (r *run) tell(w walk, waiting string) {
	r.progress(Progress{RowsDeleted: r.report.RowsDeleted, Fraction: w.fraction(), Waiting: waiting})
}

// sleep waits, at most until the run has to end.
func (r *run) sleep(ctx context.Context, d time.Duration) {
	d = min(d, r.options.MaxDuration-time.Since(r.started))
	if d <= 0 {
		return
	}
	started := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	r.yielded += time.Since(started)
}

// patience is how a run behaves after failures.
type patience struct {
	batch      *batch
	tries      int // of the smallest slice at this position
	failures   int // since the last success
	skip       int // records to skip next
	backoff    time.Duration
	secondPass bool
}

func (p *patience) succeeded(took time.Duration) {
	p.batch.succeeded(took)
	p.tries, p.failures, p.skip, p.backoff = 0, 0, 1, firstBackoff
}

func (p *patience) failed() {
	p.failures++
	if p.batch.smallest() {
		p.tries++
	}
	p.batch.failed()
	p.backoff = min(p.backoff*2, maxBackoff)
}
