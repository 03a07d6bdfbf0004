package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
)

// Refusal is why no Job may be created now. Asking again ends the same way until somebody
// changes what it names.
type Refusal struct{ Message string }

// Error is the refusal in words.
func (r *Refusal) Error() string { return r.Message }

func refuse(format string, arguments ...any) *Refusal {
	return &Refusal{Message: fmt.Sprintf(format, arguments...)}
}

// PruneNow creates a pruning Job for somebody who does not wait for the schedule, through
// the schedule's own gates: when one is shut, or a run is at work, the error is a *Refusal.
// The operator looks at the Job at once, stops it when it knows of a shut gate that the
// caller may not see, and takes up its result as that of any run. A dry run deletes nothing.
//
// inbox must be fresh from the API server. The Job has no tick and counts by its creation,
// which is the API server's time: the clock of whoever asks decides nothing.
func PruneNow(ctx context.Context, kube client.Client, inbox *v1alpha1.MessagingInbox, image JobImage, dryRun bool) (*batchv1.Job, error) {
	if why := whyNotPrune(inbox); why != "" {
		return nil, &Refusal{Message: why}
	}
	why, err := whyNotForOthers(ctx, kube, inbox)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, &Refusal{Message: why}
	}
	jobs, err := jobsOf(ctx, kube, inbox, purposePrune)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(jobs, atWork); i >= 0 {
		return nil, refuse("Job %s is at work.", jobs[i].Name)
	}
	required, err := requiredRetention(inbox)
	if err != nil {
		return nil, err
	}
	asked := inbox.DeepCopy()
	asked.Spec.Pruning.DryRun = dryRun || inbox.Spec.Pruning.DryRun
	job := pruningJob(asked, image, time.Time{}, required)
	job.Name = jobName(inbox, purposePrune, nameByHand(inbox, jobs))
	return createByHand(ctx, kube, job)
}

// DrillNow creates a drill Job now, through the gates of a scheduled drill: when one is
// shut, or a drill is at work, the error is a *Refusal. It needs no schedule.
//
// With a schedule the Job is about what the last drill was about: if the table has changed
// since, the operator still makes its own drill of the change. Without one it is about the
// table as the operator sees it when the drill has ended.
func DrillNow(ctx context.Context, kube client.Client, inbox *v1alpha1.MessagingInbox, image JobImage) (*batchv1.Job, error) {
	if why := whyNotDrill(inbox); why != "" {
		return nil, &Refusal{Message: why}
	}
	jobs, err := jobsOf(ctx, kube, inbox, purposeDrill)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(jobs, atWork); i >= 0 {
		return nil, refuse("Job %s is at work.", jobs[i].Name)
	}
	subject := ""
	if inbox.Status.Drill != nil && inbox.Spec.Drill.Schedule != nil {
		subject = inbox.Status.Drill.Subject
	}
	return createByHand(ctx, kube, drillJob(inbox, image, time.Time{}, subject, nameByHand(inbox, jobs)))
}

// nameByHand is a name's end that follows from the resource and its Jobs, so that of two
// people who ask at once, one gets a Job and the other a refusal.
func nameByHand(inbox *v1alpha1.MessagingInbox, jobs []batchv1.Job) string {
	digest := sha256.New()
	_, _ = fmt.Fprintln(digest, inbox.UID) // a digest takes every write
	for i := range jobs {
		_, _ = fmt.Fprintln(digest, jobs[i].UID)
	}
	return "now-" + hex.EncodeToString(digest.Sum(nil)[:4])
}

// isByHand says that a Job is for no tick. A migration is for none either.
func isByHand(job *batchv1.Job) bool {
	_, hasTick := job.Annotations[annotationTick]
	return !hasTick && job.Labels[labelPurpose] != purposeMigrate
}

func createByHand(ctx context.Context, kube client.Client, job *batchv1.Job) (*batchv1.Job, error) {
	delete(job.Annotations, annotationTick)
	err := kube.Create(ctx, job)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, refuse("Job %s was created by somebody else just now.", job.Name)
	case err != nil:
		return nil, fmt.Errorf("creating Job %s in namespace %s: %w", job.Name, job.Namespace, err)
	}
	return job, nil
}

