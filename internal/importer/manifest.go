package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/messenger"
)

// Annotation holds the spec as it was last imported, as JSON. A later import compares
// it with the manifest to tell a person's edits from what came from the configuration.
const Annotation = "messaginginbox.dev/imported"

// applicationPeriod is the retention with which Symfony prunes its inbox by default.
const applicationPeriod = "168h"

// Document makes a whole manifest of the declarations.
func Document(configuration *messenger.Configuration, declarations []Declaration, options Options) (*yaml.Node, error) {
	connection, err := inboxConnection(configuration, options.Connection)
	if err != nil {
		return nil, err
	}
	spec := buildSpec(declarations, options, connection)
	imported, err := specJSON(spec)
	if err != nil {
		return nil, err
	}
	metadata := mapping()
	setScalar(metadata, "name", options.Name, Text)
	if options.Namespace != "" {
		setScalar(metadata, "namespace", options.Namespace, Text)
	}
	annotations := mapping()
	setScalar(annotations, Annotation, imported, Text).Style = yaml.SingleQuotedStyle
	set(metadata, "annotations", annotations)

	object := mapping()
	setScalar(object, "apiVersion", v1alpha1.GroupVersion.String(), Text)
	setScalar(object, "kind", v1alpha1.Kind, Text)
	set(object, "metadata", metadata)
	set(object, "spec", spec)
	object.Content[0].HeadComment = header(configuration)
	return &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{object}}, nil
}

func header(configuration *messenger.Configuration) string {
	return fmt.Sprintf(`# Imported from %s for the environment %s.
# Import again with --write to bring it up to date: what a person has set stays.
# batchHandlers, dispatchesAfterCurrentBus and handler times are decided in PHP, so
# they are not imported: declare them where they differ from the defaults.`, messenger.Printable(sourceNames(configuration)), messenger.Printable(configuration.Environment))
}

func buildSpec(declarations []Declaration, options Options, connection string) *yaml.Node {
	spec := mapping()
	secret := setPath(spec, "database.urlSecretRef.name", options.Secret, Text)
	if connection != "" {
		secret.LineComment = "# has the URL of the Doctrine connection " + messenger.Printable(connection)
	}
	setPath(spec, "database.urlSecretRef.key", secretKey, Text)
	setPath(spec, "retention.applicationPeriod", applicationPeriod, Text).LineComment = "# Symfony prunes the table too, after 7 days by default"
	transports := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, declaration := range declarations {
		transports.Content = append(transports.Content, buildTransport(declaration))
	}
	set(spec, "transports", transports)
	return spec
}

func buildTransport(declaration Declaration) *yaml.Node {
	transport := mapping()
	setScalar(transport, "name", declaration.Name, Text)
	for _, field := range declaration.Fields {
		setPath(transport, field.Path, field.Value, field.Kind).LineComment = "# " + field.Origin()
	}
	lines := make([]string, 0, len(declaration.Notes))
	for _, note := range declaration.Notes {
		lines = append(lines, "# "+note.Comment())
	}
	transport.HeadComment = strings.Join(lines, "\n")
	return transport
}

// specJSON is the spec as compact JSON.
func specJSON(spec *yaml.Node) (string, error) {
	var plain any
	if err := spec.Decode(&plain); err != nil {
		return "", fmt.Errorf("reading the imported spec: %w", err)
	}
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(plain); err != nil {
		return "", fmt.Errorf("recording the imported spec: %w", err)
	}
	return strings.TrimSpace(encoded.String()), nil
}

// EncodeDocument writes one manifest.
func EncodeDocument(document *yaml.Node) ([]byte, error) { return encode([]*yaml.Node{document}) }

// encode writes documents as YAML with an indentation of two.
func encode(documents []*yaml.Node) ([]byte, error) {
	var encoded bytes.Buffer
	encoder := yaml.NewEncoder(&encoded)
	encoder.SetIndent(2)
	for _, document := range documents {
		if err := encoder.Encode(document); err != nil {
			return nil, fmt.Errorf("writing the manifest: %w", err)
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("writing the manifest: %w", err)
	}
	return encoded.Bytes(), nil
}
