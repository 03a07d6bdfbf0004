package pruner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
)

// Prune deletes the expired records of the table, oldest first where an index allows it.
//
// It refuses to start unless the retention covers the required window, the table meets
// the contract, the database accepts writes, and the role may SELECT and DELETE. When ctx
// ends, the slice under way is finished and the run stops. progress, when not nil, is
// called after every slice.
//
// The connection must be used for nothing else meanwhile. The error is not nil exactly when
// the result is Failed; the report then also says what was deleted before.
func Prune(ctx context.Context, conn *pgx.Conn, o Options, progress func(Progress)) (Report, error) {
	o = o.withDefaults()
	r := &run{options: o, conn: conn, progress: progress, started: time.Now(), report: Report{DryRun: o.DryRun}}
	if r.progress == nil {
		r.progress = func(Progress) {}
	}
	err := r.prune(ctx)
	return r.conclude(ctx, err)
}

// run is one run under way.
type run struct {
	options  Options
	conn     *pgx.Conn
	progress func(Progress)
	started  time.Time
	session  *session
	yielded  time.Duration
	report   Report
}

func (r *run) prune(ctx context.Context) (err error) {
	if refused := r.options.check(); refused != nil {
		return refused
	}
	t, err := preflight(ctx, r.conn, r.options)
	if err != nil {
		return err
	}
	if r.session, err = openSession(ctx, r.conn, r.options); err != nil {
		return err
	}
	unlock, err := takeLock(ctx, r.session, t)
	if err != nil {
		return err
	}
	defer func() {
		if r.conn.IsClosed() {
			return // the lock went with the session
		}
		if unlockErr := unlock(context.WithoutCancel(ctx)); err == nil {
			err = unlockErr
		}
	}()

	c, err := readCutoff(ctx, r.session, t, r.options.Retention)
	if err != nil {
		return err
	}
	r.session.earliest = c.now
	r.report.Cutoff = &c.instant
	stop, err := r.holdBack(ctx, &t, c)
	if err != nil {
		return err
	}
	if stop != "" {
		r.stop(stop)
		return nil
	}
	w, err := r.newWalk(ctx, t, c)
	if err != nil {
		return err
	}
	if err := r.walk(ctx, w); err != nil {
		return err
	}
	return r.describe(ctx, t, c, w)
}

func (r *run) newWalk(ctx context.Context, t table, c cutoff) (walk, error) {
	if t.ordered {
		return newTimeWalk(ctx, r.session, t, c.position, r.options.DryRun)
	}
	return newHeapWalk(ctx, r.session, t, c.position, r.options.DryRun)
}

// describe adds to the report what the table looks like after the run.
func (r *run) describe(ctx context.Context, t table, c cutoff, w walk) error {
	oldest, err := w.remaining(ctx, c.position)
	if err != nil {
		return fmt.Errorf("find the oldest remaining record of %s: %w", t.name, err)
	}
	if oldest != nil {
		var instant time.Time
		if instant, err = instantOf(ctx, r.session, t, *oldest); err != nil {
			return err
		}
		r.report.OldestRemaining = &instant
	}
	if held := r.report.HeldSince; held != nil && (r.report.OldestRemaining == nil || held.Before(*r.report.OldestRemaining)) {
		r.report.OldestRemaining = held
	}
	verb := "deleted"
	if r.options.DryRun {
		verb = "dry run, nothing deleted: would delete"
	}
	r.report.note("%s %d records from %s that were older than %s", verb, r.report.RowsDeleted, t.name, c.instant.Format(time.RFC3339))
	if r.report.HeldSince != nil {
		r.report.note("kept %d expired records, the oldest from %s, because their messages still wait in a queue", *r.report.Held, r.report.HeldSince.Format(time.RFC3339))
	}
	if !t.ordered {
		r.report.note("no btree index on %s, so every page of the table was read", t.column)
		return nil
	}
	if err = r.noteUncovered(ctx, t, c); err != nil {
		return err
	}
	future, err := newestInFuture(ctx, r.session, t, c)
	if err == nil && future != nil {
		r.report.note("the newest record is dated %s, which is %s ahead of the database's clock: check the clocks and the time zone of the writers",
			future.Format(time.RFC3339), future.Sub(c.now).Round(time.Second))
	}
	return err
}

// conclude completes the report.
func (r *run) conclude(ctx context.Context, err error) (Report, error) {
	report := &r.report
	report.DurationSeconds = time.Since(r.started).Seconds()
	report.YieldedSeconds = r.yielded.Seconds()
	if r.session != nil {
		report.LongestTransactionSeconds = r.session.longest.Seconds()
	}
	var refused *refusal
	switch {
	case err == nil:
		return *report, nil
	case errors.As(err, &refused):
		report.Result, report.Reason, report.Message = ResultRefused, refused.reason, refused.message
		return *report, nil
	case errors.Is(err, errClockMovedBack):
		report.Result, report.Reason = ResultRefused, ReasonClockMovedBack
		report.Message = fmt.Sprintf("%v during the run; the next run reads it afresh", err)
		return *report, nil
	case ctx.Err() != nil && report.Cutoff == nil:
		report.Result, report.Reason, report.Message = ResultTimeLimit, ReasonInterrupted, "the run was asked to stop before its first slice"
		return *report, nil
	}
	var unread *unreadError
	if errors.As(err, &unread) {
		report.Result, report.Reason, report.Message = ResultFailed, ReasonQueuesUnread, unread.Error()
		return *report, err
	}
	failure := database.Classify(err)
	report.Result, report.Reason = ResultFailed, failure.Reason
	report.Message = fmt.Sprintf("%s; %d records were deleted before", failure.Message, report.RowsDeleted)
	return *report, fmt.Errorf("prune %s: %w", pgx.Identifier{r.options.Contract.Schema, r.options.Contract.Table}.Sanitize(), err)
}
