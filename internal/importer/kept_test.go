package importer

import (
	"strings"
	"testing"
)

func TestANumberSetByHandIsKeptWhenNoWindowGetsShorter(t *testing.T) {
	for name, test := range map[string]struct {
		path, configured, declared string
		want                       bool
	}{
		"a longer timeout":             {"redelivery.redeliverTimeout", "1h", "2h", true},
		"a shorter timeout":            {"redelivery.redeliverTimeout", "1h", "59m", false},
		"more retries":                 {"redelivery.retryStrategy.maxRetries", "3", "5", true},
		"fewer retries":                {"redelivery.retryStrategy.maxRetries", "3", "0", false},
		"a larger jitter in thousands": {"redelivery.retryStrategy.jitter", "0.1", "200m", true},
		"a smaller multiplier":         {"redelivery.retryStrategy.multiplier", "2", "1500m", false},
		"no limit of a delay":          {"redelivery.retryStrategy.maxDelay", "1h", "0s", true},
		"a limit where there is none":  {"redelivery.retryStrategy.maxDelay", "0s", "1h", false},
		"a higher limit":               {"redelivery.retryStrategy.maxDelay", "1h", "2h", true},
		"a longer heartbeat":           {"redelivery.heartbeat", "1m", "2m", true},
		"a heartbeat where none is":    {"redelivery.heartbeat", "0s", "2m", false},
		"no heartbeat":                 {"redelivery.heartbeat", "1m", "0s", false},
		"another failure transport":    {"failureTransport", "failed", "dead", false},
		"another type":                 {"type", "amqp", "redis", false},
		"another service":              {"redelivery.retryStrategy.service", "1", "2", false},
	} {
		if got := lengthens(test.path, test.configured, test.declared); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func compareText(t *testing.T, manifest, configuration string) []string {
	t.Helper()
	opened, err := OpenManifest("inbox.yaml", []byte(manifest), "")
	if err != nil {
		t.Fatal(err)
	}
	_, declarations, _ := importText(t, configuration, nil)
	differences, err := Compare(declarations, "inbox.yaml", opened)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, difference := range differences {
		by := "import"
		if difference.ByHand {
			by = "hand"
		}
		lines = append(lines, strings.TrimSuffix(difference.Path()+" by "+by+": "+difference.Kept, ": "))
	}
	return lines
}

func TestWhoDecidedADifference(t *testing.T) {
	replace := func(from, to string) func(string) string {
		return func(text string) string { return strings.Replace(text, from, to, 1) }
	}
	same := func(text string) string { return text }
	for name, test := range map[string]struct {
		edit, change func(string) string
		want         string
	}{
		"nobody":                                {same, same, ""},
		"the application, to a longer timeout":  {same, replace("600", "900"), "orders/redelivery.redeliverTimeout by import"},
		"the application, to a shorter timeout": {same, replace("600", "300"), "orders/redelivery.redeliverTimeout by import"},
		"the person, to a longer one":           {replace("redeliverTimeout: 10m", "redeliverTimeout: 20m"), same, "orders/redelivery.redeliverTimeout by hand: " + KeptLonger},
		"the person, to a shorter one":          {replace("redeliverTimeout: 10m", "redeliverTimeout: 5m"), same, "orders/redelivery.redeliverTimeout by hand"},
		"the person, who deleted it":            {replace("redeliverTimeout: 10m", "maxAge: 1h"), same, "orders/redelivery.redeliverTimeout by hand: " + KeptLonger},
		"both, and the person is safe":          {replace("redeliverTimeout: 10m", "redeliverTimeout: 20m"), replace("600", "900"), "orders/redelivery.redeliverTimeout by hand: " + KeptLonger},
		"both, and the application is longer":   {replace("redeliverTimeout: 10m", "redeliverTimeout: 20m"), replace("600", "1800"), "orders/redelivery.redeliverTimeout by hand"},
		"the person, who takes an inbox away":   {replace("inbox: true", "inbox: false"), same, "orders/inbox by hand"},
		"the person, who accepts it": {func(text string) string {
			return replace("annotations:\n", "annotations:\n    "+KeepAnnotation+": mail,orders/inbox\n")(replace("inbox: true", "inbox: false")(text))
		}, same, "orders/inbox by hand: " + KeptAccepted},
		"the application, with a new transport": {same, replace("            failed: '", "            more: 'amqp://h'\n            failed: '"), "more by import"},
		"the person, with a new transport": {func(text string) string {
			return strings.TrimSuffix(text, "\n") + "\n    - name: more\n      type: amqp\n"
		}, same, "more by hand: " + KeptAdded},
		"the application, which drops one": {same, replace("            mail: ", "            # mail: "), "mail by import"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(compareText(t, test.edit(firstImport(t)), test.change(before)), "\n"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAnAnnotationThatImportDidNotWrite(t *testing.T) {
	broken := strings.Replace(firstImport(t), Annotation+": '{", Annotation+": '", 1)
	opened, err := OpenManifest("inbox.yaml", []byte(broken), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Compare(nil, "inbox.yaml", opened); err == nil || !strings.Contains(err.Error(), Annotation+" is not what import wrote") {
		t.Errorf("got %v", err)
	}
}
