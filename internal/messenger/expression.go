package messenger

import (
	"strconv"
	"strings"
)

// Expression is a text that may hold parts which only the application's environment
// knows, such as %env(MESSENGER_TRANSPORT_DSN)%?queue_name=high.
type Expression struct {
	// text holds each unknown part as opening, its number, closing. The two are
	// noncharacters of Unicode, which no literal text keeps.
	text  string
	parts []part
}

// part is something unknown.
type part struct {
	source   string // as in the configuration: %env(int:LIMIT)%
	variable string // the environment variable; "" when it is not one
}

const (
	opening = '\uFDD0'
	closing = '\uFDD1'
)

func literal(text string) Expression {
	return Expression{text: strings.Map(func(r rune) rune {
		if r == opening || r == closing || r == 0 {
			return '\uFFFD'
		}
		return r
	}, text)}
}

func unknown(source, variable string) Expression {
	return Expression{text: placeholder(0), parts: []part{{source, variable}}}
}

func placeholder(number int) string {
	return string(opening) + strconv.Itoa(number) + string(closing)
}

// expressionBuilder joins expressions.
type expressionBuilder struct {
	text  strings.Builder
	parts []part
}

func (b *expressionBuilder) add(expression Expression) {
	before := len(b.parts)
	b.parts = append(b.parts, expression.parts...)
	b.text.WriteString(expression.replace(func(number int) string { return placeholder(before + number) }))
}

func (b *expressionBuilder) expression() Expression {
	return Expression{text: b.text.String(), parts: b.parts}
}

// replace writes each unknown part as another text.
func (e Expression) replace(with func(number int) string) string {
	if len(e.parts) == 0 {
		return e.text
	}
	var written strings.Builder
	rest := e.text
	for {
		before, after, found := strings.Cut(rest, string(opening))
		written.WriteString(before)
		if !found {
			return written.String()
		}
		digits, tail, _ := strings.Cut(after, string(closing))
		if number, err := strconv.Atoi(digits); err == nil && number < len(e.parts) {
			written.WriteString(with(number))
		}
		rest = tail
	}
}

// of is a part of the expression's own text, such as a piece between two slashes.
func (e Expression) of(text string) Expression {
	if !strings.ContainsRune(text, opening) {
		return Expression{text: text}
	}
	return Expression{text: text, parts: e.parts}
}

// Known returns the text, and false when a part of it is unknown.
func (e Expression) Known() (string, bool) {
	return e.text, !strings.ContainsRune(e.text, opening)
}

// String is the text with unknown parts as they are in the configuration.
func (e Expression) String() string {
	return e.replace(func(number int) string { return e.parts[number].source })
}

// Variables are the environment variables that would have to be known, in order.
func (e Expression) Variables() []string {
	var names []string
	e.replace(func(number int) string {
		if name := e.parts[number].variable; name != "" {
			names = append(names, name)
		}
		return ""
	})
	return names
}
