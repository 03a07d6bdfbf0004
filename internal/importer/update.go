package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// Manifest is a file with one MessagingInbox, and perhaps documents of other kinds.
type Manifest struct {
	documents []*yaml.Node
	object    *yaml.Node
}

// OpenManifest reads a manifest with its comments. With several MessagingInboxes in
// the file, name says which one is meant.
func OpenManifest(file string, content []byte, name string) (*Manifest, error) {
	manifest := &Manifest{}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		document := &yaml.Node{}
		err := decoder.Decode(document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		manifest.documents = append(manifest.documents, document)
		object := document.Content[0]
		if plain(getPath(object, "kind")) != v1alpha1.Kind || (name != "" && plain(getPath(object, "metadata.name")) != name) {
			continue
		}
		if manifest.object != nil {
			return nil, fmt.Errorf("%s holds more than one %s: say which with --name", file, v1alpha1.Kind)
		}
		manifest.object = object
	}
	if manifest.object == nil {
		return nil, fmt.Errorf("%s holds no %s %s", file, v1alpha1.Kind, name)
	}
	return manifest, nil
}

// Name of the resource.
func (m *Manifest) Name() string { return m.text("metadata.name") }

// Namespace of the resource; "" when the manifest leaves it open.
func (m *Manifest) Namespace() string { return m.text("metadata.namespace") }

// Secret is the name of the Secret with the database's URL.
func (m *Manifest) Secret() string { return m.text("spec.database.urlSecretRef.name") }

func (m *Manifest) text(path string) string {
	text, _ := plain(getPath(m.object, path)).(string)
	return text
}

// Encode writes all documents of the file.
func (m *Manifest) Encode() ([]byte, error) { return encode(m.documents) }

// Update brings the manifest up to date with a new import, three ways: the last import
// (from the annotation), the manifest as it is now, and the new import. What a person
// changed, added or deleted since the last import stays; all else follows the new
// import. It returns a line for each edit that stays although the configuration has
// changed under it.
func (m *Manifest) Update(imported *yaml.Node) ([]string, error) {
	theirs := imported.Content[0]
	base := map[string]any{}
	metadata := get(m.object, "metadata")
	annotations := get(metadata, "annotations")
	if last := get(annotations, Annotation); last != nil {
		if err := json.Unmarshal([]byte(last.Value), &base); err != nil {
			return nil, fmt.Errorf("the annotation %s is not what import wrote (%w): delete it to keep the whole manifest as edited", Annotation, err)
		}
	}
	ours := get(m.object, "spec")
	if ours == nil || ours.Kind != yaml.MappingNode {
		return nil, errors.New("the manifest has no spec")
	}
	stripComments(ours)
	theirSpec := get(theirs, "spec")
	update := &updating{}
	update.mapping(ours, base, theirSpec, "spec")
	if annotations == nil || annotations.Kind != yaml.MappingNode {
		annotations = mapping()
		set(metadata, "annotations", annotations)
	}
	set(annotations, Annotation, getPath(theirs, "metadata.annotations").Content[1])
	return update.kept, nil
}

// originPattern is a comment that says where a value came from: from FILE:LINE KEY.
var originPattern = regexp.MustCompile(`^` + originPrefix + `.+:\d+ \S`)

// stripComments removes what an earlier import wrote, wherever editing has moved it.
func stripComments(node *yaml.Node) {
	for _, comment := range []*string{&node.HeadComment, &node.LineComment, &node.FootComment} {
		var lines []string
		for line := range strings.SplitSeq(*comment, "\n") {
			text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
			if !originPattern.MatchString(text) && !strings.HasPrefix(text, notePrefix) {
				lines = append(lines, line)
			}
		}
		*comment = strings.Join(lines, "\n")
	}
	for _, child := range node.Content {
		stripComments(child)
	}
}
