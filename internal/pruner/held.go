package pruner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// lookupBatch is how many records one transaction compares with the waiting messages. It
// locks none of them.
const lookupBatch = 50_000

// heldRecords are expired records whose messages still wait.
type heldRecords struct {
	count  int64
	oldest *time.Time // as a value of the column
	ids    []string   // normalized
}

// unreadError says that the waiting messages are not known.
type unreadError struct {
	cause error
}

// Error says what that means.
func (e *unreadError) Error() string {
	return fmt.Sprintf("%v; which proofs their messages still need is not known, so nothing was deleted", e.cause)
}

// Unwrap returns the cause.
func (e *unreadError) Unwrap() error { return e.cause }

// normalized is an id in the form in which it is compared: the column may be a uuid,
// which PostgreSQL shows with dashes and in small letters. Two ids that differ in nothing
// else both hold, which does no harm.
func normalized(id string) string { return strings.ReplaceAll(strings.ToLower(id), "-", "") }

// holdBack finds the expired records whose messages still wait in a queue, and makes the
// table keep them. It returns the reason to stop, if any.
//
// The queues are read once, and a message may enter one of them after that. Its proof is
// then no expired one: between the handling of a message and its entry into the failure
// transport lie at most its redeliveries, its retries and the downtime, which are part of
// the required window, and the run refuses to start when the retention is shorter than
// that window. The same holds for an outbox, whose relay publishes a message again at most
// one redelivery later. What the window does not bound is how long a message stays in a
// queue that it entered long ago: those are in the queues when they are read. A message
// that is being retried from the failure transport meanwhile is in it until after its
// handling, and in a stream or table its next copy is written before the old one goes.
//
// The records are looked for in the order of time or of the pages, never through the
// unique key: its statistics tell how many redeliveries the application skipped.
func (r *run) holdBack(ctx context.Context, t *table, c cutoff) (stop string, err error) {
	if r.options.Waiting == nil {
		return "", nil
	}
	waiting, err := r.options.Waiting(ctx)
	if err != nil {
		return "", &unreadError{cause: err}
	}
	if waiting.Refusal != "" {
		return "", refuse(ReasonMessagesWait, "%s", waiting.Refusal)
	}
	if waiting.Note != "" {
		r.report.note("%s", waiting.Note)
	}
	if len(waiting.IDs) == 0 {
		r.report.Held = new(int64)
		return "", nil
	}
	ids := make([]string, len(waiting.IDs))
	for i, id := range waiting.IDs {
		ids[i] = normalized(id)
	}
	w, err := r.newWalk(ctx, *t, c)
	if err != nil {
		return "", err
	}
	found, stop, err := r.lookupAll(ctx, w, ids)
	if err != nil || stop != "" {
		return stop, err
	}
	t.held = found.ids
	r.report.Held = &found.count
	if found.oldest == nil {
		return "", nil
	}
	since, err := instantOf(ctx, r.session, *t, *found.oldest)
	r.report.HeldSince = &since
	return "", err
}

// lookupAll goes through all expired records. While the table is locked it waits.
func (r *run) lookupAll(ctx context.Context, w walk, ids []string) (all heldRecords, stop string, err error) {
	for tries := 0; !w.finished(); {
		if stop = r.mustStop(ctx); stop != "" {
			return all, stop, nil
		}
		found, err := w.lookup(ctx, lookupBatch, ids)
		var answer *pgconn.PgError
		if errors.As(err, &answer) && answer.Code == lockNotAvailable {
			if tries++; tries > triesOfOneSlice {
				return all, ReasonLockTimeout, nil
			}
			r.report.Retries++
			r.sleep(ctx, maxBackoff)
			continue
		}
		if err != nil {
			return all, "", fmt.Errorf("compare the expired records with the waiting messages: %w", err)
		}
		tries = 0
		all.count += found.count
		all.ids = append(all.ids, found.ids...)
		if found.oldest != nil && (all.oldest == nil || found.oldest.Before(*all.oldest)) {
			all.oldest = found.oldest
		}
	}
	return all, "", nil
}
