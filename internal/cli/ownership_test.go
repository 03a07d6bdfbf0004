package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

func managedBy(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ObjectMeta {
	return metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}}}
}

func TestWhoMayRevertAPause(t *testing.T) {
	const specWithSuspend, specWithout = `{"f:spec":{"f:suspend":{}}}`, `{"f:spec":{"f:database":{"f:schema":{}}}}`
	for name, test := range map[string]struct {
		metadata metav1.ObjectMeta
		want     string
	}{
		"nobody":                         {metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/instance": "shop"}}, ""},
		"Argo CD by its tracking id":     {metav1.ObjectMeta{Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:messaginginbox.dev/MessagingInbox:shop/orders"}}, "Argo CD (argocd.argoproj.io/tracking-id=shop:messaginginbox.dev/MessagingInbox:shop/orders)"},
		"Argo CD by its label":           {metav1.ObjectMeta{Labels: map[string]string{"argocd.argoproj.io/instance": "shop"}}, "Argo CD (argocd.argoproj.io/instance=shop)"},
		"Argo CD by its field manager":   {managedBy("argocd-controller", metav1.ManagedFieldsOperationUpdate, specWithout), "Argo CD (field manager argocd-controller)"},
		"a Flux Kustomization":           {metav1.ObjectMeta{Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}, "Flux (kustomize.toolkit.fluxcd.io/name=apps)"},
		"a Flux HelmRelease":             {metav1.ObjectMeta{Labels: map[string]string{"helm.toolkit.fluxcd.io/name": "shop"}}, "Flux (helm.toolkit.fluxcd.io/name=shop)"},
		"Flux by its field manager":      {managedBy("kustomize-controller", metav1.ManagedFieldsOperationApply, specWithSuspend), "Flux (field manager kustomize-controller)"},
		"whoever applies the field":      {managedBy("deploy-bot", metav1.ManagedFieldsOperationApply, specWithSuspend), "whoever applies spec.suspend as field manager deploy-bot"},
		"not who applies other fields":   {managedBy("deploy-bot", metav1.ManagedFieldsOperationApply, specWithout), ""},
		"not who once edited the field":  {managedBy("kubectl-edit", metav1.ManagedFieldsOperationUpdate, specWithSuspend), ""},
		"not who left fields of no form": {managedBy("deploy-bot", metav1.ManagedFieldsOperationApply, `[`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			inbox := &v1alpha1.MessagingInbox{ObjectMeta: test.metadata}
			if got := strings.Join(reverters(inbox), "; "); got != test.want {
				t.Errorf("got %q; want %q", got, test.want)
			}
			warning := revertWarning(inbox, true)
			if (warning != "") != (test.want != "") || !strings.Contains(warning, test.want) {
				t.Errorf("the warning is %q", warning)
			}
		})
	}
}
