package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/schedule"
)

// finishedJobsKept is how many ended pruning Jobs stay, for their logs.
const finishedJobsKept = 3

// reconcilePruning takes up what the ended Jobs report, and creates the Job of a tick
// that is due when every gate is open.
func (r *Reconciler) reconcilePruning(ctx context.Context, s *scope) error {
	jobs, err := r.pruningJobs(ctx, s.inbox)
	if err != nil {
		return err
	}
	runs, reportErr := r.takeUpReports(ctx, s, jobs)
	compareErr := r.compareTable(ctx, s, runs)
	s.pruning.LastRun = s.pruningStatus().LastRun
	scheduleErr := r.followSchedule(ctx, s, jobs)
	s.set(assessment.WarnOfSize(assessment.PruningHealthy(&s.inbox.Spec, s.pruning), &s.inbox.Spec, s.status().Table))
	return errors.Join(reportErr, compareErr, scheduleErr, r.removeOldJobs(ctx, jobs))
}

func (s *scope) pruningStatus() *v1alpha1.PruningStatus {
	if s.status().Pruning == nil {
		s.status().Pruning = &v1alpha1.PruningStatus{}
	}
	return s.status().Pruning
}

// pruningJobs are the resource's pruning Jobs in the order of their ticks.
func (r *Reconciler) pruningJobs(ctx context.Context, inbox *v1alpha1.MessagingInbox) ([]batchv1.Job, error) {
	return jobsOf(ctx, r.Client, inbox, purposePrune)
}

// jobsOf are the resource's Jobs of one purpose in the order of their ticks.
func jobsOf(ctx context.Context, kube client.Reader, inbox *v1alpha1.MessagingInbox, purpose string) ([]batchv1.Job, error) {
	var list batchv1.JobList
	err := kube.List(ctx, &list, client.InNamespace(inbox.Namespace), client.MatchingLabels(jobLabels(inbox, purpose)))
	if err != nil {
		return nil, fmt.Errorf("listing the %s Jobs of %s: %w", purpose, client.ObjectKeyFromObject(inbox), err)
	}
	jobs := slices.DeleteFunc(list.Items, func(job batchv1.Job) bool { return !metav1.IsControlledBy(&job, inbox) })
	slices.SortFunc(jobs, func(a, b batchv1.Job) int {
		return cmp.Or(tickOf(&a).Compare(tickOf(&b)), cmp.Compare(a.Name, b.Name))
	})
	return jobs, nil
}

// takenUp is what the runs tell that were taken up in this reconcile.
type takenUp struct {
	// uncounted: a run deleted a number of records that nobody knows exactly.
	uncounted bool
}

// takeUpReports adds each ended run to the status once. Runs do not overlap, so their
// ticks order them.
func (r *Reconciler) takeUpReports(ctx context.Context, s *scope, jobs []batchv1.Job) (takenUp, error) {
	status := s.pruningStatus()
	var runs takenUp
	for i := range jobs {
		job := &jobs[i]
		if !finished(job) || s.takenUp(job) {
			continue
		}
		run, exact, err := r.reportOf(ctx, job)
		if err != nil {
			return runs, err
		}
		status.LastRun = run
		runs.uncounted = runs.uncounted || !exact
		if !run.DryRun {
			status.RowsDeleted += run.RowsDeleted
		}
	}
	return runs, nil
}

// takenUp says whether the Job's run is in the status already.
func (s *scope) takenUp(job *batchv1.Job) bool {
	last := s.pruningStatus().LastRun
	return last != nil && !last.Tick.After(s.now) && !tickOf(job).After(last.Tick.Time)
}

// followSchedule creates the Job of the newest tick that is due. A tick that passed
// while a gate was shut, or while a run was at work, is made up for by one run.
func (r *Reconciler) followSchedule(ctx context.Context, s *scope, jobs []batchv1.Job) error {
	spec, status := &s.inbox.Spec, s.pruningStatus()
	status.NextRun = nil
	var err error
	if s.pruning.TooShortForOthers, err = tooShortForOthers(ctx, r.Client, s.inbox); err != nil {
		return err
	}
	// Before the schedule is read: a run that is no longer wanted must end also when a
	// typing error crept into it.
	if jobs, err = r.stopOutdatedRuns(ctx, s, jobs); err != nil {
		return err
	}
	ticks, err := schedule.Parse(string(spec.Pruning.Schedule), spec.Pruning.TimeZone)
	if err != nil {
		if !errors.As(err, &s.pruning.ScheduleError) {
			return err
		}
		return nil
	}
	s.pruning.Blocker = assessment.Blocker(s.status().Conditions, s.inbox.Generation)
	if s.pruning.Overdue, err = r.overdueRun(ctx, s, jobs); err != nil {
		return err
	}
	if whyNotPrune(s.inbox) != "" || s.pruning.TooShortForOthers != "" || s.pruning.Elsewhere != "" {
		return nil
	}
	if s.pruning.NextRun = ticks.Next(s.now); !s.pruning.NextRun.IsZero() {
		status.NextRun = &metav1.Time{Time: s.pruning.NextRun}
	}

	tick, due := ticks.Latest(s.lastTick(jobs), s.now)
	if !due || slices.ContainsFunc(jobs, atWork) {
		return nil
	}
	if !s.observations.Complete() {
		return nil // the first look is under way; it reconciles again when it ends
	}
	return r.createPruningJob(ctx, s, tick)
}

