package drill

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/messaginginbox/operator/internal/database"
)

const (
	// holdOn is how long the first worker goes on after the second was seen to wait for it.
	holdOn = 50 * time.Millisecond
	// watchInterval is between two looks at who waits.
	watchInterval = 2 * time.Millisecond
	// watchLimit is how long a second worker may run without waiting and without an answer.
	watchLimit = 2 * time.Second
)

// firstCommits has both ways to write a consumer, since only one of them shows that a
// stricter isolation turns a duplicate into a serialization failure.
func (d *drilled) firstCommits(ctx context.Context) (string, error) {
	second, err := d.compete(ctx, d.plainInsert, d.first.commit)
	switch {
	case err != nil:
		return "", err
	case second.err != nil && !second.refused():
		return "", violated(ReasonSerializationFailure, "%s", second)
	case !second.refused():
		return "", violated(ReasonDuplicateAccepted, "after the first committed, %s", second)
	}
	if err = d.reset(ctx); err != nil {
		return "", err
	}
	tried := true
	ignored, err := d.compete(ctx, func(ctx context.Context) (result outcome, err error) {
		result, tried, err = d.second.insertOrIgnore(ctx, proofID)
		return result, err
	}, d.first.commit)
	switch {
	case !tried:
	case err != nil:
		return "", err
	case ignored.err != nil:
		return "", violated(ReasonSerializationFailure, "with ON CONFLICT DO NOTHING %s: its transaction is not read committed, so it cannot see what the first committed", ignored)
	case ignored.rows != 0:
		return "", violated(ReasonDuplicateAccepted, "with ON CONFLICT DO NOTHING, after the first committed, %s", ignored)
	}
	return fmt.Sprintf("it waited %.3f s; %s", second.seconds, second), nil
}

func (d *drilled) plainInsert(ctx context.Context) (outcome, error) {
	return d.second.insert(ctx, d.run.table.insert, proofID)
}

func (d *drilled) firstRollsBack(ctx context.Context) (string, error) {
	second, err := d.compete(ctx, d.plainInsert, d.first.rollback)
	if err != nil {
		return "", err
	}
	if !second.stored() {
		return "", violated(ReasonNotRolledBack, "after the first rolled back, %s", second)
	}
	if err := d.second.commit(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("it waited %.3f s; %s", second.seconds, second), d.mustSee(ctx, 1, ReasonProofNotStored, "after the second committed", proofID)
}

// compete lets the second worker record what the first has recorded and not yet committed,
// sees it wait, ends the first, and returns what became of the second.
func (d *drilled) compete(ctx context.Context, insert func(context.Context) (outcome, error), end func(context.Context) error) (outcome, error) {
	if err := d.first.record(ctx, proofID); err != nil {
		return outcome{}, err
	}
	if err := d.second.begin(ctx); err != nil {
		return outcome{}, err
	}
	ended := make(chan competitor, 1)
	go func() {
		result, err := insert(ctx)
		ended <- competitor{result, err}
	}()
	early, watchErr := d.watch(ctx, ended)
	if early != nil {
		if early.err != nil {
			return outcome{}, early.err
		}
		return outcome{}, violated(ReasonNoWait, "the second did not wait for the first, whose transaction was open: %s", early.outcome)
	}
	if watchErr == nil {
		time.Sleep(holdOn)
		watchErr = end(ctx)
	}
	if watchErr != nil {
		_ = d.first.rollback(ctx) // lets go of the second, if the session still lives
	}
	second := <-ended // bounded by its lock timeout and its statement timeout
	if watchErr != nil {
		return outcome{}, watchErr
	}
	if second.err == nil {
		d.run.report.LockWaitSeconds = max(d.run.report.LockWaitSeconds, second.outcome.seconds)
	}
	return second.outcome, second.err
}

// competitor is how the second worker's INSERT ended.
type competitor struct {
	outcome outcome
	err     error
}

// watch returns when the second worker waits for the first. The answer of a second worker
// that did not wait is returned instead.
func (d *drilled) watch(ctx context.Context, ended <-chan competitor) (early *competitor, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var waitsFor []int32
	for started := time.Now(); time.Since(started) < watchLimit; {
		if err := d.run.guard.QueryRow(ctx, `SELECT pg_blocking_pids($1::int)`, d.second.pid).Scan(&waitsFor); err != nil {
			return nil, err
		}
		if slices.Contains(waitsFor, d.first.pid) {
			return nil, nil
		}
		select {
		case result := <-ended:
			return &result, nil
		case <-time.After(watchInterval):
		}
	}
	if len(waitsFor) == 0 {
		return nil, hinder(ReasonNoAnswer, "the second worker's INSERT got no answer within %s, and waits for no lock", watchLimit)
	}
	return nil, hinder(database.ReasonLockTimeout, "the second worker's INSERT waits for another session than the first worker's (pid %d)%s", waitsFor[0], d.run.lockHolder(ctx))
}
