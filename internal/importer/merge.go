package importer

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/messaginginbox/operator/internal/messenger"
)

type updating struct{ kept []string }

func (u *updating) keep(path, format string, arguments ...any) {
	u.kept = append(u.kept, messenger.MaskText(path+": "+fmt.Sprintf(format, arguments...)))
}

func (u *updating) mapping(ours *yaml.Node, base map[string]any, theirs *yaml.Node, path string) {
	for i := 0; i+1 < len(theirs.Content); i += 2 {
		key := theirs.Content[i].Value
		u.entry(ours, key, base[key], theirs.Content[i+1], path+"."+key)
	}
	for key, last := range base {
		if still := get(theirs, key); still == nil {
			u.dropped(ours, key, last, path+"."+key)
		}
	}
}

// entry merges one key that the new import has.
func (u *updating) entry(ours *yaml.Node, key string, last any, fresh *yaml.Node, path string) {
	current := get(ours, key)
	switch {
	case current == nil && last == nil:
		set(ours, key, fresh)
	case current == nil:
		if !reflect.DeepEqual(last, plainJSON(fresh)) {
			u.keep(path, "deleted here; the configuration now says %v", plain(fresh))
		}
	case fresh.Kind == yaml.MappingNode && current.Kind == yaml.MappingNode:
		u.mapping(current, plainMap(last), fresh, path)
	case fresh.Kind == yaml.SequenceNode && current.Kind == yaml.SequenceNode:
		u.transports(current, last, fresh, path)
	default:
		u.scalar(ours, key, current, last, fresh, path)
	}
}

func (u *updating) scalar(ours *yaml.Node, key string, current *yaml.Node, last any, fresh *yaml.Node, path string) {
	now := plainJSON(current)
	switch {
	case reflect.DeepEqual(now, plainJSON(fresh)):
		if current.LineComment == "" {
			current.LineComment = fresh.LineComment
		}
	case reflect.DeepEqual(now, last):
		if current.LineComment != "" {
			fresh.LineComment = current.LineComment
		}
		set(ours, key, fresh)
	case !reflect.DeepEqual(last, plainJSON(fresh)):
		u.keep(path, "stays %v, as set here; the configuration says %v", now, plain(fresh))
	}
}

// dropped handles a key that the last import had and the new one has not.
func (u *updating) dropped(ours *yaml.Node, key string, last any, path string) {
	current := get(ours, key)
	if current == nil {
		return
	}
	if content := plainMap(last); content != nil && current.Kind == yaml.MappingNode {
		u.mapping(current, content, mapping(), path)
		if len(current.Content) == 0 {
			remove(ours, key)
		}
		return
	}
	if reflect.DeepEqual(plainJSON(current), last) {
		remove(ours, key)
		return
	}
	u.keep(path, "stays %v, as set here; the configuration no longer says anything of it", plainJSON(current))
}

// transports merges the list by name, in the order of the manifest.
func (u *updating) transports(ours *yaml.Node, last any, theirs *yaml.Node, path string) {
	lastByName := byName(last)
	theirByName := map[string]*yaml.Node{}
	for _, transport := range theirs.Content {
		theirByName[nameOf(transport)] = transport
	}
	var merged []*yaml.Node
	seen := map[string]bool{}
	for _, transport := range ours.Content {
		name := nameOf(transport)
		seen[name] = true
		fresh, declared := theirByName[name]
		switch was, imported := lastByName[name]; {
		case declared:
			u.mapping(transport, was, fresh, path+"["+name+"]")
			addNotes(transport, fresh)
		case imported && reflect.DeepEqual(plainJSON(transport), any(was)):
			continue // gone from the configuration, and nobody touched it
		case imported:
			u.keep(path+"["+name+"]", "stays, since it was edited here; the configuration no longer declares this transport")
		}
		merged = append(merged, transport)
	}
	for _, transport := range theirs.Content {
		name := nameOf(transport)
		if seen[name] {
			continue
		}
		if was, imported := lastByName[name]; imported {
			if !reflect.DeepEqual(any(was), plainJSON(transport)) {
				u.keep(path+"["+name+"]", "deleted here; the configuration declares it, and has changed it")
			}
			continue
		}
		merged = append(merged, transport)
	}
	ours.Content = merged
}

func nameOf(transport *yaml.Node) string {
	name, _ := plain(getPath(transport, "name")).(string)
	return name
}

// addNotes writes the notes that the manifest does not settle.
func addNotes(ours, theirs *yaml.Node) {
	var open []string
	for line := range strings.SplitSeq(theirs.HeadComment, "\n") {
		field, _, isNote := strings.Cut(strings.TrimPrefix(line, "# "+notePrefix), ":")
		if isNote && !settled(ours, theirs, field) {
			open = append(open, line)
		}
	}
	if ours.HeadComment != "" {
		open = append([]string{ours.HeadComment}, open...)
	}
	ours.HeadComment = strings.Join(open, "\n")
}

// settled says that a person has set the field to something else than the import does.
func settled(ours, theirs *yaml.Node, field string) bool {
	if field == "type" && settled(ours, theirs, "redelivery.window") {
		return true // a custom transport whose window is declared needs no other type
	}
	current, imported := getPath(ours, field), getPath(theirs, field)
	if current == nil {
		return imported != nil // a placeholder that was deleted
	}
	return !reflect.DeepEqual(plainJSON(current), plainJSON(imported))
}

// plainJSON is plain with the number types of JSON, as the annotation has them.
func plainJSON(node *yaml.Node) any {
	if node == nil {
		return nil
	}
	encoded, err := json.Marshal(plain(node))
	if err != nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(encoded, &value); err != nil {
		return nil
	}
	return value
}
