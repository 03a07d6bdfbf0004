package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/drill"
	"github.com/messaginginbox/operator/internal/schedule"
)

const (
	purposeDrill = "drill"
	// annotationSubject holds the digest of what a drill Job is about.
	annotationSubject = "messaginginbox.dev/drill-subject"
)

// reconcileDrill takes up what the ended drills report, and creates the Job of a drill that
// is due: at a tick of the schedule, or since the table or its connections changed.
func (r *Reconciler) reconcileDrill(ctx context.Context, s *scope) error {
	jobs, err := jobsOf(ctx, r.Client, s.inbox, purposeDrill)
	if err != nil {
		return err
	}
	reportErr := r.takeUpDrills(ctx, s, jobs)
	dueErr := r.drillWhenDue(ctx, s, jobs)
	s.drill.Last = s.status().Drill
	s.set(assessment.ContractProven(&s.inbox.Spec, s.drill))
	return errors.Join(reportErr, dueErr, r.removeOldJobs(ctx, jobs))
}

func (r *Reconciler) takeUpDrills(ctx context.Context, s *scope, jobs []batchv1.Job) error {
	for i := range jobs {
		job, last := &jobs[i], s.status().Drill
		if !finished(job) || (last != nil && last.Tick != nil && !tickOf(job).After(last.Tick.Time)) {
			continue
		}
		pods, err := podsOf(ctx, r.Live, job)
		if err != nil {
			return err
		}
		s.status().Drill = drillOf(job, pods)
	}
	return nil
}

func (r *Reconciler) drillWhenDue(ctx context.Context, s *scope, jobs []batchv1.Job) error {
	spec := &s.inbox.Spec
	if s.status().Drill != nil {
		s.status().Drill.NextRun = nil
	}
	if spec.Drill.Schedule == nil {
		return s.rememberSubject()
	}
	ticks, err := schedule.Parse(string(*spec.Drill.Schedule), spec.Pruning.TimeZone)
	if err != nil {
		if !errors.As(err, &s.drill.ScheduleError) {
			return err
		}
		return nil
	}
	s.drill.Blocker = assessment.DrillBlocker(s.status().Conditions, s.inbox.Generation)
	if whyNotDrill(s.inbox) != "" {
		return nil
	}
	if s.drill.Subject, err = assessment.DrillSubject(spec, s.database.Schema.Observed); err != nil {
		return err
	}
	if s.status().Drill == nil {
		s.status().Drill = &v1alpha1.DrillStatus{}
	}
	s.drill.NextRun = ticks.Next(s.now)
	s.status().Drill.NextRun = &metav1.Time{Time: s.drill.NextRun}
	if slices.ContainsFunc(jobs, atWork) {
		return nil
	}
	job, due := s.dueDrill(jobs, r.Image, ticks)
	if !due {
		return nil
	}
	s.drill.JobRejected, err = r.createJob(ctx, job)
	return err
}

// rememberSubject tells what a drill by hand was about, so that its verdict ends when the
// table or its connections change.
func (s *scope) rememberSubject() (err error) {
	last := s.status().Drill
	if last == nil || whyNotDrill(s.inbox) != "" {
		return nil
	}
	if s.drill.Subject, err = assessment.DrillSubject(&s.inbox.Spec, s.database.Schema.Observed); err != nil {
		return err
	}
	if last.Subject == "" {
		last.Subject = s.drill.Subject
	}
	return nil
}

// dueDrill is the Job of a new subject, else that of the newest tick. Both names follow
// from what was seen, so that two leaders cannot drill twice for one cause.
func (s *scope) dueDrill(jobs []batchv1.Job, image JobImage, ticks *schedule.Schedule) (*batchv1.Job, bool) {
	last := s.status().Drill
	if last.Subject != s.drill.Subject {
		ordinal, tick := int64(0), s.now
		if last.Tick != nil {
			ordinal = last.Tick.Unix() // a table that changes back gets a new drill too
			if next := last.Tick.Add(time.Second); next.After(tick) {
				tick = next // ticks have whole seconds, and each drill its own
			}
		}
		return drillJob(s.inbox, image, tick, s.drill.Subject, fmt.Sprintf("%s-%d", s.drill.Subject[:8], ordinal)), true
	}
	tick, due := ticks.Latest(lastDrill(s.inbox, jobs), s.now)
	return drillJob(s.inbox, image, tick, s.drill.Subject, fmt.Sprintf("%d", tick.Unix()/60)), due
}

