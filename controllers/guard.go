package controllers

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/internal/waiting"
)

// addGuards makes the pruning run read which messages wait in the failure transports and
// outboxes, whose proofs it then keeps. Their URLs come from the Secrets by the environment.
func addGuards(inbox *v1alpha1.MessagingInbox, container *corev1.Container) {
	guarded := guardedTransports(inbox)
	for position, transport := range guarded {
		observe := transport.Observe
		settings := url.Values{"transport": {string(transport.Name)}, "type": {string(transport.Type)}}
		for name, value := range map[string]string{"stream": observe.Stream, "group": observe.Group, "table": string(observe.Table), "queueName": observe.QueueName} {
			if value != "" {
				settings.Set(name, value)
			}
		}
		// An encoded query has no dollar sign that the kubelet could take for a variable.
		container.Args = append(container.Args, "--guard="+strings.ReplaceAll(settings.Encode(), "$", "%24"))
		container.Env = append(container.Env, fromSecret(fmt.Sprintf("INBOX_GUARD_%d_URL", position), observe.URLSecretRef))
		if observe.CASecretRef != nil {
			container.Env = append(container.Env, fromSecret(fmt.Sprintf("INBOX_GUARD_%d_CA", position), *observe.CASecretRef))
		}
	}
	if len(guarded) > 0 && inbox.Spec.Database.PruningURLSecretRef != nil {
		// A role that only prunes may not read the messages.
		container.Env = append(container.Env, fromSecret("INBOX_GUARD_DATABASE_URL", inbox.Spec.Database.URLSecretRef))
	}
}

// guardedTransports are those with observe whose messages can be read without taking them,
// and in which a message of a covered transport can wait long after it was handled. Outboxes
// come first, in the order in which the run reads: what its relay fails at moves from an
// outbox to a failure transport, and must not be missed in both.
func guardedTransports(inbox *v1alpha1.MessagingInbox) []*v1alpha1.Transport {
	behind, outboxes := map[v1alpha1.TransportName]bool{}, map[v1alpha1.TransportName]bool{}
	for i := range inbox.Spec.Transports {
		if transport := &inbox.Spec.Transports[i]; transport.Inbox && !transport.BatchHandlers {
			behind[transport.FailureTransport], behind[transport.Outbox], outboxes[transport.Outbox] = true, true, true
		}
	}
	for i := range inbox.Spec.Transports {
		// What a relay failed at, it may have published, or handled, before.
		if transport := &inbox.Spec.Transports[i]; outboxes[transport.Name] {
			behind[transport.FailureTransport] = true
		}
	}
	var guarded []*v1alpha1.Transport
	for i := range inbox.Spec.Transports {
		transport := &inbox.Spec.Transports[i]
		if behind[transport.Name] && transport.Observe != nil && waiting.Supported(redelivery.Type(transport.Type)) {
			guarded = append(guarded, transport)
		}
	}
	slices.SortStableFunc(guarded, func(a, b *v1alpha1.Transport) int {
		switch {
		case outboxes[a.Name] == outboxes[b.Name]:
			return 0
		case outboxes[a.Name]:
			return -1
		default:
			return 1
		}
	})
	return guarded
}
