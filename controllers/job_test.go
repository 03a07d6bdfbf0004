package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

func TestAJobStaysBelowItsMemoryLimit(t *testing.T) {
	for name, test := range map[string]struct {
		resources *corev1.ResourceRequirements
		want      string // of GOMEMLIMIT, in bytes
	}{
		"of the default":  {nil, "107374180"},
		"of its own":      {&corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}, "858993456"},
		"when it has one": {&corev1.ResourceRequirements{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inbox := &v1alpha1.MessagingInbox{Spec: v1alpha1.MessagingInboxSpec{Pruning: v1alpha1.PruningSpec{Job: v1alpha1.JobSpec{Resources: test.resources}}}}
			job := pruningJob(inbox, JobImage{}, time.Unix(0, 0), time.Hour)
			limit, url := "", false
			for _, variable := range job.Spec.Template.Spec.Containers[0].Env {
				if variable.Name == "GOMEMLIMIT" {
					limit = variable.Value
				}
				url = url || variable.Name == "INBOX_DATABASE_URL"
			}
			if limit != test.want || !url {
				t.Errorf("GOMEMLIMIT is %q, want %q; the URL of the database is there: %t", limit, test.want, url)
			}
		})
	}
}
