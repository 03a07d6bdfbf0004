package messenger

import (
	"errors"
	"strings"
	"testing"
)

func load(t *testing.T, content string) *Configuration {
	t.Helper()
	configuration, err := Load([]Source{{Name: "m.yaml", Content: []byte(content)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return configuration
}

func loadError(t *testing.T, content string) string {
	t.Helper()
	_, err := Load([]Source{{Name: "m.yaml", Content: []byte(content)}}, Options{})
	if err == nil {
		t.Fatal("the configuration was accepted")
	}
	if _, typed := errors.AsType[Errors](err); !typed {
		t.Errorf("the error is a %T, not Errors", err)
	}
	return err.Error()
}

func TestRepeatedKeys(t *testing.T) {
	for name, test := range map[string]struct{ yaml, want, refused string }{
		"refused, with both places":             {yaml: "a: 1\nb: 2\na: 3", refused: `m.yaml:3:1: the key "a" is repeated: it is already at m.yaml:1:1`},
		"refused in a flow mapping":             {yaml: "{a: 1, a: 2}", refused: `m.yaml:1:8: the key "a" is repeated`},
		"replace null":                          {yaml: "a: ~\na: 3", want: "3"},
		"below a merge key the last one counts": {yaml: "x: &x {z: 1}\ny:\n  <<: *x\n  a: 1\n  a: 2\na: 5", want: "5"},
		"above a merge key refused":             {yaml: "x: &x {z: 1}\ny:\n  a: 1\n  a: 2\n  <<: *x", refused: `m.yaml:4:3: the key "a" is repeated`},
		"of different quoting are the same":     {yaml: "a: 1\n'a': 2", refused: `the key "a" is repeated`},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := parse(Source{Name: "m.yaml", Content: []byte(test.yaml)})
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("got %v, want %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := value.Get("a").Text.String(); got != test.want {
				t.Errorf("a is %q, want %q", got, test.want)
			}
		})
	}
}

func TestMergeKeys(t *testing.T) {
	value, err := parse(Source{Content: []byte(`
base: &base {a: base, b: base}
more: &more {b: more, c: more}
explicit key above: {a: own, <<: *base}
explicit key below: {<<: *base, a: own}
the first of a list wins: {<<: [*base, *more]}
written out: {<<: {a: inline}}
`)})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"explicit key above/a":       "own",
		"explicit key above/b":       "base",
		"explicit key below/a":       "own",
		"the first of a list wins/b": "base",
		"the first of a list wins/c": "more",
		"written out/a":              "inline",
	} {
		mapKey, key, _ := strings.Cut(path, "/")
		if got := value.Get(mapKey).Get(key).Text.String(); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if _, err := parse(Source{Name: "m.yaml", Content: []byte("a:\n  <<: text")}); err == nil || err.Error() != "m.yaml:2:3: the merge key << needs a map or a list of maps, not a string" {
		t.Errorf("a merge of a text: %v", err)
	}
}

func TestScalars(t *testing.T) {
	value, err := parse(Source{Content: []byte("a: ~\nb:\nc: null\nd: yes\ne: 'true'\nf: true\ng: 1_000\nh: 1.5\ni: !php/const A::B\nj: 2001-01-01\nk: \"x\\0y\"\n42: x\r\n")})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]struct {
		kind Kind
		text string
	}{
		"a": {Null, ""}, "b": {Null, ""}, "c": {Null, ""},
		"d": {Text, "yes"}, "e": {Text, "true"}, "f": {Bool, "true"},
		"g": {Number, "1000"}, "h": {Number, "1.5"}, "i": {Opaque, "!php/const A::B"},
		"j": {Text, "2001-01-01"}, "k": {Text, "x\uFFFDy"}, "42": {Text, "x"},
	} {
		if got := value.Get(key); got == nil || got.Kind != want.kind || got.Text.String() != want.text {
			t.Errorf("%s is %+v, want %s %q", key, got, want.kind, want.text)
		}
	}
}

func TestEmptyAndForeignFiles(t *testing.T) {
	for _, content := range []string{"", "# nothing\n", "~", "twig: {}", "framework: ~", "framework: { secret: x }"} {
		if configuration := load(t, content); configuration.Declared {
			t.Errorf("%q declares messenger", content)
		}
	}
	for content, want := range map[string]string{
		"- a":                                "m.yaml:1:1: the file holds a list, not a map",
		"framework: [1]":                     "m.yaml:1:12: framework is a list, not a map",
		"framework:\n  messenger: [1]":       "m.yaml:2:3: messenger is a list, not a map",
		"a: 1\n---\nb: 2":                    "m.yaml:2:1: a second YAML document begins here",
		"a: {\n":                             "not valid YAML",
		"a:\n\tb: 1":                         "m.yaml:2:1: a tab in the indentation",
		"a: 1\nb: \"x\n":                     "not valid YAML",
		"? [a]\n: b":                         "m.yaml:1:3: the key is a list or map",
		"parameters: 1":                      "m.yaml:1:13: parameters is a number, not a map",
		"when@prod: 1":                       "m.yaml:1:12: when@prod is a number, not a map",
		"a: *b":                              "unknown anchor",
		"framework: {messenger: {buses: 1}}": "m.yaml:1:25: buses is a number, not a map of names",
		"framework: {messenger: {transports: {a: {dsn: [1]}}}}": "transports.a.dsn is a list",
	} {
		if got := loadError(t, content); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %q", content, got, want)
		}
	}
}
