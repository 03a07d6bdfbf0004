package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/controllers"
)

// pollInterval is how often a Job that is waited for is looked at.
const pollInterval = time.Second

// lookTimeout bounds one look.
const lookTimeout = 30 * time.Second

// byHand is what a command is told that creates a Job now and waits for it.
type byHand struct {
	*cluster
	output  *output
	image   string
	wait    bool
	timeout time.Duration
}

func newByHand() *byHand { return &byHand{cluster: newCluster(), output: newOutput()} }

func (b *byHand) addFlags(command *cobra.Command) {
	b.cluster.addFlags(command)
	b.output.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&b.image, "image", "", "image of the Job; default: that of the resource's newest Job, else of the operator's Deployment")
	flags.BoolVar(&b.wait, "wait", true, "wait for the Job's end and show its result")
	flags.DurationVar(&b.timeout, "timeout", 15*time.Minute, "the longest wait; the Job goes on after it")
}

// start reads the resource, finds the image, and creates the Job.
func (b *byHand) start(ctx context.Context, name string, create func(*connection, *v1alpha1.MessagingInbox, controllers.JobImage) (*batchv1.Job, error)) (*connection, *batchv1.Job, error) {
	if err := b.output.check(); err != nil {
		return nil, nil, err
	}
	if b.timeout <= 0 {
		return nil, nil, fmt.Errorf("--timeout is %s; it must be more than 0s (--wait=false does not wait)", b.timeout)
	}
	connected, err := b.connect()
	if err != nil {
		return nil, nil, err
	}
	inbox, err := connected.inbox(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	image, err := jobImage(ctx, connected, inbox, b.image)
	if err != nil {
		return nil, nil, err
	}
	job, err := create(connected, inbox, image)
	if err != nil {
		return nil, nil, err
	}
	job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	return connected, job, nil
}

// announce says what was created: to people at once, to programs only when nothing more
// follows.
func (b *byHand) announce(command *cobra.Command, job *batchv1.Job) error {
	switch {
	case b.output.forPeople():
		return say(command.OutOrStdout(), "job.batch/%s created", job.Name)
	case !b.wait || b.output.format == outputName:
		return b.output.print(command.OutOrStdout(), job)
	}
	return nil
}

// await looks at the Job until it has a result. The wait's end cuts no request short: what
// the request would then say of it depends on where it was.
func await[Result any](ctx context.Context, b *byHand, kube client.Reader, job *batchv1.Job, result func(context.Context, client.Reader, *batchv1.Job) (*Result, error)) (*Result, error) {
	timeUp := time.NewTimer(b.timeout)
	defer timeUp.Stop()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		found, err := look(ctx, kube, job, result)
		if err != nil || found != nil {
			return found, err
		}
		select {
		case <-timeUp.C:
			return nil, b.ranOut(ctx, kube, job)
		case <-ticker.C:
		}
	}
}

// look reads the Job and its result, which is nil while it is at work.
func look[Result any](ctx context.Context, kube client.Reader, job *batchv1.Job, result func(context.Context, client.Reader, *batchv1.Job) (*Result, error)) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	err := kube.Get(ctx, client.ObjectKeyFromObject(job), job)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the Job %s was removed before its end: the operator does so when the spec changes, and when the resource is suspended or no longer safe", job.Name)
	case err != nil:
		return nil, fmt.Errorf("waiting for Job %s: %w", job.Name, err)
	}
	return result(ctx, kube, job)
}

// ranOut is the end of the wait, with what the pod waits for when that is known.
func (b *byHand) ranOut(ctx context.Context, kube client.Reader, job *batchv1.Job) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	reason, err := controllers.WhyNotStarted(ctx, kube, job)
	if err != nil {
		reason = err.Error()
	}
	message := fmt.Sprintf("Job %s has not ended after %s; it goes on. See kubectl describe job %s -n %s.", job.Name, b.timeout, job.Name, job.Namespace)
	if reason != "" {
		message += " " + reason
	}
	return &exitError{code: exitTimeLimit, err: errors.New(message)}
}

// withCode gives a refusal its exit code.
func withCode(err error, refused int) error {
	var refusal *controllers.Refusal
	if errors.As(err, &refusal) {
		return &exitError{code: refused, err: fmt.Errorf("refused: %w", err)}
	}
	return err
}

func say(out io.Writer, format string, arguments ...any) error {
	if _, err := fmt.Fprintf(out, format+"\n", arguments...); err != nil {
		return fmt.Errorf("saying what was done: %w", err)
	}
	return nil
}
