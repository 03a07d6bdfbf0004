// Package controllers reconciles MessagingInbox resources: it observes the database,
// lets internal/assessment judge what it saw, applies the schema's plan, creates the
// pruning Jobs when every gate is open, and writes the status once per reconcile.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/metrics"
	"github.com/messaginginbox/operator/internal/probe"
)

// The rights that the reconciler uses; config/rbac/role.yaml is generated from these.
//
// +kubebuilder:rbac:groups=messaginginbox.dev,resources=messaginginboxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=messaginginbox.dev,resources=messaginginboxes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles MessagingInbox resources.
type Reconciler struct {
	// Client reads from the manager's cache and writes.
	Client client.Client
	// Live reads from the API server: Secrets, of which the cache holds only the
	// metadata, and Pods, which are looked at once per run.
	Live client.Reader
	// Events records what changed.
	Events events.EventRecorder
	// Pools are the connections to the databases, one small pool for each resource.
	Pools *database.Pools
	// Image of the Jobs' pods: the operator's own.
	Image JobImage
	// Clock returns the current time.
	Clock func() time.Time
	// Recheck is how often a resource is looked at when nothing happens.
	Recheck time.Duration
	// SlowRecheck is how soon a resource that waits on a person is looked at again: what
	// they mend may be out of the operator's sight, such as a GRANT.
	SlowRecheck time.Duration
	// Metrics are told of each resource; nil: nobody asks for metrics.
	Metrics *metrics.Collector

	histories histories
	observer  *probe.Observer
}

// timeLimit of one reconcile. The slowest part, applying a plan, has limits of its own.
const timeLimit = 2 * time.Minute

// Reconcile runs the phases in order. A phase that fails leaves its facts behind, and
// the later ones make of them what they can: the retention is judged also while the
// database is down.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (_ ctrl.Result, err error) {
	inbox := &v1alpha1.MessagingInbox{}
	if err = r.Client.Get(ctx, request.NamespacedName, inbox); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(request.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading %s: %w", request, err)
	}
	if !inbox.DeletionTimestamp.IsZero() {
		// Somebody else's finalizer holds the resource. We have nothing to clean up: its
		// Jobs go with it by their owner reference, and its database is never touched.
		return ctrl.Result{}, nil
	}

	s := newScope(inbox, r.Clock())
	defer func() { err = errors.Join(err, r.patchStatus(ctx, s)) }()
	bounded, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()

	r.connect(bounded, s)
	r.observeTransports(bounded, s)
	r.assessDeclaration(s)
	r.reconcileSchema(bounded, s)
	r.measureTable(bounded, s)
	r.reconcilePromises(bounded, s)
	jobsErr := errors.Join(r.reconcilePruning(bounded, s), r.reconcileDrill(bounded, s))
	s.summarize()
	r.publish(s)
	return r.nextLook(s), errors.Join(jobsErr, s.transientError())
}

// forget drops what the manager holds of a resource that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.Pools.Forget(owner(name))
	r.histories.forget(name)
	r.forgetTransports(name)
	r.Metrics.Forget(name.Namespace, name.Name)
}

// assessDeclaration judges what follows from the spec, from what the transports were seen
// to be, and from what earlier looks at the table found: a condition must not change twice
// in one reconcile.
func (r *Reconciler) assessDeclaration(s *scope) {
	spec := &s.inbox.Spec
	s.history = r.histories.of(client.ObjectKeyFromObject(s.inbox), s.inbox.UID, assessment.History(s.status().Table))
	var overruled []string
	s.requirement, overruled = assessment.ObservedRequirement(spec, s.observations)
	s.status().Retention = assessment.RetentionStatus(spec, s.requirement)
	s.status().Transports = assessment.TransportStatuses(s.requirement)
	assessment.ShowObserved(s.status().Transports, s.observations, s.now)
	s.declared = assessment.ObservedRetentionSafe(spec, s.requirement, s.observations, overruled)
	s.set(s.retentionSafe(), assessment.CoverageComplete(spec), assessment.TransportsObserved(spec, s.observations))
}

// nextLook is the next tick of the schedule or the next recheck, whichever is sooner.
// It has no say while a transient failure is retried with backoff.
func (r *Reconciler) nextLook(s *scope) ctrl.Result {
	wait := r.Recheck
	if s.waitsOnPerson() {
		wait = min(wait, r.SlowRecheck)
	}
	for _, next := range []time.Time{s.pruning.NextRun, s.drill.NextRun} {
		if !next.IsZero() {
			wait = min(wait, max(next.Sub(s.now), time.Second))
		}
	}
	return ctrl.Result{RequeueAfter: wait}
}

// owner is the key of a resource's connection pool.
func owner(name types.NamespacedName) string { return name.String() }
