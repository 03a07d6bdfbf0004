package messenger

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
)

// environment evaluates what is between the parentheses of %env(...)%: a variable
// behind any number of processors. Only processors that are pure functions of a text
// are evaluated; what reads a file, calls PHP or yields a list stays unknown.
func (p *parameters) environment(expression string, at Position) *Value {
	value, known := p.variable(expression, at, 0)
	if !known {
		variable := expression[strings.LastIndexByte(expression, ':')+1:]
		return &Value{Kind: Text, Text: unknown("%env("+expression+")%", variable), At: at, dynamic: true, size: 1}
	}
	evaluated := *value
	evaluated.dynamic = true
	return &evaluated
}

// maxProcessors is the longest chain of processors; Symfony's own code stays below 10.
const maxProcessors = 32

func (p *parameters) variable(expression string, at Position, depth int) (*Value, bool) {
	processor, rest, processed := strings.Cut(expression, ":")
	switch {
	case depth > maxProcessors:
		p.failures.add(at, "%%env(...)%% chains more than %d processors", maxProcessors)
		return nil, false
	case !processed:
		return p.plainVariable(expression, at)
	case processor == "default":
		return p.withDefault(rest, at, depth)
	}
	value, known := p.variable(rest, at, depth+1)
	if !known {
		return nil, false
	}
	text, known := value.Text.Known()
	if !known {
		return nil, false
	}
	if value.Kind == Null {
		return value, processor == "string" || processor == "trim"
	}
	return process(processor, text, at)
}

// plainVariable prefers what the user gave to the default of the parameter env(NAME).
func (p *parameters) plainVariable(name string, at Position) (*Value, bool) {
	if text, given := p.variables[name]; given {
		return &Value{Kind: Text, Text: literal(text), At: at, size: 1}, true
	}
	byDefault, ok := p.values["env("+name+")"]
	if !ok || p.open["env("+name+")"] {
		return nil, false
	}
	p.open["env("+name+")"] = true
	defer delete(p.open, "env("+name+")")
	value := p.resolve(byDefault)
	switch value.Kind {
	case Text, Number, Bool, Null:
		p.defaults[name] = byDefault.At
		return value, true
	default:
		return nil, false
	}
}

// withDefault evaluates default:PARAMETER:REST: the parameter, or null when it has no
// name, stands in for a variable that is not set or empty. A variable that nobody
// gave may well be set where the application runs, so only the user can say that it is not.
func (p *parameters) withDefault(rest string, at Position, depth int) (*Value, bool) {
	parameter, variable, found := strings.Cut(rest, ":")
	if !found {
		p.failures.add(at, "%%env(default:%s)%% must be %%env(default:PARAMETER:VARIABLE)%%", rest)
		return nil, false
	}
	value, known := p.variable(variable, at, depth+1)
	if known {
		text, whole := value.Text.Known()
		if !whole {
			return nil, false
		}
		if value.Kind != Null && text != "" {
			return value, true
		}
	}
	name := variable[strings.LastIndexByte(variable, ':')+1:]
	p.defaults[name] = at
	if parameter == "" {
		return &Value{Kind: Null, At: at, size: 1}, true
	}
	return p.lookUp(parameter, at), true
}

func process(processor, text string, at Position) (*Value, bool) {
	result := &Value{Kind: Text, At: at, size: 1}
	switch processor {
	case "string":
		result.Text = literal(text)
	case "trim":
		result.Text = literal(strings.TrimSpace(text))
	case "urlencode":
		result.Text = literal(strings.ReplaceAll(url.QueryEscape(text), "+", "%20"))
	case "base64":
		decoded, err := base64.StdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(text))
		if err != nil {
			return nil, false
		}
		result.Text = literal(string(decoded))
	case "int", "float":
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, false
		}
		result.Kind = Number
		if processor == "int" {
			number = float64(int64(number))
		}
		result.Text = literal(strconv.FormatFloat(number, 'f', -1, 64))
	case "bool", "not":
		result.Kind = Bool
		result.Text = literal(strconv.FormatBool(IsTrue(text) != (processor == "not")))
	default:
		return nil, false
	}
	return result, true
}

// IsTrue is PHP's FILTER_VALIDATE_BOOLEAN; any other number than 0 counts as true as well.
func IsTrue(text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "1", "true", "on", "yes":
		return true
	}
	number, err := strconv.ParseFloat(text, 64)
	return err == nil && number != 0
}
