package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// observeInterval is how often each transport is looked at.
const observeInterval = time.Minute

// observeTransports takes up what the newest looks saw, without waiting for a broker.
func (r *Reconciler) observeTransports(ctx context.Context, s *scope) {
	var (
		targets []probe.Target
		results []probe.Result
	)
	for i := range s.inbox.Spec.Transports {
		transport := &s.inbox.Spec.Transports[i]
		if transport.Observe == nil {
			continue
		}
		target, err := r.probeTarget(ctx, s, transport)
		var failure *probe.Failure
		if errors.As(err, &failure) {
			results = append(results, probe.Result{Transport: string(transport.Name), Failure: failure})
			continue
		}
		targets = append(targets, target)
	}
	if r.observer != nil { // set up with a manager
		results = append(results, r.observer.Results(owner(client.ObjectKeyFromObject(s.inbox)), targets)...)
	}
	s.observations = assessment.Observe(results, s.status().Transports, s.now)
}

// probeTarget reads the URL from its Secret. The error is a *probe.Failure.
func (r *Reconciler) probeTarget(ctx context.Context, s *scope, transport *v1alpha1.Transport) (probe.Target, error) {
	observe := transport.Observe
	url, failure := r.secretValue(ctx, s.inbox.Namespace, observe.URLSecretRef)
	if failure != nil {
		return probe.Target{}, &probe.Failure{Reason: failure.Reason, Message: failure.Message}
	}
	name, place := string(transport.Name), placeOf(observe)
	transportType := redelivery.Type(transport.Type)
	var target probe.Target
	var err error
	if transportType == redelivery.Doctrine {
		target, err = probe.NewDoctrineTarget(name, string(url), place, s.config, r.Pools, transportOwner(s.inbox, transport.Name))
	} else {
		target, err = probe.NewTarget(name, transportType, string(url), place)
	}
	if err != nil {
		return probe.Target{}, ofSecret(observe.URLSecretRef, err)
	}
	if declared := transport.Redelivery; declared != nil && declared.RedeliverTimeout != nil {
		target.DeclareRedeliverTimeout(declared.RedeliverTimeout.Duration.Duration)
	}
	if observe.CASecretRef == nil {
		return target, nil
	}
	bundle, failure := r.secretValue(ctx, s.inbox.Namespace, *observe.CASecretRef)
	if failure != nil {
		return probe.Target{}, &probe.Failure{Reason: failure.Reason, Message: failure.Message}
	}
	if target, err = target.WithAuthorities(bundle); err != nil {
		return probe.Target{}, ofSecret(*observe.CASecretRef, err)
	}
	return target, nil
}

func placeOf(observe *v1alpha1.ObserveSpec) probe.Place {
	return probe.Place{
		VirtualHost: observe.VirtualHost, Queue: observe.Queue, Stream: observe.Stream, Group: observe.Group,
		Table: string(observe.Table), QueueName: observe.QueueName,
	}
}

func ofSecret(reference v1alpha1.SecretKeyReference, err error) error {
	var failure *probe.Failure
	if !errors.As(err, &failure) {
		return err
	}
	return &probe.Failure{Reason: failure.Reason, Message: fmt.Sprintf("Secret %s, key %s: %s", reference.Name, reference.Key, failure.Message)}
}

// transportOwner is the key of the pool of a doctrine transport in another database.
func transportOwner(inbox *v1alpha1.MessagingInbox, transport v1alpha1.TransportName) string {
	return owner(client.ObjectKeyFromObject(inbox)) + "/" + string(transport)
}

// startObserver makes the looks of the manager's time, whose news reconcile their resource.
func (r *Reconciler) startObserver(operator ctrl.Manager) (source.Source, error) {
	news := make(chan event.GenericEvent)
	done := make(chan struct{})
	r.observer = probe.NewObserver(observeInterval, r.Clock, func(owner string) {
		namespace, name, _ := strings.Cut(owner, "/")
		inbox := &v1alpha1.MessagingInbox{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		select {
		case news <- event.GenericEvent{Object: inbox}:
		case <-done:
		}
	})
	err := operator.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		close(done)
		r.observer.Close()
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("adding the observer of the transports: %w", err)
	}
	return source.Channel(news, &handler.EnqueueRequestForObject{}), nil
}

// forgetTransports ends the looks at a resource that is gone.
func (r *Reconciler) forgetTransports(name types.NamespacedName) {
	if r.observer != nil {
		r.observer.Forget(owner(name))
	}
}
