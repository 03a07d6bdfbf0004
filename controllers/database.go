package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/internal/inspection"
)

// connect leaves a verified pool in the scope, or the reason why there is none.
func (r *Reconciler) connect(ctx context.Context, s *scope) {
	s.database.Inspected = true
	s.database.Connection = r.openPool(ctx, s)
	s.set(assessment.DatabaseReachable(s.database))
}

func (r *Reconciler) openPool(ctx context.Context, s *scope) *database.Failure {
	config, failure := r.databaseConfig(ctx, s.inbox, s.inbox.Spec.Database.URLSecretRef)
	if failure != nil {
		return failure
	}
	s.config = config
	s.database.Target = config.String()
	pool, err := r.Pools.Get(ctx, owner(client.ObjectKeyFromObject(s.inbox)), config)
	if err != nil {
		return classified(err)
	}
	if failure := inspection.Server(ctx, pool); failure != nil {
		return failure
	}
	s.pool = pool
	return nil
}

// databaseConfig reads a connection URL from its Secret.
func (r *Reconciler) databaseConfig(ctx context.Context, inbox *v1alpha1.MessagingInbox, reference v1alpha1.SecretKeyReference) (*database.Config, *database.Failure) {
	url, failure := r.secretValue(ctx, inbox.Namespace, reference)
	if failure != nil {
		return nil, failure
	}
	config, err := database.Parse(string(url))
	if err != nil {
		return nil, inSecret(reference, err)
	}
	authority := inbox.Spec.Database.CASecretRef
	if authority == nil {
		return config, nil
	}
	bundle, failure := r.secretValue(ctx, inbox.Namespace, *authority)
	if failure != nil {
		return nil, failure
	}
	if config, err = config.WithCA(bundle); err != nil {
		return nil, inSecret(*authority, err)
	}
	return config, nil
}

// inSecret says which Secret holds the value that is wrong.
func inSecret(reference v1alpha1.SecretKeyReference, err error) *database.Failure {
	failure := classified(err)
	failure.Message = fmt.Sprintf("Secret %s, key %s: %s", reference.Name, reference.Key, failure.Message)
	return failure
}

func (r *Reconciler) secretValue(ctx context.Context, namespace string, reference v1alpha1.SecretKeyReference) ([]byte, *database.Failure) {
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &database.Failure{Class: database.WaitingOnUser, Reason: v1alpha1.ReasonSecretNotFound,
			Message: fmt.Sprintf("Secret %s does not exist in namespace %s. Create it; it is picked up at once.", reference.Name, namespace)}
	case err != nil:
		return nil, &database.Failure{Class: database.Transient, Reason: v1alpha1.ReasonUnexpectedError,
			Message: fmt.Sprintf("Secret %s could not be read: %v", reference.Name, err)}
	}
	value, found := secret.Data[reference.Key]
	if !found || len(value) == 0 {
		return nil, &database.Failure{Class: database.WaitingOnUser, Reason: v1alpha1.ReasonSecretKeyMissing,
			Message: fmt.Sprintf("Secret %s has no value under the key %q; its keys are %q.", reference.Name, reference.Key, slices.Sorted(maps.Keys(secret.Data)))}
	}
	return value, nil
}

func classified(err error) *database.Failure {
	failure := dbschema.Classify(err)
	return &failure
}

// timestamp is the instant as the API stores it, in whole seconds: reading it back is
// no change.
func timestamp(instant *time.Time) *metav1.Time {
	if instant == nil {
		return nil
	}
	return &metav1.Time{Time: instant.Truncate(time.Second)}
}
