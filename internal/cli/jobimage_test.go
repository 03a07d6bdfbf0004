package cli

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/messaginginbox/operator/controllers"
)

func deployment(containers ...corev1.Container) appsv1.Deployment {
	return appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers}}}}
}

func TestTheImageThatADeployedOperatorGivesItsJobs(t *testing.T) {
	manager := corev1.Container{Image: "inbox:v1", ImagePullPolicy: corev1.PullAlways, Args: []string{"manager", "--leader-elect"}}
	newer := corev1.Container{Image: "inbox:v2", Args: []string{"manager"}}
	other := corev1.Container{Image: "inbox:v1", Args: []string{"manager", "--job-image=mirror/inbox:v1"}}
	sidecar := corev1.Container{Image: "proxy:1", Args: []string{"serve"}}
	for name, test := range map[string]struct {
		deployments []appsv1.Deployment
		want        []controllers.JobImage
	}{
		"none":                         {nil, nil},
		"the manager's, not a proxy's": {[]appsv1.Deployment{deployment(sidecar, manager)}, []controllers.JobImage{{Name: "inbox:v1", PullPolicy: corev1.PullAlways}}},
		"the declared one":             {[]appsv1.Deployment{deployment(other)}, []controllers.JobImage{{Name: "mirror/inbox:v1"}}},
		"two operators of one image":   {[]appsv1.Deployment{deployment(manager), deployment(manager)}, []controllers.JobImage{{Name: "inbox:v1", PullPolicy: corev1.PullAlways}}},
		"two operators of two images":  {[]appsv1.Deployment{deployment(manager), deployment(newer)}, []controllers.JobImage{{Name: "inbox:v1", PullPolicy: corev1.PullAlways}, {Name: "inbox:v2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := deployedImages(test.deployments); !slices.Equal(got, test.want) {
				t.Errorf("got %v; want %v", got, test.want)
			}
		})
	}
}
