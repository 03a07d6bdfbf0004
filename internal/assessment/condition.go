package assessment

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// maxMessage is the longest condition message. The API allows 32768 bytes; nobody
// reads that at night, and 300 transports would fill it.
const maxMessage = 2048

func isTrue(conditionType, reason, format string, args ...any) metav1.Condition {
	return condition(conditionType, metav1.ConditionTrue, reason, format, args...)
}

func isFalse(conditionType, reason, format string, args ...any) metav1.Condition {
	return condition(conditionType, metav1.ConditionFalse, reason, format, args...)
}

func isUnknown(conditionType, reason, format string, args ...any) metav1.Condition {
	return condition(conditionType, metav1.ConditionUnknown, reason, format, args...)
}

func condition(conditionType string, status metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
	message := fmt.Sprintf(format, args...)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
	}
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// maxNamed is the number of names that a message lists before it counts the rest.
const maxNamed = 5

// named joins names for a message.
func named[S ~string](names []S) string {
	var list []string
	for i, name := range names {
		if i == maxNamed {
			list = append(list, fmt.Sprintf("and %d more", len(names)-maxNamed))
			break
		}
		list = append(list, string(name))
	}
	return strings.Join(list, ", ")
}

// CoverageComplete says which declared transports the inbox does not protect.
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
		case !transport.Inbox && !auxiliary[transport.Name] && comesBack(transport.Type):
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
	if len(gaps) > 0 {
		return isFalse(v1alpha1.ConditionCoverageComplete, v1alpha1.ReasonNotAllCovered, "Not protected by the inbox: %s.", strings.Join(gaps, "; "))
	}
	return isTrue(v1alpha1.ConditionCoverageComplete, v1alpha1.ReasonAllCovered, "The inbox records every declared transport whose messages can come back.")
}

// comesBack says whether a transport of this type ever delivers a message again.
func comesBack(transportType v1alpha1.TransportType) bool {
	return transportType != v1alpha1.TransportSync && transportType != v1alpha1.TransportInMemory
}
