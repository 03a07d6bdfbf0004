package messenger

import (
	"regexp"
	"strings"
)

// maxText is the longest text that parameters may add up to.
const maxText = 64 << 10

// parameters resolves %parameter% and %env(...)% as the service container does when
// it is compiled, with the variables that the user gave and no others.
type parameters struct {
	values    map[string]*Value
	variables map[string]string
	resolved  map[string]*Value
	open      map[string]bool
	failures  *Errors
	defaults  map[string]Position // variables whose default was used
}

// %% is a percent sign; a name has no spaces and no percent sign; env(...) may have both.
var parameterPattern = regexp.MustCompile(`%%|%(env\([^%]*\)|[^%\s]+)%`)

// resolve returns the value with everything resolved that is known. What it cannot
// resolve is a failure with the value's position.
func (p *parameters) resolve(value *Value) *Value {
	seen := map[*Value]*Value{}
	return p.resolveShared(value, seen)
}

func (p *parameters) resolveShared(value *Value, seen map[*Value]*Value) *Value {
	if done, ok := seen[value]; ok {
		return done
	}
	result := value
	switch value.Kind {
	case Text:
		result = p.resolveText(value)
	case List:
		result = &Value{Kind: List, At: value.At}
		for _, item := range value.Items {
			result.Items = append(result.Items, p.resolveShared(item, seen))
		}
	case Map:
		result = &Value{Kind: Map, At: value.At}
		for _, entry := range value.Entries {
			result.Entries = append(result.Entries, Entry{Key: p.resolveKey(entry), At: entry.At, Value: p.resolveShared(entry.Value, seen)})
		}
	}
	if result.measure(maxValues); result.size > maxValues {
		p.failures.add(value.At, "written out, this is more than %d values", maxValues)
		result = &Value{At: value.At, size: 1}
	}
	seen[value] = result
	return result
}

func (p *parameters) resolveKey(entry Entry) string {
	if !strings.Contains(entry.Key, "%") {
		return entry.Key
	}
	resolved := p.resolveText(&Value{Kind: Text, Text: literal(entry.Key), At: entry.At})
	return resolved.Text.String()
}

// resolveText gives a parameter's own kind to a text that is nothing but the parameter.
func (p *parameters) resolveText(value *Value) *Value {
	text, _ := value.Text.Known()
	if !strings.Contains(text, "%") {
		return value
	}
	if len(text) > maxText {
		return p.tooLong(value)
	}
	places := parameterPattern.FindAllStringSubmatchIndex(text, -1)
	if len(places) == 0 {
		return value
	}
	if whole := places[0]; whole[0] == 0 && whole[1] == len(text) && whole[2] >= 0 {
		target := *p.lookUp(text[whole[2]:whole[3]], value.At)
		target.At = value.At // where it is used: that is the line to change
		return &target
	}
	var result expressionBuilder
	end := 0
	for _, place := range places {
		result.add(literal(text[end:place[0]]))
		end = place[1]
		if place[2] < 0 {
			result.add(literal("%"))
			continue
		}
		name := text[place[2]:place[3]]
		found := p.lookUp(name, value.At)
		switch found.Kind {
		case List, Map:
			p.failures.add(value.At, "%%%s%% is %s, which cannot stand inside a text", name, found.Kind)
		case Opaque:
			result.add(unknown("%"+name+"%", ""))
		default:
			result.add(found.Text)
		}
		if result.text.Len() > maxText {
			return p.tooLong(value)
		}
	}
	result.add(literal(text[end:]))
	return &Value{Kind: Text, Text: result.expression(), At: value.At, size: 1}
}

func (p *parameters) tooLong(value *Value) *Value {
	p.failures.add(value.At, "the parameters in this text are longer than %d KiB together", maxText>>10)
	return &Value{Kind: Null, At: value.At, size: 1}
}

// lookUp returns the value of a parameter or env(...), with the kind that it has.
func (p *parameters) lookUp(name string, at Position) *Value {
	if expression, isEnv := strings.CutPrefix(name, "env("); isEnv && strings.HasSuffix(expression, ")") {
		return p.environment(strings.TrimSuffix(expression, ")"), at)
	}
	if done, ok := p.resolved[name]; ok {
		return done
	}
	value, ok := p.values[name]
	switch {
	case !ok && strings.ContainsAny(name, "/?=&@"):
		// The name is not shown: it may be a part of a password.
		p.failures.add(at, "what is between two percent signs here would be a parameter: in YAML a percent sign of a DSN is written twice, as in %%%%2f, when another one follows")
		return &Value{At: at, size: 1}
	case !ok:
		// The kernel's own, or of a file that was not named: unknown, but not wrong.
		return &Value{Kind: Text, Text: unknown("%"+name+"%", ""), At: at, size: 1}
	case len(p.open) > maxDepth:
		p.failures.add(at, "parameters refer to each other more than %d deep", maxDepth)
		return &Value{At: at, size: 1}
	case p.open[name]:
		p.failures.add(at, "the parameter %q refers to itself", Shown(name))
		return &Value{At: at, size: 1}
	}
	p.open[name] = true
	resolved := p.resolve(value)
	delete(p.open, name)
	p.resolved[name] = resolved
	return resolved
}
