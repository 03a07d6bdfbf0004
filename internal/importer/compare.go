package importer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/messaginginbox/operator/internal/messenger"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// Side is what one of the two says, and where. A value that stands nowhere is a
// default: its position is that of the transport, or unknown.
type Side struct {
	Value string
	At    messenger.Position
	// Default says that the value is written nowhere.
	Default bool
}

func (s Side) String() string {
	if s.At.Line == 0 {
		return s.Value
	}
	if s.Default {
		return fmt.Sprintf("%s by default (%s)", s.Value, s.At)
	}
	return fmt.Sprintf("%s (%s)", s.Value, s.At)
}

// Difference is one fact on which the configuration and the manifest disagree.
type Difference struct {
	Transport string
	// Field below the transport; "" when one of the two does not have the transport at all.
	Field         string
	Configuration Side
	Manifest      Side
	// Kept says why the difference is no drift, since a person decided it; "" for drift.
	Kept string
	// ByHand says that a person set the manifest's side, so that an import leaves it as it is.
	ByHand bool
}

const absent = "not declared"

// defaults are the values of fields that are written nowhere: Symfony's on the side of
// the configuration, the operator's on that of the manifest, which are the same but for inbox.
var defaults = map[string]string{
	"outbox":                       "",
	"failureTransport":             "",
	retryStrategy + "service":      "",
	retryStrategy + "maxRetries":   fmt.Sprint(redelivery.DefaultMaxRetries),
	retryStrategy + "delay":        redelivery.DefaultDelay.String(),
	retryStrategy + "multiplier":   decimal(float64(redelivery.DefaultMultiplier) / float64(redelivery.One)),
	retryStrategy + "maxDelay":     redelivery.DefaultMaxDelay.String(),
	retryStrategy + "jitter":       decimal(float64(redelivery.DefaultJitter) / float64(redelivery.One)),
	"redelivery.redeliverTimeout":  redelivery.DefaultRedeliverTimeout.String(),
	checkDelayedInterval:           redelivery.DefaultCheckDelayedInterval.String(),
	"redelivery.claimInterval":     redelivery.DefaultClaimInterval.String(),
	"redelivery.heartbeat":         redelivery.DefaultHeartbeat.String(),
	"redelivery.ttr":               redelivery.DefaultTTR.String(),
	"redelivery.visibilityTimeout": "", // the queue's own: nothing to compare with
}

var retryFields = []string{
	retryStrategy + "service", retryStrategy + "maxRetries", retryStrategy + "delay",
	retryStrategy + "multiplier", retryStrategy + "maxDelay", retryStrategy + "jitter",
}

// Compare says where the manifest no longer agrees with the configuration. What the
// configuration does not say is no disagreement.
func Compare(declarations []Declaration, file string, manifest *Manifest) ([]Difference, error) {
	past, err := historyOf(manifest.object)
	if err != nil {
		return nil, err
	}
	list := getPath(manifest.object, "spec.transports")
	comparing := &comparing{file: file, past: past}
	nodes := map[string]*yaml.Node{}
	if list != nil {
		for _, node := range list.Content {
			nodes[nameOf(node)] = node
		}
	}
	for i := range declarations {
		declaration := &declarations[i]
		node, found := nodes[declaration.Name]
		delete(nodes, declaration.Name)
		if !found {
			missing := Difference{
				Transport:     declaration.Name,
				Configuration: Side{Value: "declared", At: declaration.At},
				Manifest:      Side{Value: absent, At: comparing.at(list)},
			}
			past.judgeMissing(&missing)
			comparing.differences = append(comparing.differences, missing)
			continue
		}
		comparing.transport(declaration, node)
	}
	if list == nil {
		return comparing.differences, nil
	}
	for _, node := range list.Content {
		if name := nameOf(node); nodes[name] == node {
			extra := Difference{Transport: name, Configuration: Side{Value: absent}, Manifest: Side{Value: "declared", At: comparing.at(node)}}
			past.judgeExtra(&extra, node)
			extra.Transport = messenger.MaskText(name)
			comparing.differences = append(comparing.differences, extra)
		}
	}
	return comparing.differences, nil
}

