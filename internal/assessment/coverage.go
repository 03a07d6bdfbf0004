package assessment

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// CoveredTransports are the transports whose windows decide how long a proof is kept.
func CoveredTransports(spec *v1alpha1.MessagingInboxSpec) []string {
	var names []string
	for i := range spec.Transports {
		if transport := &spec.Transports[i]; transport.Inbox && !transport.BatchHandlers {
			names = append(names, string(transport.Name))
		}
	}
	return names
}

// CoverageComplete says which declared transports the inbox does not protect. It is a
// warning, unless spec.requireFullCoverage makes it count. A transport that handlers
// dispatch to after the current bus without an outbox cannot be declared: the CRD refuses it.
func CoverageComplete(spec *v1alpha1.MessagingInboxSpec) metav1.Condition {
	auxiliary := map[v1alpha1.TransportName]bool{}
	for i := range spec.Transports {
		auxiliary[spec.Transports[i].Outbox] = true
		auxiliary[spec.Transports[i].FailureTransport] = true
	}
	var without, batch []v1alpha1.TransportName
	for i := range spec.Transports {
		transport := &spec.Transports[i]
		switch {
		case transport.BatchHandlers:
			batch = append(batch, transport.Name)
		case !transport.Inbox && !auxiliary[transport.Name] && comesBack(transport):
			without = append(without, transport.Name)
		}
	}
	var gaps []string
	if len(batch) > 0 {
		gaps = append(gaps, fmt.Sprintf("%s: Symfony does not record messages of batch handlers, so make those handlers idempotent by a business key", named(batch)))
	}
	if len(without) > 0 {
		gaps = append(gaps, fmt.Sprintf("%s: inbox is false, so a redelivery runs the handlers again; set inbox: true on the transport in the application and here", named(without)))
	}
	switch {
	case len(gaps) > 0 && spec.RequireFullCoverage:
		return isFalse(v1alpha1.ConditionCoverageComplete, v1alpha1.ReasonFullCoverageRequired,
			"spec.requireFullCoverage is true, and not protected by the inbox: %s.", strings.Join(gaps, "; "))
	case len(gaps) > 0:
		return isFalse(v1alpha1.ConditionCoverageComplete, v1alpha1.ReasonNotAllCovered, "Not protected by the inbox: %s.", strings.Join(gaps, "; "))
	}
	return isTrue(v1alpha1.ConditionCoverageComplete, v1alpha1.ReasonAllCovered, "The inbox records every declared transport whose messages can come back.")
}

// failureTransportOf is the failure transport that enters a transport's window: without a
// broker its messages are handled by the relay of its outbox.
func failureTransportOf(spec *v1alpha1.MessagingInboxSpec, transport *v1alpha1.Transport) v1alpha1.TransportName {
	if hasBroker(transport) {
		return transport.FailureTransport
	}
	for i := range spec.Transports {
		if spec.Transports[i].Name == transport.Outbox {
			return spec.Transports[i].FailureTransport
		}
	}
	return ""
}

func hasBroker(transport *v1alpha1.Transport) bool {
	return transport.Type != v1alpha1.TransportSync && transport.Type != v1alpha1.TransportInMemory
}

// comesBack says whether a transport ever delivers a message again: one without a broker
// does so only through its outbox.
func comesBack(transport *v1alpha1.Transport) bool {
	return transport.Outbox != "" || hasBroker(transport)
}
