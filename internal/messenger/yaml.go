package messenger

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parse reads one source as Symfony's YAML component would: one document, keys not
// repeated, merge keys, anchors, and tags that stay what they are.
func parse(source Source) (*Value, error) {
	if err := source.admit(); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(source.Content))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return &Value{At: Position{File: source.Name, Line: 1, Column: 1}, size: 1}, nil
		}
		return nil, syntaxError(source, err)
	}
	reader := nodeReader{file: source.Name, done: map[*yaml.Node]*Value{}, open: map[*yaml.Node]bool{}}
	value, err := reader.read(document.Content[0], 0)
	if err != nil {
		return nil, err
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, errorAt(reader.at(&second), "a second YAML document begins here: Symfony refuses a file of several documents")
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(source, err)
	}
	return value, nil
}

var yamlErrorPattern = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// syntaxError adds the column that the YAML library leaves out: of a tab in the
// indentation, which is the most frequent mistake, else of the line's first character.
func syntaxError(source Source, err error) error {
	at, message := Position{File: source.Name}, err.Error()
	if match := yamlErrorPattern.FindStringSubmatch(message); match != nil {
		message = match[2]
		at.Line, _ = strconv.Atoi(match[1]) // no number leaves 0: unknown
	}
	if strings.Contains(message, "max depth") {
		return errorAt(source.tooDeep(), "lists and maps are nested more than %d deep", maxDepth)
	}
	for _, near := range []int{at.Line, at.Line + 1, at.Line - 1} {
		if near < 1 {
			continue
		}
		line := source.Line(near)
		indentation := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if tab := strings.IndexByte(indentation, '\t'); tab >= 0 {
			return errorAt(Position{File: source.Name, Line: near, Column: tab + 1}, "a tab in the indentation: YAML allows spaces only")
		}
	}
	if at.Line > 0 {
		line := source.Line(at.Line)
		at.Column = utf8.RuneCountInString(line) - utf8.RuneCountInString(strings.TrimLeft(line, " ")) + 1
	}
	if strings.Contains(message, "unknown anchor") { // it would quote what may be a password after *
		message = "an alias refers to an unknown anchor"
	}
	return errorAt(at, "not valid YAML: %s", message)
}

// nodeReader turns YAML nodes into values. An anchor is read once and shared, so a
// document of nested aliases costs no more than its text.
type nodeReader struct {
	file string
	done map[*yaml.Node]*Value
	open map[*yaml.Node]bool
	// merged counts the entries that merge keys copied: copies are not shared.
	merged int
}

func (r *nodeReader) at(node *yaml.Node) Position {
	return Position{File: r.file, Line: node.Line, Column: node.Column}
}

func (r *nodeReader) read(node *yaml.Node, depth int) (*Value, error) {
	if node.Kind == yaml.AliasNode {
		if r.open[node.Alias] {
			return nil, errorAt(r.at(node), "the anchor &%s (line %d) contains itself", node.Value, node.Alias.Line)
		}
		return r.read(node.Alias, depth)
	}
	if value, ok := r.done[node]; ok {
		return value, nil
	}
	if depth > maxDepth {
		return nil, errorAt(r.at(node), "lists and maps are nested more than %d deep", maxDepth)
	}
	r.open[node] = true
	defer delete(r.open, node)
	value, err := r.readNew(node, depth)
	if err != nil {
		return nil, err
	}
	value.At = r.at(node)
	if value.measure(maxValues); value.size > maxValues {
		return nil, errorAt(value.At, "written out, this is more than %d values", maxValues)
	}
	r.done[node] = value
	return value, nil
}

func (r *nodeReader) readNew(node *yaml.Node, depth int) (*Value, error) {
	if tag := node.ShortTag(); !strings.HasPrefix(tag, "!!") || tag == "!!binary" {
		return &Value{Kind: Opaque, Text: literal(strings.TrimSpace(tag + " " + node.Value))}, nil
	}
	switch node.Kind {
	case yaml.SequenceNode:
		value := &Value{Kind: List}
		for _, item := range node.Content {
			read, err := r.read(item, depth+1)
			if err != nil {
				return nil, err
			}
			value.Items = append(value.Items, read)
		}
		return value, nil
	case yaml.MappingNode:
		return r.readMap(node, depth)
	default:
		return scalar(node), nil
	}
}

func scalar(node *yaml.Node) *Value {
	switch node.ShortTag() {
	case "!!null":
		return &Value{Kind: Null}
	case "!!bool":
		return &Value{Kind: Bool, Text: literal(strings.ToLower(node.Value))}
	case "!!int", "!!float":
		return &Value{Kind: Number, Text: literal(strings.ReplaceAll(node.Value, "_", ""))}
	default:
		return &Value{Kind: Text, Text: literal(node.Value)}
	}
}

// readMap follows Symfony's parser in what it makes of keys: a merge adds what its map
// does not have yet, whatever its place; a repeated key is refused, except that it
// replaces null, and that below a merge key the last one counts.
func (r *nodeReader) readMap(node *yaml.Node, depth int) (*Value, error) {
	builder := mapBuilder{index: map[string]int{}}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, content := node.Content[i], node.Content[i+1]
		value, err := r.read(content, depth+1)
		if err != nil {
			return nil, err
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, errorAt(r.at(key), "the key is a list or map: Symfony knows only strings and numbers as keys")
		case key.ShortTag() == "!!merge":
			copied, err := builder.merge(r.at(key), value)
			if err != nil {
				return nil, err
			}
			if r.merged += copied; r.merged > maxValues {
				return nil, errorAt(r.at(key), "written out, this is more than %d values", maxValues)
			}
		default:
			if err := builder.set(Entry{Key: key.Value, At: r.at(key), Value: value}); err != nil {
				return nil, err
			}
		}
	}
	return &Value{Kind: Map, Entries: builder.entries}, nil
}

type mapBuilder struct {
	entries []Entry
	index   map[string]int
	merged  bool
}

func (b *mapBuilder) set(entry Entry) error {
	i, repeated := b.index[entry.Key]
	if !repeated {
		b.index[entry.Key] = len(b.entries)
		b.entries = append(b.entries, entry)
		return nil
	}
	if first := b.entries[i]; !b.merged && first.Value.Kind != Null {
		return errorAt(entry.At, "the key %q is repeated: it is already at %s, and Symfony refuses a key that comes twice", Shown(entry.Key), first.At)
	}
	b.entries[i] = entry
	return nil
}

// merge returns the number of entries that it copied.
func (b *mapBuilder) merge(at Position, value *Value) (int, error) {
	b.merged = true
	before := len(b.entries)
	sources := []*Value{value}
	if value.Kind == List {
		sources = value.Items
	}
	for _, source := range sources {
		if source.Kind != Map {
			return 0, errorAt(at, "the merge key << needs a map or a list of maps, not %s", source.Kind)
		}
		for _, entry := range source.Entries {
			if _, exists := b.index[entry.Key]; !exists {
				b.index[entry.Key] = len(b.entries)
				b.entries = append(b.entries, entry)
			}
		}
	}
	return len(b.entries) - before, nil
}
