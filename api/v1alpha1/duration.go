package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Duration is a metav1.Duration that is not negative: a sum of decimal numbers
// with the units ns, us, ms, s, m and h, such as 90s, 15m or 168h; at most 292 years.
// The CRD refuses what Go's time.ParseDuration would, since one stored value
// that does not decode would blind the operator to all resources.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') ? duration(self) >= duration('0s') : false",message="must be a duration that is not negative, such as 90s, 15m or 168h"
type Duration struct {
	metav1.Duration `json:",inline"`
}
