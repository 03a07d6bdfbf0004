package manifest

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	"github.com/messaginginbox/operator/config/crd"
)

// The API server refuses a CRD whose rules could cost too much for the largest
// object that its schema allows; this finds it without a cluster.
func TestTheDefinitionIsOneThatAnAPIServerAccepts(t *testing.T) {
	var versioned apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.Definition, &versioned); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&versioned)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&versioned.Spec)
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&versioned, &internal, nil); err != nil {
		t.Fatal(err)
	}
	internal.Status.StoredVersions = []string{versioned.Spec.Versions[0].Name}
	for _, broken := range validation.ValidateCustomResourceDefinition(t.Context(), &internal) {
		t.Error(broken)
	}
}

func TestTheDefinitionStaysSmall(t *testing.T) {
	const limit = 150 << 10
	if size := len(crd.Definition); size > limit {
		t.Errorf("the CRD has %d bytes, more than %d: client-side kubectl apply stores it in an annotation of at most 256 KiB", size, limit)
	}
}
