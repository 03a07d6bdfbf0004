package messenger

import (
	"maps"
	"regexp"
	"strings"
)

// ParseDotenv reads a file in the syntax of Symfony's Dotenv component: NAME=VALUE,
// comments, export, single and double quotes, and $NAME, ${NAME}, ${NAME:-default}
// that refer to variables above or in known. Command substitution is refused: nothing
// is executed.
func ParseDotenv(source Source, known map[string]string) (map[string]string, error) {
	if err := source.admit(); err != nil {
		return nil, err
	}
	reader := dotenvReader{source: source, text: string(source.Content), known: maps.Clone(known), read: map[string]string{}}
	if reader.known == nil {
		reader.known = map[string]string{}
	}
	for reader.skipBlank() {
		if err := reader.assignment(); err != nil {
			return nil, err
		}
	}
	return reader.read, nil
}

type dotenvReader struct {
	source Source
	text   string
	offset int
	known  map[string]string
	read   map[string]string
}

var assignmentPattern = regexp.MustCompile(`^(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=`)

func (r *dotenvReader) rest() string { return r.text[r.offset:] }

func (r *dotenvReader) fail(message string) error {
	return errorAt(r.source.position(r.offset), "%s", message)
}

// skipBlank goes to the next assignment; false at the end.
func (r *dotenvReader) skipBlank() bool {
	for r.offset < len(r.text) {
		switch r.text[r.offset] {
		case ' ', '\t', '\r', '\n':
			r.offset++
		case '#':
			r.skipLine()
		default:
			return true
		}
	}
	return false
}

func (r *dotenvReader) skipLine() {
	end := strings.IndexByte(r.rest(), '\n')
	if end < 0 {
		r.offset = len(r.text)
		return
	}
	r.offset += end
}

func (r *dotenvReader) assignment() error {
	match := assignmentPattern.FindStringSubmatch(r.rest())
	if match == nil {
		return r.fail("NAME=VALUE was expected here")
	}
	r.offset += len(match[0])
	var value strings.Builder
	for r.offset < len(r.text) {
		if strings.ContainsRune(" \t\r\n", rune(r.text[r.offset])) {
			break
		}
		piece, err := r.piece()
		if err != nil {
			return err
		}
		value.WriteString(piece)
		if value.Len() > maxText {
			return r.fail("the value is longer than 64 KiB")
		}
	}
	if after := strings.TrimLeft(r.line(), " \t\r"); after != "" && after[0] != '#' {
		return r.fail("a value with spaces must be in quotes")
	}
	r.skipLine()
	r.known[match[1]], r.read[match[1]] = value.String(), value.String()
	return nil
}

func (r *dotenvReader) line() string {
	line, _, _ := strings.Cut(r.rest(), "\n")
	return line
}

// piece reads one quoted text, one reference or one character.
func (r *dotenvReader) piece() (string, error) {
	switch r.text[r.offset] {
	case '\'':
		end := strings.IndexByte(r.rest()[1:], '\'')
		if end < 0 {
			return "", r.fail("the quote is never closed")
		}
		text := r.rest()[1 : end+1]
		r.offset += end + 2
		return text, nil
	case '"':
		return r.doubleQuoted()
	case '$':
		return r.reference()
	case '\\':
		if len(r.rest()) > 1 {
			r.offset += 2
			return r.text[r.offset-1 : r.offset], nil
		}
	}
	r.offset++
	return r.text[r.offset-1 : r.offset], nil
}

var dotenvEscapes = map[byte]string{'n': "\n", 'r': "\r", '"': `"`, '\\': `\`, '$': "$"}

func (r *dotenvReader) doubleQuoted() (string, error) {
	start := r.offset
	r.offset++
	var text strings.Builder
	for r.offset < len(r.text) {
		switch character := r.text[r.offset]; character {
		case '"':
			r.offset++
			return text.String(), nil
		case '$':
			referred, err := r.reference()
			if err != nil {
				return "", err
			}
			text.WriteString(referred)
		case '\\':
			if r.offset+1 < len(r.text) {
				if escaped, ok := dotenvEscapes[r.text[r.offset+1]]; ok {
					text.WriteString(escaped)
					r.offset += 2
					continue
				}
			}
			text.WriteByte(character)
			r.offset++
		default:
			text.WriteByte(character)
			r.offset++
		}
		if text.Len() > maxText {
			return "", r.fail("the value is longer than 64 KiB")
		}
	}
	r.offset = start
	return "", r.fail("the quote is never closed")
}

// maxReference is the longest ${NAME:-default}.
const maxReference = 4096

var referencePattern = regexp.MustCompile(`^\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::?[-=]([^}]*))?\})`)

// reference expands $NAME; an unknown variable without a default is empty, as in Symfony.
func (r *dotenvReader) reference() (string, error) {
	if strings.HasPrefix(r.rest(), "$(") {
		return "", r.fail("a command substitution: nothing is executed here, give the variable with --set-env")
	}
	rest := r.rest()
	match := referencePattern.FindStringSubmatch(rest[:min(len(rest), maxReference)])
	if match == nil {
		r.offset++
		return "$", nil
	}
	r.offset += len(match[0])
	if value := r.known[match[1]+match[2]]; value != "" {
		return value, nil
	}
	return match[3], nil
}
