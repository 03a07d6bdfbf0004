package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/controllers"
)

// operatorLabels are those of the operator's Deployment, as config/default and the Helm
// chart set them.
var operatorLabels = client.MatchingLabels{"app.kubernetes.io/name": "messaging-inbox-operator"}

// jobImage is the image for a Job that is asked for by hand: the declared one, else that of
// the resource's newest Job, else what the operator's Deployment would use.
func jobImage(ctx context.Context, kube client.Reader, inbox *v1alpha1.MessagingInbox, declared string) (controllers.JobImage, error) {
	if declared != "" {
		return controllers.JobImage{Name: declared}, nil
	}
	image, found, err := controllers.NewestJobImage(ctx, kube, inbox)
	if err != nil || found {
		return image, err
	}
	var deployments appsv1.DeploymentList
	if err := kube.List(ctx, &deployments, operatorLabels); err != nil {
		return image, fmt.Errorf("no Job of %s is left to take the image from, and the operator's Deployment cannot be found (name the image with --image): %w", inbox.Name, err)
	}
	images := deployedImages(deployments.Items)
	if len(images) != 1 {
		return image, fmt.Errorf("no Job of %s is left to take the image from, and %s: name the image with --image", inbox.Name, candidates(images))
	}
	return images[0], nil
}

func candidates(images []controllers.JobImage) string {
	if len(images) == 0 {
		return "no Deployment in the cluster has the label app.kubernetes.io/name=messaging-inbox-operator"
	}
	names := make([]string, 0, len(images))
	for _, image := range images {
		names = append(names, image.Name)
	}
	return "the operator's Deployments use several images (" + strings.Join(names, ", ") + ")"
}

// deployedImages are the images that the operators' managers give to their Jobs, each once.
func deployedImages(deployments []appsv1.Deployment) []controllers.JobImage {
	var images []controllers.JobImage
	for i := range deployments {
		for _, container := range deployments[i].Spec.Template.Spec.Containers {
			if !slices.Contains(container.Args, "manager") {
				continue
			}
			image := controllers.JobImage{Name: container.Image, PullPolicy: container.ImagePullPolicy}
			for _, argument := range container.Args {
				if declared, isImage := strings.CutPrefix(argument, "--job-image="); isImage {
					image = controllers.JobImage{Name: declared}
				}
			}
			if !slices.Contains(images, image) {
				images = append(images, image)
			}
		}
	}
	return images
}
