package messenger

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

// fuzzLimit is processor time far above what any input of the fuzzer needs.
const fuzzLimit = 5 * time.Second

// fuzzMemory is what one input may allocate in all, which is more than ever lives at once.
const fuzzMemory = 400 << 20

func FuzzLoad(f *testing.F) {
	for _, content := range corpus(f) {
		f.Add(content, "prod", "A", "amqp://user:password@rabbit")
	}
	f.Add("a: &a [*a]", "", "", "")
	f.Add("<<: [{a: 1}, {<<: {b: 2}}]", "", "", "")
	f.Add("parameters: {a: '%b%', b: '%env(default:a:int:X)%'}\nframework: {messenger: {transports: {t: '%a%'}}}", "prod", "X", "1")
	f.Fuzz(func(t *testing.T, content, environment, variable, value string) {
		within(t, func() {
			configuration, err := Load([]Source{{Name: "fuzz.yaml", Content: []byte(content)}}, Options{
				Environment: environment, Variables: map[string]string{variable: value},
			})
			if err != nil {
				checkErrors(t, err)
				return
			}
			for _, transport := range configuration.Transports {
				useEverything(t, configuration, transport)
			}
		})
	})
}

func FuzzDSN(f *testing.F) {
	for _, dsn := range []string{
		"", "amqp://user:pa%24s@rabbit:5672/%2f/orders?heartbeat=60&queues[a][binding_keys][0]=b#x",
		"redis://a:1/s/g/c,redis://b:2?x=,c:3", "redis:?host[h:1]&host[]=b", "redis:///run/x.sock?stream=a",
		"doctrine://default?queue_name=a&queue_name[]=b", "sqs://key:secret@default/q", "https://sqs.eu-west-3.amazonaws.com/1/q",
		"%env(A)%://%env(int:B)%@%env(C)%?%env(D)%=%env(E)%", "://", "a:b:c@d@e//", "x?%EF%B7%90=1&a[[]]=%",
	} {
		f.Add(dsn, "value")
	}
	f.Fuzz(func(t *testing.T, dsn, option string) {
		within(t, func() {
			failures := Errors{}
			resolver := parameters{
				values: map[string]*Value{}, variables: map[string]string{"A": option}, resolved: map[string]*Value{},
				open: map[string]bool{}, failures: &failures, defaults: map[string]Position{},
			}
			resolved := resolver.resolve(&Value{Kind: Text, Text: literal(dsn), size: 1})
			transport := &Transport{Name: "t", DSN: fieldOf("transports.t.dsn", resolved)}
			transport.setDeclared(Option{Name: "queue_name", Field: Field{Key: "k", Kind: Text, Value: literal(option)}})
			transport.describe()
			useEverything(t, &Configuration{}, transport)
		})
	})
}

func FuzzDotenv(f *testing.F) {
	f.Add("A=1\nexport B=\"${A:-x} $A \\n\" # c\nC='x'\"y\"z")
	f.Add("A=$A${A}$(A)\\")
	f.Fuzz(func(t *testing.T, content string) {
		within(t, func() {
			if _, err := ParseDotenv(Source{Name: ".env", Content: []byte(content)}, map[string]string{"A": content}); err != nil {
				checkErrors(t, err)
			}
		})
	})
}

// useEverything calls what the commands call, and checks what must always hold.
func useEverything(t *testing.T, configuration *Configuration, transport *Transport) {
	t.Helper()
	transport.Destinations()
	transport.Shadowed()
	transport.HasCredentials()
	transport.VirtualHost()
	transport.Queues()
	configuration.FailureTransportOf(transport)
	for _, unrecognized := range slices.Concat(configuration.Unrecognized, transport.Unrecognized()) {
		if text := unrecognized.String(); strings.ContainsRune(text, opening) || strings.Contains(text, "://") {
			t.Errorf("%q shows the mark of an unknown part, or a DSN", text)
		}
	}
	for _, option := range transport.NotNumbers() {
		if _, err := strconv.ParseFloat(option.Field.Text(), 64); err == nil && option.Field.Kind == Number && !strings.HasPrefix(option.Field.Text(), "-") {
			t.Errorf("%q is no number", option.Field.Text())
		}
	}
	for _, name := range []string{"queue_name", "consumer", "redeliver_timeout"} {
		field := transport.Setting(name)
		field.Duration(time.Second)
		checkText(t, field.Value)
	}
	checkText(t, transport.DSN.Value)
	checkText(t, transport.Address.Address)
	if host := transport.Address.Host.text; strings.Contains(host, "@") {
		t.Errorf("the host %q still has credentials", host)
	}
}

func checkText(t *testing.T, expression Expression) {
	t.Helper()
	if strings.ContainsRune(expression.String(), opening) {
		t.Errorf("%q shows the mark of an unknown part", expression.String())
	}
	if _, known := expression.Known(); known && len(expression.Variables()) > 0 {
		t.Errorf("%q is known, and yet it waits for %v", expression.String(), expression.Variables())
	}
}

func checkErrors(t *testing.T, err error) {
	t.Helper()
	var several Errors
	if one, ok := errors.AsType[*Error](err); ok {
		several = Errors{one}
	} else if !errors.As(err, &several) || len(several) == 0 {
		t.Fatalf("%T is not an error with a position", err)
	}
	for _, one := range several {
		if one.At.File == "" || one.Message == "" {
			t.Errorf("%+v names no file or no reason", one)
		}
	}
}

func within(t *testing.T, work func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := processorTime()
	work()
	if took := processorTime() - start; took > fuzzLimit {
		t.Errorf("took %s", took)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > fuzzMemory {
		t.Errorf("allocated %d MB", allocated>>20)
	}
}

func corpus(f *testing.F) []string {
	f.Helper()
	files, err := filepath.Glob("../../test/corpus/testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no corpus to start from: %v", err)
	}
	var contents []string
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			if strings.HasSuffix(part.Name, "messenger.yaml") {
				contents = append(contents, string(part.Data))
			}
		}
	}
	return contents
}
