package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// ownershipMarks are what the tools that keep a cluster as Git has it leave on a resource:
// the documented tracking labels and annotations of Argo CD, and the labels that Flux's
// controllers set.
var ownershipMarks = []struct{ tool, key string }{
	{"Argo CD", "argocd.argoproj.io/instance"},
	{"Argo CD", "argocd.argoproj.io/tracking-id"},
	{"Flux", "kustomize.toolkit.fluxcd.io/name"},
	{"Flux", "helm.toolkit.fluxcd.io/name"},
}

// ownershipManagers are the names under which those tools write fields.
var ownershipManagers = map[string]string{
	"argocd-controller":             "Argo CD",
	"argocd-application-controller": "Argo CD",
	"kustomize-controller":          "Flux",
	"helm-controller":               "Flux",
}

// reverters are the tools that may put spec.suspend back, with how each is known. A
// manager that applies spec.suspend itself counts whatever its name.
func reverters(inbox *v1alpha1.MessagingInbox) []string {
	var found []string
	for _, mark := range ownershipMarks {
		if value, marked := mapValue(mark.key, inbox.Labels, inbox.Annotations); marked {
			found = append(found, fmt.Sprintf("%s (%s=%s)", mark.tool, mark.key, value))
		}
	}
	for _, entry := range inbox.ManagedFields {
		tool, known := ownershipManagers[entry.Manager]
		switch {
		case known:
			found = append(found, fmt.Sprintf("%s (field manager %s)", tool, entry.Manager))
		case entry.Operation == metav1.ManagedFieldsOperationApply && ownsSuspend(entry):
			found = append(found, fmt.Sprintf("whoever applies spec.suspend as field manager %s", entry.Manager))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func mapValue(key string, maps ...map[string]string) (string, bool) {
	for _, one := range maps {
		if value, found := one[key]; found {
			return value, true
		}
	}
	return "", false
}

func ownsSuspend(entry metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var owned struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err != nil {
		return false // a form of a later API server: then nothing is known
	}
	_, owns := owned.Spec["f:suspend"]
	return owns
}

// revertWarning is what to tell when others may undo the change; empty when nobody would.
func revertWarning(inbox *v1alpha1.MessagingInbox, suspend bool) string {
	tools := reverters(inbox)
	if len(tools) == 0 {
		return ""
	}
	return fmt.Sprintf("%s manages this resource and may revert the change. To keep it, set spec.suspend: %t where the manifest is kept.",
		strings.Join(tools, " and "), suspend)
}
