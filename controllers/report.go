package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/pruner"
)

// tickOf is the tick that a Job is for. A Job whose annotation somebody removed counts
// by its creation.
func tickOf(job *batchv1.Job) time.Time {
	if tick, err := time.Parse(time.RFC3339, job.Annotations[annotationTick]); err == nil {
		return tick
	}
	return job.CreationTimestamp.Time
}

// finished says whether the Job has ended, in success or not.
func finished(job *batchv1.Job) bool {
	_, failed := failureOf(job)
	return failed || hasCondition(job, batchv1.JobComplete) != nil
}

// failureOf returns why the Job failed.
func failureOf(job *batchv1.Job) (message string, failed bool) {
	condition := hasCondition(job, batchv1.JobFailed)
	if condition == nil {
		return "", false
	}
	return fmt.Sprintf("%s (%s)", condition.Message, condition.Reason), true
}

func hasCondition(job *batchv1.Job, conditionType batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		condition := &job.Status.Conditions[i]
		if condition.Type == conditionType && condition.Status == corev1.ConditionTrue {
			return condition
		}
	}
	return nil
}

// reportOf reads what an ended Job's newest pod reported in its termination message.
// The number of deleted records is exact when that pod was the only one, came to its
// end, and had nothing rolled back.
func (r *Reconciler) reportOf(ctx context.Context, job *batchv1.Job) (run *v1alpha1.PruningRun, exact bool, err error) {
	pods, err := podsOf(ctx, r.Live, job)
	if err != nil {
		return nil, false, err
	}
	run, exact = runOf(job, pods)
	return run, exact, nil
}

// runOf makes one run of a Job and its pods.
func runOf(job *batchv1.Job, pods []corev1.Pod) (run *v1alpha1.PruningRun, exact bool) {
	run = &v1alpha1.PruningRun{
		Job:         job.Name,
		Tick:        metav1.Time{Time: tickOf(job)},
		CompletedAt: endOf(job),
		Result:      v1alpha1.RunDone,
	}
	message, failed := failureOf(job)
	if failed {
		run.Result, run.Message = v1alpha1.RunFailed, message
	}
	terminated := newestTermination(pods)
	if terminated == nil {
		run.Message = joined(run.Message, whyNotStarted(pods), "No pod left a report.")
		return run, false
	}
	var report pruner.Report
	if err := json.Unmarshal([]byte(terminated.Message), &report); err != nil || report.Result == "" {
		run.Message = joined(run.Message, fmt.Sprintf("The pod ended with exit code %d (%s) and left no report.", terminated.ExitCode, terminated.Reason))
		return run, false
	}
	takeUp(run, report)
	return run, len(pods) == 1 && report.Retries == 0 && run.Result != v1alpha1.RunFailed
}

// takeUp copies a report. A Job that failed after a pod reported success, at its
// deadline for example, stays failed.
func takeUp(run *v1alpha1.PruningRun, report pruner.Report) {
	if run.Result != v1alpha1.RunFailed || report.Result == pruner.ResultRefused {
		run.Result = v1alpha1.RunResult(report.Result)
	}
	if report.Message != "" {
		run.Message = report.Message
	}
	run.DryRun = report.DryRun
	run.RowsDeleted = report.RowsDeleted
	run.Duration = inMilliseconds(report.DurationSeconds)
	run.Cutoff = timestamp(report.Cutoff)
	run.Held, run.HeldSince = report.Held, timestamp(report.HeldSince)
}

func newestTermination(pods []corev1.Pod) *corev1.ContainerStateTerminated {
	var newest *corev1.ContainerStateTerminated
	for i := range pods {
		for j := range pods[i].Status.ContainerStatuses {
			terminated := pods[i].Status.ContainerStatuses[j].State.Terminated
			if terminated != nil && (newest == nil || terminated.FinishedAt.After(newest.FinishedAt.Time)) {
				newest = terminated
			}
		}
	}
	return newest
}

// whyNotStarted tells of an image that cannot be pulled, or of a pod that fits nowhere.
func whyNotStarted(pods []corev1.Pod) string {
	for i := range pods {
		for j := range pods[i].Status.ContainerStatuses {
			if waiting := pods[i].Status.ContainerStatuses[j].State.Waiting; waiting != nil {
				return fmt.Sprintf("The pod waits: %s %s.", waiting.Reason, waiting.Message)
			}
		}
		for j := range pods[i].Status.Conditions {
			if condition := &pods[i].Status.Conditions[j]; condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				return fmt.Sprintf("The pod is not scheduled: %s.", condition.Message)
			}
		}
	}
	return ""
}

func endOf(job *batchv1.Job) metav1.Time {
	if job.Status.CompletionTime != nil {
		return *job.Status.CompletionTime
	}
	if failed := hasCondition(job, batchv1.JobFailed); failed != nil {
		return failed.LastTransitionTime
	}
	return job.CreationTimestamp
}

func joined(sentences ...string) string {
	text := ""
	for _, sentence := range sentences {
		if sentence == "" {
			continue
		}
		if text != "" {
			text += " "
		}
		text += sentence
	}
	return text
}
