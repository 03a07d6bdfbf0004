package assessment

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// InvalidJob says for which of its fields the API server would refuse every Job of the
// resource; empty when it would take them. Quotas and admission policies are not known here.
func InvalidJob(spec *v1alpha1.MessagingInboxSpec) string {
	job, path := &spec.Pruning.Job, field.NewPath("spec", "pruning", "job")
	problems := metav1validation.ValidateLabels(job.PodLabels, path.Child("podLabels"))
	problems = append(problems, reservedLabels(job.PodLabels, path.Child("podLabels"))...)
	problems = append(problems, apivalidation.ValidateAnnotations(job.PodAnnotations, path.Child("podAnnotations"))...)
	problems = append(problems, metav1validation.ValidateLabels(job.NodeSelector, path.Child("nodeSelector"))...)
	problems = append(problems, validName(job.ServiceAccountName, path.Child("serviceAccountName"))...)
	problems = append(problems, validName(job.PriorityClassName, path.Child("priorityClassName"))...)
	for i := range job.Tolerations {
		problems = append(problems, validToleration(&job.Tolerations[i], path.Child("tolerations").Index(i))...)
	}
	if job.Resources != nil {
		problems = append(problems, validResources(job.Resources, path.Child("resources"))...)
	}
	sentences := make([]string, 0, len(problems))
	for _, problem := range problems {
		sentences = append(sentences, problem.Error())
	}
	slices.Sort(sentences) // labels have no order
	return joinedFew(sentences)
}

// jobsOwnLabels are those with which Kubernetes finds the pods of a Job: it refuses other values.
var jobsOwnLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

func reservedLabels(labels map[string]string, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, label := range jobsOwnLabels {
		if _, set := labels[label]; set {
			problems = append(problems, field.Forbidden(path.Key(label), "Kubernetes sets it on the pods of a Job"))
		}
	}
	return problems
}

func validName(name string, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if name == "" {
		return problems
	}
	for _, problem := range apivalidation.NameIsDNSSubdomain(name, false) {
		problems = append(problems, field.Invalid(path, name, problem))
	}
	return problems
}

// validToleration follows the rules of a pod's toleration.
func validToleration(toleration *corev1.Toleration, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if toleration.Key != "" {
		for _, problem := range validation.IsQualifiedName(toleration.Key) {
			problems = append(problems, field.Invalid(path.Child("key"), toleration.Key, problem))
		}
	} else if toleration.Operator != corev1.TolerationOpExists {
		problems = append(problems, field.Invalid(path.Child("operator"), toleration.Operator, "it must be Exists when key is empty"))
	}
	switch toleration.Operator {
	case corev1.TolerationOpEqual, "":
		for _, problem := range validation.IsValidLabelValue(toleration.Value) {
			problems = append(problems, field.Invalid(path.Child("value"), toleration.Value, problem))
		}
	case corev1.TolerationOpExists:
		if toleration.Value != "" {
			problems = append(problems, field.Invalid(path.Child("value"), toleration.Value, "it must be empty when operator is Exists"))
		}
	}
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if !slices.Contains(effects, toleration.Effect) {
		problems = append(problems, field.NotSupported(path.Child("effect"), toleration.Effect, effects[1:]))
	}
	if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
		problems = append(problems, field.Invalid(path.Child("effect"), toleration.Effect, "it must be NoExecute when tolerationSeconds is set"))
	}
	return problems
}

func validResources(resources *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if len(resources.Claims) > 0 {
		problems = append(problems, field.Forbidden(path.Child("claims"), "the pods declare no resource claims"))
	}
	for _, list := range []struct {
		name       string
		quantities corev1.ResourceList
	}{{"limits", resources.Limits}, {"requests", resources.Requests}} {
		for name, quantity := range list.quantities {
			at := path.Child(list.name).Key(string(name))
			if !isContainerResource(name) {
				problems = append(problems, field.Invalid(at, name, "it must be cpu, memory, ephemeral-storage, hugepages-SIZE, or a name with a domain"))
			}
			if quantity.Sign() < 0 {
				problems = append(problems, field.Invalid(at, quantity.String(), apivalidation.IsNegativeErrorMsg))
			}
		}
	}
	for name, request := range resources.Requests {
		limit, limited := resources.Limits[name]
		at := path.Child("requests").Key(string(name))
		switch {
		case limited && request.Cmp(limit) > 0:
			problems = append(problems, field.Invalid(at, request.String(), "it must be at most the limit of "+limit.String()))
		case isWhole(name) && (!limited || request.Cmp(limit) != 0):
			problems = append(problems, field.Invalid(at, request.String(), "it must equal the limit, since "+string(name)+" cannot be overcommitted"))
		}
	}
	return problems
}

func isContainerResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		strings.Contains(string(name), "/") && len(validation.IsQualifiedName(string(name))) == 0
}

// isWhole says that a resource is given to a container wholly: its request is its limit.
func isWhole(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
