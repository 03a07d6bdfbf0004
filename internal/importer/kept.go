package importer

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// KeepAnnotation lists differences that a person accepts, separated by commas:
// TRANSPORT/FIELD, or TRANSPORT for one that only one side declares.
const KeepAnnotation = "messaginginbox.dev/keep"

// Why a difference is no drift.
const (
	KeptAccepted = "accepted by the annotation " + KeepAnnotation
	KeptLonger   = "set here, and no shorter window than the configuration's"
	KeptAdded    = "added here, and never imported"
)

// history is what the manifest's annotations say of earlier decisions.
type history struct {
	accepted map[string]bool
	// imported are the transports of the last import by name; nil when nothing was imported.
	imported map[string]map[string]any
}

func historyOf(object *yaml.Node) (history, error) {
	annotations := getPath(object, "metadata.annotations")
	past := history{accepted: map[string]bool{}}
	if keep := get(annotations, KeepAnnotation); keep != nil {
		for entry := range strings.SplitSeq(keep.Value, ",") {
			past.accepted[strings.TrimSpace(entry)] = true
		}
	}
	last := get(annotations, Annotation)
	if last == nil {
		return past, nil
	}
	spec := map[string]any{}
	if err := json.Unmarshal([]byte(last.Value), &spec); err != nil {
		return past, fmt.Errorf("the annotation %s is not what import wrote (%w): delete it to compare the manifest as it stands", Annotation, err)
	}
	past.imported = byName(spec["transports"])
	return past, nil
}

// byName has the transports of an imported spec.
func byName(list any) map[string]map[string]any {
	transports := map[string]map[string]any{}
	items, _ := list.([]any)
	for _, item := range items {
		if name, ok := plainMap(item)["name"].(string); ok {
			transports[name] = plainMap(item)
		}
	}
	return transports
}

// edited says that a person decided the field: an import would leave it as it is.
func (h history) edited(transport, path string, node *yaml.Node) bool {
	written := getPath(node, path)
	if h.imported == nil {
		return written != nil
	}
	var last any = h.imported[transport]
	for key := range strings.SplitSeq(path, ".") {
		last = plainMap(last)[key]
	}
	return !reflect.DeepEqual(plainJSON(written), last)
}

// judge says whether a difference in a field is drift.
func (h history) judge(difference *Difference, node *yaml.Node) {
	difference.ByHand = h.edited(difference.Transport, difference.Field, node)
	switch {
	case h.accepted[difference.Path()]:
		difference.Kept = KeptAccepted
	case difference.ByHand && lengthens(difference.Field, difference.Configuration.Value, difference.Manifest.Value):
		difference.Kept = KeptLonger
	}
}

// judgeMissing judges a transport that only the configuration declares.
func (h history) judgeMissing(difference *Difference) {
	_, difference.ByHand = h.imported[difference.Transport]
	if h.accepted[difference.Path()] {
		difference.Kept = KeptAccepted
	}
}

// judgeExtra judges a transport that only the manifest declares.
func (h history) judgeExtra(difference *Difference, node *yaml.Node) {
	last, wasImported := h.imported[difference.Transport]
	difference.ByHand = !wasImported || !reflect.DeepEqual(plainJSON(node), any(last))
	switch {
	case h.accepted[difference.Path()]:
		difference.Kept = KeptAccepted
	case h.imported != nil && !wasImported:
		difference.Kept = KeptAdded
	}
}

// lengthens says that the manifest's value makes no window shorter. What cannot be
// told from the two values alone, such as another failure transport, is false.
func lengthens(path, configured, declared string) bool {
	if !strings.HasPrefix(path, "redelivery.") || path == retryStrategy+"service" {
		return false
	}
	from, to, alike := sizes(configured, declared)
	if !alike {
		return false
	}
	switch path {
	case retryStrategy + "maxDelay": // 0 is no limit
		return to == 0 || from != 0 && to >= from
	case "redelivery.heartbeat": // without one the worker's own end decides
		return from != 0 && to >= from
	}
	return to >= from
}

// Path names the difference as KeepAnnotation does.
func (d Difference) Path() string {
	if d.Field == "" {
		return d.Transport
	}
	return d.Transport + "/" + d.Field
}

// Drift are the differences that nobody decided.
func Drift(differences []Difference) []Difference { return keptOrNot(differences, false) }

// Kept are the differences that a person decided.
func Kept(differences []Difference) []Difference { return keptOrNot(differences, true) }

func keptOrNot(differences []Difference, kept bool) []Difference {
	var found []Difference
	for _, difference := range differences {
		if (difference.Kept != "") == kept {
			found = append(found, difference)
		}
	}
	return found
}
