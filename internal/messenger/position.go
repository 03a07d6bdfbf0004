package messenger

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
)

// Position is a place in a source. Line and Column count from 1; 0 is unknown.
type Position struct {
	File   string
	Line   int
	Column int
}

// String is file:line:column, without what is unknown.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Compare orders positions of one file from top to bottom.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(p.File, other.File), cmp.Compare(p.Line, other.Line), cmp.Compare(p.Column, other.Column))
}

// Error is something that Symfony would refuse, or that cannot be read.
type Error struct {
	At      Position
	Message string
}

func (e *Error) Error() string { return e.At.String() + ": " + e.Message }

// Errors are all that is wrong, in the order in which it was found.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, 0, len(e))
	for _, one := range e {
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

func (e *Errors) add(at Position, format string, arguments ...any) {
	*e = append(*e, &Error{At: at, Message: Printable(MaskText(fmt.Sprintf(format, arguments...)))})
}

func errorAt(at Position, format string, arguments ...any) error {
	return &Error{At: at, Message: Printable(MaskText(fmt.Sprintf(format, arguments...)))}
}

// Printable makes one line of a text that a configuration may have filled with
// anything: line ends would break a comment, and escapes could command a terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}
