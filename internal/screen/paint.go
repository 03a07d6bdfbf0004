package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The colours are those of every terminal's own theme.
const (
	plain  = ""
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	faint  = "2"
)

// painter adds colours, when there are any.
type painter struct{ color bool }

func (p painter) paint(style, text string) string {
	if !p.color || style == plain || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// cell is a text in a table with its style, which does not count as width.
type cell struct{ text, style string }

// table writes rows in aligned columns, indented. The last column is as wide as it likes.
func (p painter) table(out *strings.Builder, indent string, rows [][]cell) {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for _, row := range rows {
		line := indent
		for i, c := range row {
			padding := ""
			if i < len(row)-1 {
				padding = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+2)
			}
			line += p.paint(c.style, c.text) + padding
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// printable keeps what a database or a broker said from commanding the terminal, and puts
// it on one line.
func printable(text string) string {
	shown := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		default:
			return r
		}
	}, text)
	return strings.Join(strings.Fields(shown), " ")
}

// wrap breaks a text between words, so that each line has at most so many characters
// with its indent. A longer word keeps its line to itself.
func wrap(text, first, indent string, width int) string {
	line, lines := first, []string{}
	empty := true
	for _, word := range strings.Fields(printable(text)) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	return strings.Join(append(lines, line), "\n") + "\n"
}
