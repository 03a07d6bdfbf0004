package assessment

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