// whyNotPrune is the gate before every pruning Job, whoever wants it: empty when it is open.
func whyNotPrune(inbox *v1alpha1.MessagingInbox) string {
	spec := &inbox.Spec
	switch {
	case !inbox.DeletionTimestamp.IsZero():
		return inbox.Name + " is being deleted."
	case spec.Suspend:
		return "spec.suspend is true: nothing is pruned."
	case spec.Pruning.Suspend:
		return "spec.pruning.suspend is true: nothing is pruned."
	case assessment.InvalidJob(spec) != "":
		return "The API server would refuse the Job: " + assessment.InvalidJob(spec)
	case len(assessment.CoveredTransports(spec)) == 0:
		return "No transport is declared with an inbox and without batch handlers: there is nothing that may be pruned."
	}
	return shut(assessment.Blocker(inbox.Status.Conditions, inbox.Generation), inbox.Generation)
}

// whyNotForOthers is the gate for the other resources of the same table. Who may not list
// them in all namespaces has the operator's word for it, and those of the own namespace.
func whyNotForOthers(ctx context.Context, kube client.Reader, inbox *v1alpha1.MessagingInbox) (string, error) {
	healthy := meta.FindStatusCondition(inbox.Status.Conditions, v1alpha1.ConditionPruningHealthy)
	if healthy != nil && healthy.ObservedGeneration == inbox.Generation &&
		(healthy.Reason == v1alpha1.ReasonTooShortForOthers || healthy.Reason == v1alpha1.ReasonPruningElsewhere) {
		return healthy.Message, nil
	}
	why, err := tooShortForOthers(ctx, kube, inbox)
	if apierrors.IsForbidden(err) {
		return tooShortForOthers(ctx, kube, inbox, client.InNamespace(inbox.Namespace))
	}
	return why, err
}

// whyNotDrill is the gate before every drill, whoever wants it: empty when it is open.
func whyNotDrill(inbox *v1alpha1.MessagingInbox) string {
	switch {
	case !inbox.DeletionTimestamp.IsZero():
		return inbox.Name + " is being deleted."
	case inbox.Spec.Suspend:
		return "spec.suspend is true: no drill is made."
	case assessment.InvalidJob(&inbox.Spec) != "":
		return "The API server would refuse the Job: " + assessment.InvalidJob(&inbox.Spec)
	}
	return shut(assessment.DrillBlocker(inbox.Status.Conditions, inbox.Generation), inbox.Generation)
}

func shut(blocker *metav1.Condition, generation int64) string {
	switch {
	case blocker == nil:
		return ""
	case blocker.ObservedGeneration != 0 && blocker.ObservedGeneration != generation:
		return fmt.Sprintf("%s is known for generation %d, and the spec is at generation %d: the operator has yet to look at it.",
			blocker.Type, blocker.ObservedGeneration, generation)
	default:
		return fmt.Sprintf("%s is %s (%s). %s", blocker.Type, blocker.Status, blocker.Reason, blocker.Message)
	}
}

func atWork(job batchv1.Job) bool { return !finished(&job) }

// PruningResult is what a pruning Job's run came to, or nil while it is at work.
func PruningResult(ctx context.Context, kube client.Reader, job *batchv1.Job) (*v1alpha1.PruningRun, error) {
	if !finished(job) {
		return nil, nil
	}
	pods, err := podsOf(ctx, kube, job)
	if err != nil {
		return nil, err
	}
	run, _ := runOf(job, pods)
	return run, nil
}

// DrillResult is what a drill Job came to, or nil while it is at work.
func DrillResult(ctx context.Context, kube client.Reader, job *batchv1.Job) (*v1alpha1.DrillStatus, error) {
	if !finished(job) {
		return nil, nil
	}
	pods, err := podsOf(ctx, kube, job)
	if err != nil {
		return nil, err
	}
	return drillOf(job, pods), nil
}

// WhyNotStarted tells what a Job's pod waits for, such as an image that cannot be pulled;
// empty when nothing is known to hold it up.
func WhyNotStarted(ctx context.Context, kube client.Reader, job *batchv1.Job) (string, error) {
	pods, err := podsOf(ctx, kube, job)
	if err != nil {
		return "", err
	}
	return whyNotStarted(pods), nil
}

// NewestJobImage is the image of the newest Job that was made for the resource.
func NewestJobImage(ctx context.Context, kube client.Reader, inbox *v1alpha1.MessagingInbox) (image JobImage, found bool, err error) {
	for _, purpose := range []string{purposePrune, purposeDrill, purposeMigrate} {
		jobs, err := jobsOf(ctx, kube, inbox, purpose)
		if err != nil {
			return JobImage{}, false, err
		}
		if len(jobs) > 0 {
			container := jobs[len(jobs)-1].Spec.Template.Spec.Containers[0]
			return JobImage{Name: container.Image, PullPolicy: container.ImagePullPolicy}, true, nil
		}
	}
	return JobImage{}, false, nil
}
