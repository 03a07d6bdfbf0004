package waiting

import (
	"bytes"
	"regexp"
	"strconv"
)

// maxDepth of objects and lists within a stamp.
const maxDepth = 16

// scalarOrStart is a value of PHP that is no text: nothing, a number or a truth value, or
// the start of a list or an object with the number of its properties.
var scalarOrStart = regexp.MustCompile(`^(?:N;|([idb]):([^;]{1,64});|(?:a|O:\d+:"[^"]*"):(\d+):\{)`)

// valuesOf reads so many properties that PHP serialized, each a name and a value, and
// returns the values that are texts or whole numbers, also those of objects and lists
// within. It stops at what it does not understand.
func valuesOf(serialized []byte, properties int) []string {
	r := propertyReader{rest: serialized, left: []int{2 * properties}}
	for more := true; more && len(r.left) > 0; {
		more = r.next()
	}
	return r.ids
}

// propertyReader goes through names and values.
type propertyReader struct {
	rest []byte
	left []int // how many names and values each open object or list still has
	ids  []string
}

// next reads one name or value, or the end of an object or list; false when it is neither.
func (r *propertyReader) next() bool {
	last := len(r.left) - 1
	if r.left[last] == 0 {
		var closed bool
		r.rest, closed = bytes.CutPrefix(r.rest, []byte("}"))
		r.left = r.left[:last]
		return closed
	}
	isName := r.left[last]%2 == 0
	r.left[last]--
	text, rest, isText := cutString(r.rest)
	if !isText {
		return r.scalarOrStart(isName)
	}
	r.rest = rest
	if !isName {
		r.ids = appendID(r.ids, text)
	}
	return true
}

func (r *propertyReader) scalarOrStart(isName bool) bool {
	found := scalarOrStart.FindSubmatch(r.rest)
	if found == nil {
		return false
	}
	if !isName && string(found[1]) == "i" {
		r.ids = appendID(r.ids, string(found[2]))
	}
	if size := string(found[3]); size != "" {
		properties, err := strconv.Atoi(size)
		if err != nil || properties > len(r.rest) || len(r.left) > maxDepth {
			return false
		}
		r.left = append(r.left, 2*properties)
	}
	r.rest = r.rest[len(found[0]):]
	return true
}

// cutString takes s:LENGTH:"TEXT"; off the front. The length is in bytes.
func cutString(serialized []byte) (text string, rest []byte, ok bool) {
	after, found := bytes.CutPrefix(serialized, []byte("s:"))
	digits, tail, complete := bytes.Cut(after, []byte(`:"`))
	length, err := strconv.Atoi(string(digits))
	if !found || !complete || err != nil || length < 0 || length > len(tail)-2 || !bytes.HasPrefix(tail[length:], []byte(`";`)) {
		return "", nil, false
	}
	return string(tail[:length]), tail[length+2:], true
}
