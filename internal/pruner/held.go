package pruner

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"
)

// lookupBatch is how many records one transaction compares with the waiting messages. It
// locks none of them.
const lookupBatch = 50_000

// digestBatch is how many ids one statement turns into digests.
const digestBatch = 10_000

// heldRecords are expired records whose messages still wait: of each the time, as a value of
// the column, and the digest of its id.
type heldRecords struct {
	times   []time.Time
	digests []int64
}

func (h *heldRecords) add(more heldRecords) {
	h.times, h.digests = append(h.times, more.times...), append(h.digests, more.digests...)
}

// within are the digests of the records from a time up to, without, another. The records
// must be in the order of time.
func (h *heldRecords) within(from, to time.Time) []int64 {
	first, _ := slices.BinarySearchFunc(h.times, from, time.Time.Compare)
	last, _ := slices.BinarySearchFunc(h.times, to, time.Time.Compare)
	return h.digests[first:last]
}

type byTime heldRecords

func (b *byTime) Len() int           { return len(b.times) }
func (b *byTime) Less(i, j int) bool { return b.times[i].Before(b.times[j]) }
func (b *byTime) Swap(i, j int) {
	b.times[i], b.times[j] = b.times[j], b.times[i]
	b.digests[i], b.digests[j] = b.digests[j], b.digests[i]
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

// digestOf is an expression for the number by which an id is compared: a hundred thousand ids
// are long, and every slice would carry them. The column may be a uuid, which PostgreSQL shows
// with dashes and in small letters. Two ids that differ in nothing else both hold, and so would
// two with one digest, which does no harm.
func digestOf(id string) string {
	return `hashtextextended(replace(lower(` + id + `::text COLLATE "C"), '-', ''), 0)`
}

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
// unique key: its statistics tell how many redeliveries the application skipped. A record
// keeps its time, so that each slice needs to know only of those held records whose time
// is in it.
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
	digests, err := r.digests(ctx, waiting.IDs)
	if err != nil {
		return "", err
	}
	w, err := r.newWalk(ctx, *t, c)
	if err != nil {
		return "", err
	}
	held, stop, err := r.lookupAll(ctx, w, digests)
	if err != nil || stop != "" {
		return stop, err
	}
	sort.Sort((*byTime)(&held))
	t.held = held
	count := int64(len(held.times))
	r.report.Held = &count
	if count == 0 {
		return "", nil
	}
	since, err := instantOf(ctx, r.session, *t, held.times[0])
	r.report.HeldSince = &since
	return "", err
}

// digests has the server compute those of the ids, as it does for the records. An id that
// the database's encoding cannot hold is left out: no record has it.
func (r *run) digests(ctx context.Context, ids []string) ([]int64, error) {
	digests := make([]int64, 0, len(ids))
	open := slices.Collect(slices.Chunk(ids, digestBatch))
	for len(open) > 0 {
		some := open[0]
		open = open[1:]
		var more []int64
		err := r.session.read(ctx, &more, `SELECT array_agg(`+digestOf("id")+`) FROM unnest($1::text[]) id`, some)
		switch {
		case err == nil:
			digests = append(digests, more...)
		case codeOf(err) != untranslatableCharacter:
			return nil, fmt.Errorf("compare the waiting messages: %w", err)
		case len(some) > 1:
			half := len(some) / 2
			open = append(open, some[:half], some[half:])
		}
	}
	return digests, nil
}

// lookupAll goes through all expired records, in slices that get smaller when one takes too
// long. While the table is locked it waits.
func (r *run) lookupAll(ctx context.Context, w walk, digests []int64) (all heldRecords, stop string, err error) {
	size := lookupBatch
	for tries := 0; !w.finished(); {
		if stop = r.mustStop(ctx); stop != "" {
			r.report.note("not all expired records could be compared with the waiting messages in that time, so nothing was deleted, and the next run begins anew: raise the time limit if this persists")
			return all, stop, nil
		}
		found, err := w.lookup(ctx, size, digests)
		code := codeOf(err)
		switch {
		case err == nil:
			tries, size = 0, min(2*size, lookupBatch)
			all.add(found)
			continue
		case code == queryCanceled && size > 1:
			size = max(size/8, 1)
		case code == lockNotAvailable, code == serializationFailure, code == deadlockDetected:
			if tries++; tries > triesOfOneSlice {
				return all, ReasonLockTimeout, nil
			}
			r.sleep(ctx, maxBackoff)
		default:
			return all, "", fmt.Errorf("compare the expired records with the waiting messages: %w", err)
		}
		r.report.Retries++
	}
	return all, "", nil
}
