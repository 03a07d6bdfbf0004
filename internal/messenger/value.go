package messenger

// Kind is the kind of a Value.
type Kind int

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Map
	// Opaque is a value that only PHP can know: a tag such as !php/const, or a
	// variable that stands for a whole list or map.
	Opaque
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "a map", "a value that only PHP knows"}[k]
}

// Value is one node of a configuration. Values may share their children, since
// anchors do: they are never changed.
type Value struct {
	Kind Kind
	// Text of a scalar: true or false, the number, the string. Of an Opaque value, its source.
	Text    Expression
	Items   []*Value
	Entries []Entry
	At      Position

	// dynamic is set when the value came from an environment variable: Symfony judges
	// its kind by its processors, not by its text.
	dynamic bool
	size    int // the number of values when everything shared is written out
}

// Entry is one key of a map.
type Entry struct {
	Key   string
	At    Position
	Value *Value
}

// Get returns the value of a key; nil when the map has no such key.
func (v *Value) Get(key string) *Value {
	if v == nil {
		return nil
	}
	for _, entry := range v.Entries {
		if entry.Key == key {
			return entry.Value
		}
	}
	return nil
}

// IsNull says whether the value is absent or null.
func (v *Value) IsNull() bool { return v == nil || v.Kind == Null }

// measure computes the size of a list or map, at most limit+1.
func (v *Value) measure(limit int) {
	v.size = 1
	for _, item := range v.Items {
		v.size = min(v.size+item.size, limit+1)
	}
	for _, entry := range v.Entries {
		v.size = min(v.size+entry.Value.size, limit+1)
	}
}
