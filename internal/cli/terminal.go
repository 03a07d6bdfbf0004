package cli

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/messaginginbox/operator/internal/screen"
)

const (
	// readableWidth is the width of running text where none is known, and the largest.
	readableWidth = 100
	// narrowWidth is the smallest width that is believed.
	narrowWidth = 40
)

// layout suits the output: colours and the width of a terminal, when it is one. NO_COLOR
// with any value, and a dumb terminal, turn the colours off.
func layout(out io.Writer, now time.Time, command string) screen.Options {
	options := screen.Options{Now: now, Width: readableWidth, Command: command}
	file, isFile := out.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return options
	}
	options.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		options.Width = max(min(width, readableWidth), narrowWidth)
	}
	return options
}