// tooShortForOthers says whether another resource needs the proofs of this table for longer.
func tooShortForOthers(ctx context.Context, kube client.Reader, inbox *v1alpha1.MessagingInbox, where ...client.ListOption) (string, error) {
	var all v1alpha1.MessagingInboxList
	if err := kube.List(ctx, &all, where...); err != nil {
		return "", fmt.Errorf("listing the resources of the same table: %w", err)
	}
	return assessment.TooShortForOthers(inbox, all.Items), nil
}

// stopOutdatedRuns removes the Jobs at work that were made from another spec, or that are
// now suspended or unsafe: a pod that waited for its node would prune by arguments that
// nobody declares any more. What is left of their work is taken up by the next Job.
func (r *Reconciler) stopOutdatedRuns(ctx context.Context, s *scope, jobs []batchv1.Job) ([]batchv1.Job, error) {
	var failures []error
	forbidden := s.inbox.Spec.Suspend || s.inbox.Spec.Pruning.Suspend || s.pruning.TooShortForOthers != "" || s.pruning.Elsewhere != "" ||
		!meta.IsStatusConditionTrue(s.status().Conditions, v1alpha1.ConditionRetentionSafe)
	generation := strconv.FormatInt(s.inbox.Generation, 10)
	kept := slices.DeleteFunc(slices.Clone(jobs), func(job batchv1.Job) bool {
		if finished(&job) || (!forbidden && job.Annotations[annotationGeneration] == generation) {
			return false
		}
		failures = append(failures, r.removeJob(ctx, &job))
		return true
	})
	return kept, errors.Join(failures...)
}

// lastTick is the newest tick that was acted on; for a new resource its creation. A tick
// that is still to come, from a clock that was wrong or a hand that edited, does not count:
// it would stop pruning until then.
func (s *scope) lastTick(jobs []batchv1.Job) time.Time {
	acted := []time.Time{s.inbox.CreationTimestamp.Time}
	if run := s.pruningStatus().LastRun; run != nil {
		acted = append(acted, run.Tick.Time)
	}
	for i := range jobs {
		acted = append(acted, tickOf(&jobs[i]))
	}
	acted = slices.DeleteFunc(acted, func(tick time.Time) bool { return tick.After(s.now) })
	if len(acted) == 0 {
		return s.now
	}
	return slices.MaxFunc(acted, time.Time.Compare)
}

// overdueSlack is what a run may take beside its time limit before it is called overdue.
const overdueSlack = 5 * time.Minute

// overdueRun tells of a Job at work that should have ended, and of what its pod waits for.
func (r *Reconciler) overdueRun(ctx context.Context, s *scope, jobs []batchv1.Job) (string, error) {
	limit := s.inbox.Spec.Pruning.MaxDuration.Duration.Duration + overdueSlack
	for i := range jobs {
		job := &jobs[i]
		age := s.now.Sub(job.CreationTimestamp.Time)
		if finished(job) || age < limit {
			continue
		}
		pods, err := podsOf(ctx, r.Live, job)
		if err != nil {
			return "", err
		}
		return joined(fmt.Sprintf("Job %s has not ended after %s.", job.Name, assessment.Human(age.Round(time.Minute))), whyNotStarted(pods)), nil
	}
	return "", nil
}

func (r *Reconciler) createPruningJob(ctx context.Context, s *scope, tick time.Time) error {
	required, err := requiredRetention(s.inbox)
	if err != nil {
		return err
	}
	s.pruning.JobRejected, err = r.createJob(ctx, pruningJob(s.inbox, r.Image, tick, required))
	return err
}

// requiredRetention is what the Job's own retention is checked against once more, next to
// the database: the requirement of the operator's newest assessment, with what it observed.
func requiredRetention(inbox *v1alpha1.MessagingInbox) (time.Duration, error) {
	status := inbox.Status.Retention
	if status == nil || status.RequiredWithMargin == nil {
		return 0, fmt.Errorf("the required window of %s is unbounded, yet its retention was found safe", client.ObjectKeyFromObject(inbox))
	}
	return status.RequiredWithMargin.Duration, nil
}

// createJob returns why the API server rejects the Job, when that is for a person to change,
// or for the end of the namespace. It is tried again at the slow recheck.
func (r *Reconciler) createJob(ctx context.Context, job *batchv1.Job) (rejected string, err error) {
	err = r.Client.Create(ctx, job)
	switch {
	case apierrors.IsAlreadyExists(err): // by an earlier leader, or not yet in the cache
		return "", nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err): // a quota or an admission policy
		return err.Error(), nil
	case err != nil:
		return "", fmt.Errorf("creating Job %s: %w", job.Name, err)
	}
	log.FromContext(ctx).Info("Job created", "job", job.Name, "tick", job.Annotations[annotationTick])
	return "", nil
}

// removeOldJobs keeps the newest ended Jobs. The status has taken up the others.
func (r *Reconciler) removeOldJobs(ctx context.Context, jobs []batchv1.Job) error {
	ended := slices.DeleteFunc(slices.Clone(jobs), func(job batchv1.Job) bool { return !finished(&job) })
	for i := range max(0, len(ended)-finishedJobsKept) {
		if err := r.removeJob(ctx, &ended[i]); err != nil {
			return err
		}
	}
	return nil
}

// removeJob removes a Job and, in the background, its pods.
func (r *Reconciler) removeJob(ctx context.Context, job *batchv1.Job) error {
	err := r.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing Job %s: %w", job.Name, err)
	}
	return nil
}