type comparing struct {
	file        string
	past        history
	differences []Difference
}

func (c *comparing) at(node *yaml.Node) messenger.Position {
	if node == nil {
		return messenger.Position{File: c.file}
	}
	return messenger.Position{File: c.file, Line: node.Line, Column: node.Column}
}

func (c *comparing) transport(declaration *Declaration, node *yaml.Node) {
	kind, _ := declaration.Field("type")
	typeKnown := !declaration.HasNote("type")
	if typeKnown {
		c.field(declaration, node, "type")
	}
	for _, path := range []string{"inbox", "outbox", "failureTransport"} {
		c.field(declaration, node, path)
	}
	if written := getPath(node, "type"); written == nil || written.Value != kind.Value {
		return // the fields of one type mean nothing to another
	}
	if !typeKnown || declaration.HasNote("redelivery") || getPath(node, "redelivery.window") != nil && kind.Value == string(redelivery.Custom) {
		return
	}
	paths := slices.Clone(retryFields)
	if service, opaque := declaration.Field(retryStrategy + "service"); opaque && service.Value != "" {
		paths = paths[:1]
	}
	for _, option := range optionFields[redelivery.Type(kind.Value)] {
		paths = append(paths, option.path)
	}
	if kind.Value == string(redelivery.Sync) || kind.Value == string(redelivery.InMemory) {
		return
	}
	for _, path := range paths {
		// Under a declared window nothing else counts, so only what is written can be wrong.
		if getPath(node, "redelivery.window") == nil || getPath(node, path) != nil {
			c.field(declaration, node, path)
		}
	}
}

func (c *comparing) field(declaration *Declaration, node *yaml.Node, path string) {
	if declaration.HasNote(path) {
		return
	}
	byDefault := defaults[path]
	configuration := Side{Value: byDefault, At: declaration.At, Default: true}
	if field, declared := declaration.Field(path); declared {
		configuration = Side{Value: field.Value, At: field.At}
	}
	manifest := Side{Value: byDefault, At: c.at(node), Default: true}
	if path == "inbox" {
		manifest.Value = "true" // the CRD's default
	}
	if written := getPath(node, path); written != nil {
		manifest = Side{Value: written.Value, At: c.at(written)}
	}
	if path == "redelivery.visibilityTimeout" && configuration.Default {
		return
	}
	if !sameValue(configuration.Value, manifest.Value) {
		difference := Difference{Transport: declaration.Name, Field: path, Configuration: configuration, Manifest: manifest}
		c.past.judge(&difference, node)
		for _, side := range []*Side{&difference.Configuration, &difference.Manifest} {
			if side.Value == "" {
				side.Value = "none"
			}
			side.Value = messenger.Shown(side.Value)
		}
		c.differences = append(c.differences, difference)
	}
}

// sameValue compares durations, numbers and texts by what they mean: 60s is 1m.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	first, second, alike := sizes(a, b)
	return alike && first == second
}

// sizes of two durations in nanoseconds, or of two numbers; false for anything else.
// 1500m can be both: as a number when the other one is a number.
func sizes(a, b string) (first, second float64, alike bool) {
	firstDuration, err := time.ParseDuration(a)
	secondDuration, otherErr := time.ParseDuration(b)
	if err == nil && otherErr == nil {
		return float64(firstDuration), float64(secondDuration), true
	}
	first, err = quantity(a)
	second, otherErr = quantity(b)
	return first, second, err == nil && otherErr == nil
}

// quantity is a decimal number, or a Kubernetes quantity in thousandths such as 1500m.
func quantity(text string) (float64, error) {
	thousandths, isMilli := strings.CutSuffix(text, "m")
	number, err := strconv.ParseFloat(thousandths, 64)
	if isMilli {
		number /= 1000
	}
	return number, err
}
