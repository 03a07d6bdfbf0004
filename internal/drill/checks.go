package drill

import (
	"context"
	"errors"
	"time"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/samedatabase"
)

// drilled is one connection that is drilled, by two workers with a session each.
type drilled struct {
	run       *run
	name      string
	config    *database.Config
	mayDelete bool // its role needs DELETE; a handler's does not
	first     *worker
	second    *worker
}

// drill makes all checks on the connection, with a session for each worker. The error is
// an obstacle.
func (d *drilled) drill(ctx context.Context) error {
	first, err := d.config.Connect(ctx, limits())
	if err != nil {
		return err
	}
	defer closeQuietly(ctx, first)
	second, err := d.config.Connect(ctx, limits())
	if err != nil {
		return err
	}
	defer closeQuietly(ctx, second)
	d.first, d.second = &worker{run: d.run, conn: first}, &worker{run: d.run, conn: second}
	return d.makeChecks(ctx)
}

func (d *drilled) makeChecks(ctx context.Context) error {
	if err := d.requirePrivileges(ctx); err != nil {
		return err
	}
	if err := d.checkSettings(ctx); err != nil {
		return err
	}
	// Before this one has passed, nothing is committed that might not be found again.
	if kept, err := d.check(ctx, "record", "an INSERT stores the record as it is written", d.recordIsKept); err != nil || !kept {
		return err
	}
	for _, one := range []struct {
		name, expected string
		try            func(context.Context) (string, error)
	}{
		{"redelivery after commit", "the record of a redelivered message is refused", d.redeliveryAfterCommit},
		{"retry after rollback", "a rollback takes effect and record with it, the retry stores both once", d.retryAfterRollback},
		{"two workers, first commits", "the second waits for the first and is refused", d.firstCommits},
		{"two workers, first rolls back", "the second waits for the first and then stores its record", d.firstRollsBack},
	} {
		if _, err := d.check(ctx, one.name, one.expected, one.try); err != nil {
			return err
		}
	}
	return nil
}

// check runs one check and then leaves both sessions without a transaction and the table
// without a record of the drill.
func (d *drilled) check(ctx context.Context, name, expected string, try func(context.Context) (string, error)) (passed bool, err error) {
	started := time.Now()
	happened, err := try(ctx)
	result := Check{Name: name, Connection: d.name, Expected: expected, Happened: happened, Seconds: time.Since(started).Seconds()}
	var broken *violation
	switch {
	case err == nil:
		result.Passed = true
	case errors.As(err, &broken):
		if lost := d.run.stillAlone(ctx); lost != nil {
			return false, lost
		}
		result.Happened, result.Reason = broken.happened, broken.reason
	default:
		return false, err
	}
	d.run.report.Checks = append(d.run.report.Checks, result)
	return result.Passed, d.reset(ctx)
}

func (d *drilled) reset(ctx context.Context) error {
	for _, session := range []*worker{d.first, d.second} {
		if session.tx == nil {
			continue
		}
		if err := session.rollback(ctx); err != nil {
			return err
		}
	}
	if !d.run.dirty {
		return nil
	}
	_, err := d.run.cleanUp(ctx)
	return err
}

func (d *drilled) requirePrivileges(ctx context.Context) error {
	wanted := []string{"SELECT", "INSERT"}
	c := d.run.options.Contract
	missing, err := database.MissingPrivileges(ctx, d.first.conn, c.Schema, c.Table, wanted...)
	if err != nil {
		return err
	}
	return lacks(d.config.User(), d.run.table, missing)
}

// sharesDatabase keeps a drill from writing to a database where nobody would clean up.
func (d *drilled) sharesDatabase(ctx context.Context) (shared bool, err error) {
	started := time.Now()
	connection, err := d.config.Connect(ctx, limits())
	if err != nil {
		return false, err
	}
	defer closeQuietly(ctx, connection)
	c := d.run.options.Contract
	verdict, err := samedatabase.Compare(ctx, d.run.cleaner, connection, c.Schema, c.Table)
	if err != nil {
		return false, err
	}
	check := Check{
		Name: "shared transaction", Connection: d.name, Passed: verdict.Shared, Expected: "the handlers' transactions are in the inbox's database",
		Happened: verdict.Message, Seconds: time.Since(started).Seconds(),
	}
	if !verdict.Shared {
		check.Reason = verdict.Reason
	}
	d.run.report.Checks = append(d.run.report.Checks, check)
	return verdict.Shared, nil
}

