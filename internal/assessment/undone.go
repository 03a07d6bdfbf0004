package assessment

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// NotYetActedOn has one condition for each part of the spec that this version accepts
// and does not act on, so that nothing is ever silently ignored.
func NotYetActedOn(spec *v1alpha1.MessagingInboxSpec) []metav1.Condition {
	observed := 0
	for i := range spec.Transports {
		if spec.Transports[i].Observe != nil {
			observed++
		}
	}
	return []metav1.Condition{
		notYet(v1alpha1.ConditionTransportsObserved, observed > 0, fmt.Sprintf("spec.transports[].observe (%d transports)", observed),
			"does not yet look at transports", "The windows are computed from what is declared, not from what the brokers hold."),
	}
}

func notYet(conditionType string, declared bool, field, gap, meaning string) metav1.Condition {
	if declared {
		return isUnknown(conditionType, v1alpha1.ReasonNotYetSupported, "%s is accepted, but this version of the operator %s. %s", field, gap, meaning)
	}
	return isUnknown(conditionType, v1alpha1.ReasonNotDeclared, "%s is not declared. %s", field, meaning)
}
