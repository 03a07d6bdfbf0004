// Package v1alpha1 is the API of the messaging inbox operator: one resource,
// MessagingInbox, that declares the transports, the database and the retention
// of a consumer inbox. Defaults and validation live in the generated CRD alone;
// there is no webhook, so what Git holds and what the cluster stores agree.
//
// +kubebuilder:object:generate=true
// +groupName=messaginginbox.dev
package v1alpha1
