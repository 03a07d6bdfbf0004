package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/tablestats"
)

// measureTable fills in the table's size and age. It never fails the reconcile: the
// numbers inform, and the last known ones stay.
func (r *Reconciler) measureTable(ctx context.Context, s *scope) {
	observed, verdict := s.database.Schema.Observed, s.database.Schema.Verdict
	if s.pool == nil || !observed.Exists || !verdict.Met() {
		return
	}
	contract := assessment.Contract(&s.inbox.Spec)
	ages, err := tablestats.Measure(ctx, s.pool, contract, observed)
	if err != nil {
		log.FromContext(ctx).Info("the table's age is unknown", "reason", classified(err).Message)
		return
	}
	counters, err := tablestats.ReadCounters(ctx, s.pool, contract, observed)
	if err != nil {
		log.FromContext(ctx).Info("the table's statistics are unknown", "reason", classified(err).Message)
		return
	}
	table := s.tableStatus()
	table.Rows, table.Bytes = observed.EstimatedRows, observed.Bytes
	table.OldestRecord, table.NewestRecord = timestamp(ages.Oldest), timestamp(ages.Newest)
	table.IndexBytes, table.DeadRows, table.BloatBytes = counters.IndexBytes, counters.Dead, counters.Bloat()
	table.LastVacuum = timestamp(counters.LastVacuum)
	s.look = &tablestats.Sample{Counters: counters, Ages: ages, Retention: assessment.EffectiveRetention(&s.inbox.Spec)}
}

func (s *scope) tableStatus() *v1alpha1.TableStatus {
	if s.status().Table == nil {
		s.status().Table = &v1alpha1.TableStatus{}
	}
	return s.status().Table
}

// compareTable adds this reconcile's look to the table's history and judges what it
// tells: who else deletes, and how the table grows. The reports of the ended runs have
// been taken up before, so that the operator's own deletions are known.
func (r *Reconciler) compareTable(ctx context.Context, s *scope, runs takenUp) error {
	key := client.ObjectKeyFromObject(s.inbox)
	if s.look != nil {
		quiet, drilled, err := r.lookAtJobs(ctx, s)
		if err != nil {
			return err
		}
		pruning := s.pruningStatus()
		s.look.Quiet = quiet
		s.look.Pruned = pruning.RowsDeleted
		s.look.PrunedKnown = !r.histories.uncounted(key, runs.uncounted, quiet)
		s.look.Drilled = drilled || drilledSince(s.status().Drill, s.history)
		if last := pruning.LastRun; last != nil && last.Cutoff != nil {
			s.look.Cutoff = &last.Cutoff.Time
		}
		s.history = tablestats.Advance(s.history, *s.look)
		r.histories.set(key, s.inbox.UID, s.history)
	}
	if s.history == nil {
		return nil
	}
	table := s.tableStatus()
	if s.history.WorthSaving(assessment.History(table)) {
		assessment.SaveHistory(table, s.history)
	}
	table.GrowthBytesPerDay = s.history.GrowthBytesPerDay(table.Rows, table.Bytes)
	table.ProjectedBytes = s.history.ProjectedBytes(table.Rows, table.Bytes)
	s.set(s.retentionSafe())
	return nil
}

// statisticsArrive is how long after its end a session's numbers may be missing from
// the statistics: a second in PostgreSQL, and the rest for two machines' clocks.
const statisticsArrive = 15 * time.Second

// lookAtJobs says whether the table is quiet, with no Job of the resource at work and
// none that ended a moment ago, and whether one that does not prune, such as a drill,
// ended since the last look.
func (r *Reconciler) lookAtJobs(ctx context.Context, s *scope) (quiet, drilled bool, err error) {
	var jobs batchv1.JobList
	err = r.Client.List(ctx, &jobs, client.InNamespace(s.inbox.Namespace), client.MatchingLabels{LabelManagedBy: ManagedBy, labelInbox: string(s.inbox.UID)})
	if err != nil {
		return false, false, fmt.Errorf("listing the Jobs of %s: %w", client.ObjectKeyFromObject(s.inbox), err)
	}
	quiet = true
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if !finished(job) || s.now.Sub(endOf(job).Time) < statisticsArrive {
			quiet = false
		}
		if job.Labels[labelPurpose] != purposePrune && s.history != nil && endOf(job).After(s.history.Last.Clock) {
			drilled = true
		}
	}
	return quiet, drilled, nil
}

// drilledSince tells of a drill whose Job is no longer kept.
func drilledSince(drill *v1alpha1.DrillStatus, history *tablestats.History) bool {
	return drill != nil && drill.LastRun != nil && history != nil && drill.LastRun.After(history.Last.Clock)
}

// histories holds what was learned of each table since the manager began, or since the
// status saved it.
type histories struct {
	mutex   sync.Mutex
	entries map[types.NamespacedName]historyEntry
}

type historyEntry struct {
	uid       types.UID
	history   *tablestats.History
	uncounted bool
}

// of returns the resource's history; the saved one when the manager has none yet.
func (h *histories) of(key types.NamespacedName, uid types.UID, saved *tablestats.History) *tablestats.History {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	entry, found := h.entries[key]
	if !found || entry.uid != uid {
		entry = historyEntry{uid: uid, history: saved}
		h.put(key, entry)
	}
	return entry.history
}

func (h *histories) set(key types.NamespacedName, uid types.UID, history *tablestats.History) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.put(key, historyEntry{uid: uid, history: history, uncounted: h.entries[key].uncounted})
}

// uncounted says whether a run since the last quiet look deleted a number of rows that
// nobody knows, and remembers it until then.
func (h *histories) uncounted(key types.NamespacedName, now, quiet bool) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	entry := h.entries[key]
	uncounted := entry.uncounted || now
	entry.uncounted = uncounted && !quiet
	h.put(key, entry)
	return uncounted
}

func (h *histories) put(key types.NamespacedName, entry historyEntry) {
	if h.entries == nil {
		h.entries = map[types.NamespacedName]historyEntry{}
	}
	h.entries[key] = entry
}

func (h *histories) forget(key types.NamespacedName) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.entries, key)
}
