// Package crd carries the definition of the MessagingInbox resource, so that the
// command line defaults and validates a manifest as the API server would.
package crd

import (
	_ "embed"
)

// Definition is the CustomResourceDefinition of MessagingInbox as YAML, generated
// from the markers in api/v1alpha1. It must not be changed.
//
//go:embed bases/messaginginbox.dev_messaginginboxes.yaml
var Definition []byte
