package messenger

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// The limits of one source. Symfony's largest configuration files are a tenth of
// these; a YAML parser needs up to 400 bytes for each mark.
const (
	// MaxBytes is the largest size of a source.
	MaxBytes = 2 << 20
	// maxMarks is the largest number of characters that can begin a value.
	maxMarks = 100_000
	// maxValues is the largest number of values once aliases are written out.
	maxValues = 100_000
	// maxDepth is the deepest nesting of lists and maps.
	maxDepth = 100
)

// Source is one configuration file.
type Source struct {
	Name    string
	Content []byte
}

// ReadSource reads one file. It stops at the size limit, so that it is quick on any file.
func ReadSource(path string) (Source, error) {
	file, err := os.Open(path) // #nosec G304 -- reading the files that the user names is the command's purpose
	if err != nil {
		return Source{}, fmt.Errorf("reading the configuration: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	if info, statErr := file.Stat(); statErr == nil && info.IsDir() {
		return Source{}, fmt.Errorf("%s is a folder: name the files in it, such as %s", path, filepath.Join(path, "messenger.yaml"))
	}
	content, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return Source{}, fmt.Errorf("reading %s: %w", path, err)
	}
	source := Source{Name: path, Content: content}
	return source, source.admit()
}

// ReadSources reads files in order, and returns everything that is wrong with them.
func ReadSources(paths []string) ([]Source, error) {
	sources := make([]Source, 0, len(paths))
	for _, path := range paths {
		source, err := ReadSource(path)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// admit refuses what no configuration is, before anything expensive is done with it.
func (s Source) admit() error {
	if len(s.Content) > MaxBytes {
		return errorAt(Position{File: s.Name}, "the file is larger than %d MiB: this is no configuration of Messenger", MaxBytes>>20)
	}
	if i := bytes.IndexByte(s.Content, 0); i >= 0 {
		return errorAt(s.position(i), "the file holds a NUL byte: it is binary, not YAML")
	}
	if i := invalidUTF8(s.Content); i >= 0 {
		return errorAt(s.position(i), "the file is not valid UTF-8")
	}
	marks := 0
	for i, character := range s.Content {
		switch character {
		case '\n', '\r', ',', ':', '[', '{', '-', '?', '#':
			if marks++; marks > maxMarks {
				return errorAt(s.position(i), "the file holds more than %d values: this is no configuration of Messenger", maxMarks)
			}
		}
	}
	return nil
}

func invalidUTF8(content []byte) int {
	if utf8.Valid(content) {
		return -1
	}
	for i := 0; i < len(content); {
		r, width := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && width == 1 {
			return i
		}
		i += width
	}
	return -1
}

// tooDeep is about where lists and maps are nested deeper than allowed: it looks at
// brackets and dashes and not at quotes.
func (s Source) tooDeep() Position {
	depth, dashes := 0, 0
	for i, character := range s.Content {
		switch character {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '-':
			dashes++
		case '\n':
			dashes = 0
		}
		if depth+dashes > maxDepth {
			return s.position(i)
		}
	}
	return Position{File: s.Name}
}

// position of a byte.
func (s Source) position(offset int) Position {
	before := s.Content[:offset]
	return Position{
		File:   s.Name,
		Line:   bytes.Count(before, []byte("\n")) + 1,
		Column: utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1,
	}
}

// Lines returns all lines of the source without their ends.
func (s Source) Lines() []string {
	lines := strings.Split(string(s.Content), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

// Line returns a line of the source without its end; "" when there is none.
func (s Source) Line(number int) string {
	rest := s.Content
	for ; number > 1; number-- {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return ""
		}
		rest = rest[end+1:]
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(bytes.TrimSuffix(line, []byte("\r")))
}