// lastDrill is the newest tick that was drilled for; for a new resource its creation.
func lastDrill(inbox *v1alpha1.MessagingInbox, jobs []batchv1.Job) time.Time {
	last := inbox.CreationTimestamp.Time
	if status := inbox.Status.Drill; status != nil && status.Tick != nil && status.Tick.After(last) {
		last = status.Tick.Time
	}
	if len(jobs) > 0 && tickOf(&jobs[len(jobs)-1]).After(last) {
		last = tickOf(&jobs[len(jobs)-1])
	}
	return last
}

// drillJob drills the inbox's connection and those of the handlers.
func drillJob(inbox *v1alpha1.MessagingInbox, image JobImage, tick time.Time, subject, suffix string) *batchv1.Job {
	job := newJob(inbox, image, purposeDrill, suffix)
	job.Annotations = map[string]string{annotationTick: tick.UTC().Format(time.RFC3339), annotationSubject: subject}
	job.Spec.ActiveDeadlineSeconds = seconds(drill.MaxDuration*(backoffLimit+1) + deadlineSlack)

	container := &job.Spec.Template.Spec.Containers[0]
	container.Args = append([]string{"drill"}, contractArguments(assessment.Contract(&inbox.Spec))...)
	container.Args = append(container.Args, "--termination-log=/dev/termination-log")
	container.Env = append(container.Env, connectionEnv(inbox, inbox.Spec.Database.URLSecretRef)...)
	for i, reference := range inbox.Spec.Database.HandlerURLSecretRefs {
		container.Env = append(container.Env, fromSecret(fmt.Sprintf("INBOX_HANDLER_URL_%d", i), reference))
	}
	return job
}

// drillOf makes the status of an ended Job and its pods.
func drillOf(job *batchv1.Job, pods []corev1.Pod) *v1alpha1.DrillStatus {
	ended := endOf(job)
	status := &v1alpha1.DrillStatus{
		Job: job.Name, Tick: &metav1.Time{Time: tickOf(job)}, LastRun: &ended,
		Subject: job.Annotations[annotationSubject], Result: v1alpha1.DrillFailed,
	}
	status.Message, _ = failureOf(job)
	terminated := newestTermination(pods)
	if terminated == nil {
		status.Message = joined(status.Message, whyNotStarted(pods), "No pod left a report.")
		return status
	}
	var report drill.Report
	if err := json.Unmarshal([]byte(terminated.Message), &report); err != nil || report.Result == "" {
		status.Message = joined(status.Message, fmt.Sprintf("The pod ended with exit code %d (%s) and left no report.", terminated.ExitCode, terminated.Reason))
		return status
	}
	status.Result, status.Reason, status.Message = v1alpha1.DrillResult(report.Result), report.Reason, report.Message
	status.Duration = inMilliseconds(report.DurationSeconds)
	if report.LockWaitSeconds > 0 {
		status.LockWait = inMilliseconds(report.LockWaitSeconds)
	}
	for _, check := range report.Checks {
		shown := v1alpha1.DrillCheck{
			Name: check.Name, Connection: check.Connection, Passed: check.Passed, Reason: check.Reason, Duration: *inMilliseconds(check.Seconds),
		}
		if !check.Passed {
			shown.Expected, shown.Happened = check.Expected, check.Happened
		}
		status.Checks = append(status.Checks, shown)
	}
	return status
}

func inMilliseconds(measured float64) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(measured * float64(time.Second)).Round(time.Millisecond)}
}

// podsOf are the pods of a Job.
func podsOf(ctx context.Context, kube client.Reader, job *batchv1.Job) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := kube.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of Job %s: %w", job.Name, err)
	}
	return pods.Items, nil
}
