package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// maxBytes is far above the largest object that the API server stores (1.5 MiB).
const maxBytes = 8 << 20

// compiled is made once: compiling the CRD's rules takes tens of milliseconds, and
// a manager never needs them.
var compiled = sync.OnceValues(newValidator)

// Read returns the MessagingInboxes of a file, or of standard input for "-", with
// defaults filled in. Documents of other kinds are passed over, so that a team can
// keep its Secret or Deployment in the same file. The error names the file and the
// document, and joins everything that is wrong in it.
func Read(path string) ([]*v1alpha1.MessagingInbox, error) {
	content, err := Content(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, content)
}

// Content reads a file, or standard input for "-", up to the largest manifest that makes
// sense.
func Content(path string) ([]byte, error) {
	source := io.Reader(os.Stdin)
	if path != "-" {
		file, err := os.Open(path) // #nosec G304 -- reading the files that the user names is the command's purpose
		if err != nil {
			return nil, fmt.Errorf("reading the manifest: %w", err)
		}
		defer func() { _ = file.Close() }() // only read
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return nil, fmt.Errorf("%s is a folder: name the manifests in it, such as %s", path, filepath.Join(path, "inbox.yaml"))
		}
		source = file
	}
	content, err := io.ReadAll(io.LimitReader(source, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(content) > maxBytes {
		return nil, fmt.Errorf("%s is larger than %d MiB: the API server would refuse it", path, maxBytes>>20)
	}
	return content, nil
}

// Parse is Read for content that is already in memory; name stands for it in errors.
func Parse(name string, content []byte) ([]*v1alpha1.MessagingInbox, error) {
	var (
		inboxes []*v1alpha1.MessagingInbox
		broken  []error
		others  []string
	)
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", name, number, err)
		}
		inbox, other, err := parseDocument(document)
		if other != "" {
			others = append(others, fmt.Sprintf("document %d is %s", number, other))
		}
		switch {
		case err != nil:
			broken = append(broken, fmt.Errorf("%s, document %d: %w", name, number, err))
		case inbox != nil:
			inboxes = append(inboxes, inbox)
		}
	}
	if len(broken) == 0 && len(inboxes) == 0 {
		return nil, fmt.Errorf("%s holds no %s of %s: %s", name, v1alpha1.Kind, v1alpha1.GroupVersion, listed(others))
	}
	return inboxes, errors.Join(broken...)
}

// maxListed is how many documents a message describes before it counts the rest.
const maxListed = 5

func listed(others []string) string {
	switch more := len(others) - maxListed; {
	case len(others) == 0:
		return "it is empty"
	case more > 0:
		return fmt.Sprintf("%s, and %d more", strings.Join(others[:maxListed], ", "), more)
	}
	return strings.Join(others, ", ")
}

// described says what a document of another kind is; "" for one without content.
func described(object *unstructured.Unstructured) string {
	switch {
	case len(object.Object) == 0:
		return ""
	case object.GetKind() == "":
		return "no manifest, since it has no kind"
	}
	return fmt.Sprintf("the %s %q of %q", object.GetKind(), object.GetName(), object.GetAPIVersion())
}

// parseDocument returns nil for a document of another kind, and what it is.
func parseDocument(document []byte) (inbox *v1alpha1.MessagingInbox, other string, err error) {
	content, err := decode(document)
	if err != nil {
		return nil, "", fmt.Errorf("not valid YAML: %w", err)
	}
	object := &unstructured.Unstructured{Object: content}
	if object.GetKind() != v1alpha1.Kind {
		return nil, described(object), nil
	}
	inbox, err = admitted(object)
	return inbox, "", err
}

// admitted is the object as the API server would store it.
func admitted(object *unstructured.Unstructured) (*v1alpha1.MessagingInbox, error) {
	if version := object.GetAPIVersion(); version != v1alpha1.GroupVersion.String() {
		return nil, fmt.Errorf("%s %s: apiVersion is %q, this version of the operator serves %s", v1alpha1.Kind, object.GetName(), version, v1alpha1.GroupVersion)
	}
	rules, err := compiled()
	if err != nil {
		return nil, err
	}
	if violations := rules.admit(object); len(violations) > 0 {
		return nil, fmt.Errorf("%s %s: %w", v1alpha1.Kind, object.GetName(), violations.ToAggregate())
	}
	inbox := &v1alpha1.MessagingInbox{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, inbox); err != nil {
		return nil, fmt.Errorf("%s %s: %w", v1alpha1.Kind, object.GetName(), err)
	}
	return inbox, nil
}

// decode refuses repeated keys, and keeps whole numbers whole as the API server does.
func decode(document []byte) (map[string]any, error) {
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(asJSON, &content); err != nil {
		return nil, err
	}
	return content, nil
}
