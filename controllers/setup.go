package controllers

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// secretIndex finds the resources that read a Secret, by its name.
const secretIndex = "spec.secrets"

// Backoff of transient failures.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// SetupWithManager starts the controller with the manager. At most so many resources
// are reconciled at once: one slow database holds up one of them.
func (r *Reconciler) SetupWithManager(ctx context.Context, manager ctrl.Manager, maxConcurrent int) error {
	err := manager.GetFieldIndexer().IndexField(ctx, &v1alpha1.MessagingInbox{}, secretIndex, func(object client.Object) []string {
		inbox, ok := object.(*v1alpha1.MessagingInbox)
		if !ok {
			return nil
		}
		return secretsOf(inbox)
	})
	if err != nil {
		return fmt.Errorf("indexing the resources by their Secrets: %w", err)
	}
	news, err := r.startObserver(manager)
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&v1alpha1.MessagingInbox{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&batchv1.Job{}, builder.WithPredicates(jobsOfConcern())).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.readersOfSecret)).
		WatchesRawSource(news).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: maxConcurrent,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("starting the controller: %w", err)
	}
	return nil
}

// CacheOptions keep the manager's memory small: of Jobs only the operator's own, of
// Secrets only the metadata (they are watched as such), and nobody's managed fields.
func CacheOptions(namespaces ...string) cache.Options {
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&batchv1.Job{}: {Label: labels.SelectorFromSet(labels.Set{LabelManagedBy: ManagedBy})},
		},
	}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// secretsOf names every Secret that the resource's connections come from.
func secretsOf(inbox *v1alpha1.MessagingInbox) []string {
	declared := inbox.Spec.Database
	names := sets.New(declared.URLSecretRef.Name)
	for _, reference := range []*v1alpha1.SecretKeyReference{declared.MigrationURLSecretRef, declared.PruningURLSecretRef, declared.CASecretRef} {
		if reference != nil {
			names.Insert(reference.Name)
		}
	}
	for _, reference := range declared.HandlerURLSecretRefs {
		names.Insert(reference.Name)
	}
	for i := range inbox.Spec.Transports {
		if observe := inbox.Spec.Transports[i].Observe; observe != nil {
			names.Insert(observe.URLSecretRef.Name)
			if observe.CASecretRef != nil {
				names.Insert(observe.CASecretRef.Name)
			}
		}
	}
	return sets.List(names)
}

func (r *Reconciler) readersOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	var readers v1alpha1.MessagingInboxList
	err := r.Client.List(ctx, &readers, client.InNamespace(secret.GetNamespace()), client.MatchingFields{secretIndex: secret.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding the resources that read a Secret", "secret", client.ObjectKeyFromObject(secret))
		return nil
	}
	requests := make([]reconcile.Request, 0, len(readers.Items))
	for i := range readers.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{
			Namespace: readers.Items[i].Namespace, Name: readers.Items[i].Name,
		}})
	}
	return requests
}

// jobsOfConcern passes what changes the status: a Job that ended, and one that is gone.
// One that somebody else created is looked at, too: it may have to be stopped. A Job's way
// through its pods does not concern us.
func jobsOfConcern() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(create event.CreateEvent) bool {
			job, isJob := create.Object.(*batchv1.Job)
			return isJob && !finished(job) && isByHand(job)
		},
		UpdateFunc: func(update event.UpdateEvent) bool {
			before, wasJob := update.ObjectOld.(*batchv1.Job)
			after, isJob := update.ObjectNew.(*batchv1.Job)
			return wasJob && isJob && !finished(before) && finished(after)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}
