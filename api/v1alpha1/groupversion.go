package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion identifies this API.
var GroupVersion = schema.GroupVersion{Group: "messaginginbox.dev", Version: "v1alpha1"}

// Kind is the kind of the one resource of this API.
const Kind = "MessagingInbox"

// AddToScheme registers the types of this package in a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &MessagingInbox{}, &MessagingInboxList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
