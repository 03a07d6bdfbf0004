package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/assessment"
	"github.com/messaginginbox/operator/internal/dbschema"
)

// Labels and annotations of the Jobs.
const (
	// LabelManagedBy and its value mark what the operator made.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "messaging-inbox-operator"
	// labelInbox holds the UID of the resource: a name can be too long for a label.
	labelInbox = "messaginginbox.dev/inbox-uid"
	// labelPurpose is purposePrune, purposeMigrate or purposeDrill.
	labelPurpose = "messaginginbox.dev/purpose"
	// annotationTick holds the tick that a pruning or drill Job is for, in RFC 3339.
	annotationTick = "messaginginbox.dev/tick"
	// annotationGeneration holds the generation of the spec that a Job was made from.
	annotationGeneration = "messaginginbox.dev/generation"

	purposePrune   = "prune"
	purposeMigrate = "migrate"
)

const (
	containerName = "inbox"
	// exitRefused is the exit code with which "inbox prune" refuses, and "inbox drill" says
	// that the contract is broken: trying again would end the same way.
	exitRefused = 4
	// backoffLimit is how often the Job's pod is tried again after an error, such as a
	// database that restarts.
	backoffLimit = 2
	// deadlineSlack is what a pod may take beside its own time limit: to be scheduled,
	// to pull the image and to be tried again.
	deadlineSlack = 10 * time.Minute
	// migrationDeadline is the longest that an index build may take.
	migrationDeadline = 24 * time.Hour
	// migrationTimeToLive is how long a migration Job stays after its end.
	migrationTimeToLive = 10 * time.Minute
)

// JobImage is the image of the Jobs' pods.
type JobImage struct {
	Name       string
	PullPolicy corev1.PullPolicy
}

// pruningJob is the Job of one tick. Its name follows from the tick, so that two
// leaders cannot run one tick twice.
func pruningJob(inbox *v1alpha1.MessagingInbox, image JobImage, tick time.Time, required time.Duration) *batchv1.Job {
	pruning := inbox.Spec.Pruning
	job := newJob(inbox, image, purposePrune, fmt.Sprintf("%d", tick.Unix()/60))
	job.Annotations[annotationTick] = tick.UTC().Format(time.RFC3339)
	deadline := pruning.MaxDuration.Duration.Duration*(backoffLimit+1) + deadlineSlack
	job.Spec.ActiveDeadlineSeconds = seconds(deadline)

	container := &job.Spec.Template.Spec.Containers[0]
	container.Args = append([]string{"prune"}, contractArguments(assessment.Contract(&inbox.Spec))...)
	container.Args = append(container.Args,
		fmt.Sprintf("--retention=%s", inbox.Spec.Retention.Period.Duration.Duration),
		fmt.Sprintf("--required-window=%s", required),
		fmt.Sprintf("--batch-size=%d", pruning.BatchSize),
		fmt.Sprintf("--max-duration=%s", pruning.MaxDuration.Duration.Duration),
		fmt.Sprintf("--pace=%s", pruning.Pace.Duration.Duration),
		fmt.Sprintf("--dry-run=%t", pruning.DryRun),
		"--time-limit-exit-code=0", // work that is left for the next tick is no failed Job
		"--termination-log=/dev/termination-log",
	)
	for _, transport := range assessment.CoveredTransports(&inbox.Spec) {
		container.Args = append(container.Args, "--transport="+literally(transport))
	}
	if lag := pruning.MaxReplicaLag; lag != nil {
		container.Args = append(container.Args, fmt.Sprintf("--max-replica-lag=%s", lag.Duration.Duration))
	}
	container.Env = append(container.Env, connectionEnv(inbox, secretOr(inbox.Spec.Database.PruningURLSecretRef, inbox.Spec.Database.URLSecretRef))...)
	addGuards(inbox, container)
	return job
}

// migrationJob applies one plan. Its name follows from the plan's digest.
func migrationJob(inbox *v1alpha1.MessagingInbox, image JobImage, plan dbschema.Plan) *batchv1.Job {
	digest := plan.Digest()
	job := newJob(inbox, image, purposeMigrate, strings.TrimPrefix(digest, "sha256:")[:10])
	job.Spec.ActiveDeadlineSeconds = seconds(migrationDeadline)
	timeToLive := int32(migrationTimeToLive / time.Second)
	job.Spec.TTLSecondsAfterFinished = &timeToLive

	container := &job.Spec.Template.Spec.Containers[0]
	container.Args = append([]string{"migrate"}, contractArguments(assessment.Contract(&inbox.Spec))...)
	container.Args = append(container.Args, "--approved-plan="+digest, fmt.Sprintf("--build-timeout=%s", migrationDeadline))
	container.Env = append(container.Env, connectionEnv(inbox, secretOr(inbox.Spec.Database.MigrationURLSecretRef, inbox.Spec.Database.URLSecretRef))...)
	return job
}

