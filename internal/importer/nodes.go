package importer

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

// readOtherwise is what the YAML 1.1 of kubectl takes for a boolean or a number.
var readOtherwise = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|[-+.]?[0-9][0-9_,:.ex+-]*)$`)

func scalarNode(value string, kind Kind) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: value}
	switch kind {
	case Bool:
		node.Tag = "!!bool"
	case Integer:
		node.Tag = "!!int"
	default:
		node.SetString(value) // quoted where YAML 1.2 would read something else
		if readOtherwise.MatchString(value) {
			node.Style = yaml.DoubleQuotedStyle
		}
	}
	return node
}

// get returns the value of a key; nil when the map has none.
func get(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

func set(node *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			node.Content[i+1] = value
			return
		}
	}
	node.Content = append(node.Content, scalarNode(key, Text), value)
}

func remove(node *yaml.Node, key string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			node.Content = append(node.Content[:i:i], node.Content[i+2:]...)
			return
		}
	}
}

func setScalar(node *yaml.Node, key, value string, kind Kind) *yaml.Node {
	scalar := scalarNode(value, kind)
	set(node, key, scalar)
	return scalar
}

// setPath sets a.b.c, and returns the scalar.
func setPath(node *yaml.Node, path, value string, kind Kind) *yaml.Node {
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		child := get(node, key)
		if child == nil {
			child = mapping()
			set(node, key, child)
		}
		node = child
	}
	return setScalar(node, keys[len(keys)-1], value, kind)
}

// getPath returns what is at a.b.c; nil when nothing is.
func getPath(node *yaml.Node, path string) *yaml.Node {
	for key := range strings.SplitSeq(path, ".") {
		node = get(node, key)
	}
	return node
}

// plain is the value of a node as JSON would have it; nil for no node.
func plain(node *yaml.Node) any {
	if node == nil {
		return nil
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return nil
	}
	return value
}

// plainMap is a map's content; empty for anything else.
func plainMap(value any) map[string]any {
	content, _ := value.(map[string]any)
	return content
}
