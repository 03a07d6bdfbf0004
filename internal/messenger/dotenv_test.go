package messenger

import (
	"maps"
	"strings"
	"testing"
)

func TestDotenv(t *testing.T) {
	got, err := ParseDotenv(Source{Name: ".env", Content: []byte(`# comment
A=plain # comment
export B='single $A "quoted"'
C="double \"$A\" ${B} \$A \n"
D=${MISSING:-fallback}
E=${A}/x$KNOWN
F=
G="two
lines"
H='a'"b"c
I=with\ blank
`)}, map[string]string{"KNOWN": "known"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"A": "plain", "B": `single $A "quoted"`, "C": "double \"plain\" single $A \"quoted\" $A \n",
		"D": "fallback", "E": "plain/xknown", "F": "", "G": "two\nlines", "H": "abc", "I": "with blank",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestDotenvMistakes(t *testing.T) {
	for content, want := range map[string]string{
		"A=1\nnot an assignment": ".env:2:1: NAME=VALUE was expected here",
		"A='open":                ".env:1:3: the quote is never closed",
		"A=\"open":               ".env:1:3: the quote is never closed",
		"A=$(id)":                ".env:1:3: a command substitution",
		"A=\"x$(id)\"":           ".env:1:5: a command substitution",
		"A=two words":            ".env:1:6: a value with spaces must be in quotes",
		"A=\x00":                 ".env:1:3: the file holds a NUL byte",
	} {
		if _, err := ParseDotenv(Source{Name: ".env", Content: []byte(content)}, nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
}
