package crd_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/messaginginbox/operator/config/crd"
)

// kubectl apply keeps a copy of the object in an annotation of at most 256 KiB;
// the definition stays far below, so that it can grow.
const maxDefinitionBytes = 150 << 10

func TestDefinitionFitsIntoAnAnnotation(t *testing.T) {
	if size := len(crd.Definition); size >= maxDefinitionBytes {
		t.Errorf("the definition has %d bytes, want fewer than %d", size, maxDefinitionBytes)
	}
}

func TestDefinitionDescribesMessagingInbox(t *testing.T) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.Definition, &definition); err != nil {
		t.Fatal(err)
	}
	if want := "messaginginboxes.messaginginbox.dev"; definition.Name != want {
		t.Errorf("name = %q, want %q", definition.Name, want)
	}
	if want := apiextensionsv1.NamespaceScoped; definition.Spec.Scope != want {
		t.Errorf("scope = %q, want %q", definition.Spec.Scope, want)
	}
}