// recordIsKept stores a record, and on the inbox's own connection deletes it, in a
// transaction that is rolled back. Deferred triggers fire within it.
func (d *drilled) recordIsKept(ctx context.Context) (string, error) {
	if err := d.first.record(ctx, proofID); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if _, err := d.first.tx.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
		return "", d.run.refusal(err)
	}
	count, err := d.run.table.records(ctx, d.first.tx, proofID)
	if err != nil {
		return "", err
	}
	if count != 1 {
		return "", violated(ReasonInsertSwallowed, "the INSERT reported 1 row, and %d are there under its transport and id: %s", count, d.run.suspects())
	}
	if !d.mayDelete {
		return "it was there", nil
	}
	tag, err := d.first.tx.Exec(ctx, d.run.table.remove, TransportName, allMessageIDs)
	if err != nil {
		return "", err
	}
	if count, err = d.run.table.records(ctx, d.first.tx, proofID); err != nil {
		return "", err
	}
	if count != 0 {
		return "", violated(ReasonDeleteSwallowed, "a DELETE reported %d rows and left the record, so that expired proofs would stay, and a drill's: %s", tag.RowsAffected(), d.run.suspects())
	}
	return "it was there, and a DELETE removed it", nil
}

// redeliveryAfterCommit is the first half of the contract: a handled message is recognised.
func (d *drilled) redeliveryAfterCommit(ctx context.Context) (string, error) {
	if err := d.first.record(ctx, proofID); err != nil {
		return "", err
	}
	if err := d.first.commit(ctx); err != nil {
		return "", err
	}
	if err := d.mustSee(ctx, 1, ReasonProofNotStored, "after the commit", proofID); err != nil {
		return "", err
	}
	if err := d.second.begin(ctx); err != nil {
		return "", err
	}
	again, err := d.second.insert(ctx, d.run.table.insert, proofID)
	if err != nil {
		return "", err
	}
	if !again.refused() {
		return "", d.accepted(ctx, again)
	}
	if err := d.second.rollback(ctx); err != nil {
		return "", err
	}
	if err := d.ignoredDuplicate(ctx); err != nil {
		return "", err
	}
	return again.String(), d.mustSee(ctx, 1, ReasonDuplicateAccepted, "after the redelivery", proofID)
}

// ignoredDuplicate tries the redelivery with ON CONFLICT DO NOTHING.
func (d *drilled) ignoredDuplicate(ctx context.Context) error {
	if err := d.second.begin(ctx); err != nil {
		return err
	}
	again, tried, err := d.second.insertOrIgnore(ctx, proofID)
	switch {
	case err != nil:
		return err
	case tried && again.err != nil:
		return violated(ReasonSerializationFailure, "with ON CONFLICT DO NOTHING %s", again)
	case tried && again.rows != 0:
		return violated(ReasonDuplicateAccepted, "with ON CONFLICT DO NOTHING %s", again)
	}
	return d.second.rollback(ctx)
}

// accepted finds out what becomes of a duplicate that its INSERT did not refuse.
func (d *drilled) accepted(ctx context.Context, again outcome) error {
	if !again.stored() {
		if again.err != nil {
			return violated(ReasonSerializationFailure, "%s", again)
		}
		return violated(ReasonInsertSwallowed, "%s, so a consumer takes the message for a new one: %s", again, d.run.suspects())
	}
	err := d.second.commit(ctx)
	switch {
	case hasState(err, uniqueViolation):
		return violated(ReasonKeyDeferrable, "the duplicate was refused only at the commit, after the handlers had run: the unique key is deferrable")
	case err != nil:
		return err
	}
	return violated(ReasonDuplicateAccepted, "the duplicate was stored and committed: no immediate unique key covers transport and message id")
}

// retryAfterRollback is the second half: failed work leaves nothing that would stop its
// retry. The effect is a record of its own, written in the same transaction.
func (d *drilled) retryAfterRollback(ctx context.Context) (string, error) {
	if err := d.first.record(ctx, effectID, proofID); err != nil {
		return "", err
	}
	if err := d.first.rollback(ctx); err != nil {
		return "", err
	}
	if err := d.mustSee(ctx, 0, ReasonNotRolledBack, "after the rollback", effectID, proofID); err != nil {
		return "", err
	}
	if err := d.second.record(ctx, effectID, proofID); err != nil {
		return "", err
	}
	if err := d.second.commit(ctx); err != nil {
		return "", err
	}
	if err := d.mustSee(ctx, 2, ReasonProofNotStored, "after the retry", effectID, proofID); err != nil {
		return "", err
	}
	// A consumer that works first and records last: the refusal must undo the work.
	if err := d.first.record(ctx, secondEffect); err != nil {
		return "", err
	}
	again, err := d.first.insert(ctx, d.run.table.insert, proofID)
	if err != nil {
		return "", err
	}
	if !again.refused() {
		return "", violated(ReasonDuplicateAccepted, "a redelivery after the retry: %s", again)
	}
	if err := d.first.rollback(ctx); err != nil {
		return "", err
	}
	return "both were gone, the retry stored both, and a redelivery after it left no second effect",
		d.mustSee(ctx, 0, ReasonNotRolledBack, "after a redelivery was refused", secondEffect)
}

// mustSee looks from another session, through the inbox's own connection.
func (d *drilled) mustSee(ctx context.Context, want int64, reason, when string, ids ...string) error {
	count, err := d.run.seen(ctx, ids...)
	if err != nil {
		return err
	}
	if count != want {
		return violated(reason, "%s the inbox's connection sees %d records in the place of %d: %s", when, count, want, d.run.suspects())
	}
	return nil
}
