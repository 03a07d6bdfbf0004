package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Schedule is a cron expression of five fields (minute, hour, day of month, month,
// day of week) or a descriptor such as @hourly. Whether it ever fires is checked by
// the operator, which says so in the condition PruningHealthy.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=100
// +kubebuilder:validation:XValidation:rule="self.matches('^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*/,?-]+( +[0-9A-Za-z*/,?-]+){4})$')",message="must be a cron expression of five fields, such as */15 * * * *, or one of @hourly, @daily, @weekly, @monthly, @yearly; the time zone has its own field"
type Schedule string

// PruningSpec says when and how expired proofs are deleted.
type PruningSpec struct {
	// schedule of the pruning Jobs.
	// +optional
	// +default="*/15 * * * *"
	Schedule Schedule `json:"schedule"`
	// timeZone of the schedule: an IANA name.
	// +optional
	// +default="UTC"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone"`
	// suspend stops pruning only; everything else goes on.
	// +optional
	// +default=false
	Suspend bool `json:"suspend"`
	// dryRun makes the Jobs count what they would delete, and delete nothing.
	// +optional
	// +default=false
	DryRun bool `json:"dryRun"`
	// batchSize is the largest number of records that one transaction deletes. A run
	// begins with fewer, and adapts to how long they take.
	// +optional
	// +default=5000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	BatchSize int32 `json:"batchSize"`
	// maxDuration of one run. What is left is taken up by the next.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="maxDuration must be from 1s to 24h"
	MaxDuration Duration `json:"maxDuration"`
	// pace is the pause between two transactions, which leaves room to the workers.
	// +optional
	// +default="10ms"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('1m')",message="pace must be at most 1m"
	Pace Duration `json:"pace"`
	// maxReplicaLag makes a run wait while a streaming replica is further behind than
	// this. Left out: replicas are not looked at.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="maxReplicaLag must be more than 0s: leave it out when replicas are not to be looked at"
	MaxReplicaLag *Duration `json:"maxReplicaLag,omitempty"`
	// job shapes the pods of the pruning Jobs.
	// +optional
	Job JobSpec `json:"job,omitzero"`
}

// JobSpec shapes the pods of the operator's Jobs. Their security context is the
// restricted one and cannot be changed.
type JobSpec struct {
	// resources of the pod's one container. Default: requests of 10m CPU and 32Mi
	// memory, and a limit of 128Mi memory.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// nodeSelector of the pod.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations of the pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// serviceAccountName of the pod. Its token is never mounted. Default: default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// priorityClassName of the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// imagePullSecrets of the pod.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// podLabels are added to the pod. The operator's own labels win.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// podAnnotations are added to the pod.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`
}
