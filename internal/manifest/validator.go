// Package manifest reads MessagingInbox manifests as the API server would store
// them: unknown and repeated fields refused, the CRD's defaults filled in, and the
// CRD's schema, list and CEL rules applied. The definition is the one that is
// installed in the cluster, so a pipeline and the cluster cannot disagree.
package manifest

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/config/crd"
)

// validator applies the embedded CRD to one object.
type validator struct {
	structural *schema.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

func newValidator() (*validator, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.Definition, &definition); err != nil {
		return nil, fmt.Errorf("reading the embedded CRD: %w", err)
	}
	for _, version := range definition.Spec.Versions {
		if version.Name == v1alpha1.GroupVersion.Version {
			return compile(version.Schema)
		}
	}
	return nil, fmt.Errorf("the embedded CRD has no version %s", v1alpha1.GroupVersion.Version)
}

func compile(versioned *apiextensionsv1.CustomResourceValidation) (*validator, error) {
	var internal apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(versioned, &internal, nil); err != nil {
		return nil, fmt.Errorf("converting the embedded CRD: %w", err)
	}
	structural, err := schema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("the embedded CRD is not structural: %w", err)
	}
	openAPI, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("compiling the embedded CRD: %w", err)
	}
	return &validator{
		structural: structural,
		openAPI:    openAPI,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// admit fills in the defaults and returns every rule that the object breaks, in
// the order of the API server: names of fields, schema, list keys, CEL.
func (v *validator) admit(object *unstructured.Unstructured) field.ErrorList {
	content := object.UnstructuredContent()
	delete(content, "status")
	defaulting.PruneNonNullableNullsWithoutDefaults(content, v.structural)
	defaulting.Default(content, v.structural)

	var broken field.ErrorList
	for _, path := range v.unknownFields(content) {
		broken = append(broken, field.Forbidden(field.NewPath(path), "unknown field"))
	}
	broken = append(broken, v.metadata(object)...)
	broken = append(broken, validation.ValidateCustomResource(nil, content, v.openAPI)...)
	broken = append(broken, listtype.ValidateListSetsAndMaps(nil, v.structural, content)...)
	if len(broken) > 0 {
		return broken // CEL rules are written for objects of the right shape
	}
	violated, _ := v.rules.Validate(context.Background(), nil, v.structural, content, nil, celconfig.RuntimeCELCostBudget)
	return violated
}

func (v *validator) unknownFields(content map[string]any) []string {
	return pruning.PruneWithOptions(content, v.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

func (v *validator) metadata(object *unstructured.Unstructured) field.ErrorList {
	meta := metav1.ObjectMeta{
		Name:         object.GetName(),
		GenerateName: object.GetGenerateName(),
		Namespace:    object.GetNamespace(),
		Labels:       object.GetLabels(),
		Annotations:  object.GetAnnotations(),
	}
	if meta.Namespace == "" {
		meta.Namespace = metav1.NamespaceDefault // kubectl fills in the context's namespace
	}
	return apivalidation.ValidateObjectMeta(&meta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}