func newJob(inbox *v1alpha1.MessagingInbox, image JobImage, purpose, suffix string) *batchv1.Job {
	labels := jobLabels(inbox, purpose)
	podLabels := map[string]string{}
	maps.Copy(podLabels, inbox.Spec.Pruning.Job.PodLabels)
	maps.Copy(podLabels, labels)
	limit := int32(backoffLimit)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:            jobName(inbox, purpose, suffix),
			Namespace:       inbox.Namespace,
			Labels:          labels,
			Annotations:     map[string]string{annotationGeneration: strconv.FormatInt(inbox.Generation, 10)},
			OwnerReferences: []metav1.OwnerReference{ownerReference(inbox)},
		},
		Spec: batchv1.JobSpec{
			BackoffLimit:     &limit,
			PodFailurePolicy: podFailurePolicy(),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels, Annotations: inbox.Spec.Pruning.Job.PodAnnotations},
				Spec:       podSpec(inbox.Spec.Pruning.Job, image),
			},
		},
	}
}

func jobLabels(inbox *v1alpha1.MessagingInbox, purpose string) map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, labelInbox: string(inbox.UID), labelPurpose: purpose}
}

// ownerReference does not block the owner's deletion: that would ask for a right on
// the finalizers of the resource, and nothing needs the order.
func ownerReference(inbox *v1alpha1.MessagingInbox) metav1.OwnerReference {
	reference := metav1.NewControllerRef(inbox, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	reference.BlockOwnerDeletion = nil
	return *reference
}

// podFailurePolicy does not count an eviction or a drained node as a failed try, and
// does not try again what was refused.
func podFailurePolicy() *batchv1.PodFailurePolicy {
	name := containerName
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		},
		{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: &name, Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{exitRefused},
			},
		},
	}}
}

// podSpec keeps to the restricted Pod Security Standard whatever the resource says.
func podSpec(spec v1alpha1.JobSpec, image JobImage) corev1.PodSpec {
	yes, no := true, false
	resources := jobResources(spec.Resources)
	return corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: &no,
		EnableServiceLinks:           &no,
		ServiceAccountName:           spec.ServiceAccountName,
		NodeSelector:                 spec.NodeSelector,
		Tolerations:                  spec.Tolerations,
		PriorityClassName:            spec.PriorityClassName,
		ImagePullSecrets:             spec.ImagePullSecrets,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   &yes,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name:            containerName,
			Image:           image.Name,
			ImagePullPolicy: image.PullPolicy,
			Resources:       resources,
			Env:             memoryEnv(resources),
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no,
				ReadOnlyRootFilesystem:   &yes,
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}

func jobResources(declared *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if declared != nil {
		return *declared
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
	}
}

// memoryEnv makes the process collect garbage rather than reach the memory limit, where
// the kernel would end it: a run that holds many proofs needs much for a while. A fifth is
// left for what the runtime does not count.
func memoryEnv(resources corev1.ResourceRequirements) []corev1.EnvVar {
	limit, limited := resources.Limits[corev1.ResourceMemory]
	if !limited {
		return nil
	}
	return []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: strconv.FormatInt(limit.Value()/5*4, 10)}}
}

// contractArguments name the table.
func contractArguments(contract dbschema.Contract) []string {
	arguments := []string{
		"--schema=" + contract.Schema,
		"--table=" + contract.Table,
		"--transport-column=" + contract.Transport,
		"--message-id-column=" + contract.MessageID,
		"--processed-at-column=" + contract.ProcessedAt,
		"--time-zone=" + contract.TimeZone,
		"--timestamp-index=" + contract.TimestampIndexName(),
	}
	for i := range arguments {
		arguments[i] = literally(arguments[i])
	}
	return arguments
}

// literally doubles each dollar sign: the kubelet would put the value of an environment
// variable, such as the connection URL, in the place of "$(NAME)".
func literally(argument string) string { return strings.ReplaceAll(argument, "$", "$$") }

// connectionEnv hands the credentials to the pod by reference: they appear in no
// argument and in no object but the Secret.
func connectionEnv(inbox *v1alpha1.MessagingInbox, url v1alpha1.SecretKeyReference) []corev1.EnvVar {
	env := []corev1.EnvVar{fromSecret("INBOX_DATABASE_URL", url)}
	if authority := inbox.Spec.Database.CASecretRef; authority != nil {
		env = append(env, fromSecret("INBOX_DATABASE_CA", *authority))
	}
	return env
}

func fromSecret(name string, reference v1alpha1.SecretKeyReference) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: reference.Name}, Key: reference.Key,
	}}}
}

func secretOr(own *v1alpha1.SecretKeyReference, otherwise v1alpha1.SecretKeyReference) v1alpha1.SecretKeyReference {
	if own != nil {
		return *own
	}
	return otherwise
}

// jobName fits in the 63 characters of a label. A resource name that is cut keeps its
// difference from others by a hash.
func jobName(inbox *v1alpha1.MessagingInbox, purpose, suffix string) string {
	const limit = 63
	tail := fmt.Sprintf("-%s-%s", purpose, suffix)
	name := strings.ReplaceAll(inbox.Name, ".", "-")
	if name != inbox.Name || len(name)+len(tail) > limit {
		digest := sha256.Sum256([]byte(inbox.Name))
		mark := "-" + hex.EncodeToString(digest[:4])
		name = strings.TrimRight(name[:min(len(name), limit-len(tail)-len(mark))], "-") + mark
	}
	return name + tail
}

func seconds(d time.Duration) *int64 {
	whole := int64(d / time.Second)
	return &whole
}
