package importer

import (
	"strings"
	"testing"

	"github.com/messaginginbox/operator/internal/manifest"
	"github.com/messaginginbox/operator/internal/messenger"
)

const before = `
framework:
    messenger:
        failure_transport: failed
        transports:
            orders: { dsn: 'doctrine://default?queue_name=orders', inbox: true, options: { redeliver_timeout: 600 } }
            mail: { dsn: '%env(MAIL_DSN)%', inbox: true }
            failed: 'doctrine://default?queue_name=failed'
`

func importText(t *testing.T, content string, variables map[string]string) (*messenger.Configuration, []Declaration, Options) {
	t.Helper()
	configuration, err := messenger.Load([]messenger.Source{{Name: "m.yaml", Content: []byte(content)}}, messenger.Options{Variables: variables})
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Name: "shop", Secret: "shop-database"}
	declarations, err := Declare(configuration, options)
	if err != nil {
		t.Fatal(err)
	}
	return configuration, declarations, options
}

func firstImport(t *testing.T) string {
	t.Helper()
	document, err := Document(importText(t, before, nil))
	if err != nil {
		t.Fatal(err)
	}
	content, err := EncodeDocument(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// importAgain brings an edited manifest up to date, and returns it with what was kept.
func importAgain(t *testing.T, edited, configuration string, variables map[string]string) (string, []string) {
	t.Helper()
	existing, err := OpenManifest("inbox.yaml", []byte(edited), "")
	if err != nil {
		t.Fatal(err)
	}
	document, err := Document(importText(t, configuration, variables))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := existing.Update(document)
	if err != nil {
		t.Fatal(err)
	}
	content, err := existing.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Parse("inbox.yaml", content); err != nil {
		t.Errorf("the updated manifest is refused: %v\n%s", err, content)
	}
	return string(content), kept
}

func TestImportingAgain(t *testing.T) {
	type texts [2]string // what is replaced, and what stands there instead
	for name, test := range map[string]struct {
		edit      texts // of the manifest, by the person
		change    texts // of the configuration
		variables map[string]string
		has, not  []string
		kept      string
	}{
		"nothing changed": {
			has: []string{"redeliverTimeout: 10m", "TODO(import) type", "TODO(import) redelivery.maxAge"},
		},
		"the configuration changed": {
			change: texts{"redeliver_timeout: 600", "redeliver_timeout: 60"},
			has:    []string{"redeliverTimeout: 1m # from"}, not: []string{"10m"},
		},
		"the configuration no longer sets it": {
			change: texts{", options: { redeliver_timeout: 600 }", ""},
			not:    []string{"redeliverTimeout", "redelivery: {}"},
		},
		"the person changed a value": {
			edit: texts{"redeliverTimeout: 10m", "redeliverTimeout: 20m"},
			has:  []string{"redeliverTimeout: 20m"},
		},
		"both changed it": {
			edit: texts{"redeliverTimeout: 10m", "redeliverTimeout: 20m"}, change: texts{"redeliver_timeout: 600", "redeliver_timeout: 60"},
			has: []string{"redeliverTimeout: 20m"}, kept: "spec.transports[orders].redelivery.redeliverTimeout: stays 20m, as set here; the configuration says 1m",
		},
		"both changed it alike": {
			edit: texts{"redeliverTimeout: 10m", "redeliverTimeout: 1m"}, change: texts{"redeliver_timeout: 600", "redeliver_timeout: 60"},
			has: []string{"redeliverTimeout: 1m"},
		},
		"the person changed what the configuration drops": {
			edit: texts{"redeliverTimeout: 10m", "redeliverTimeout: 20m"}, change: texts{", options: { redeliver_timeout: 600 }", ""},
			has: []string{"redeliverTimeout: 20m"}, kept: "the configuration no longer says anything of it",
		},
		"the person deleted a value": {
			edit: texts{"  retention:\n    applicationPeriod: 168h # Symfony prunes the table too, after 7 days by default\n", ""},
			not:  []string{"applicationPeriod: 168h"},
		},
		"the person added a value": {
			edit: texts{"    - name: orders\n", "    - name: orders\n      batchHandlers: true\n"},
			has:  []string{"batchHandlers: true"},
		},
		"a comment of the person stays, the import's own follows": {
			edit: texts{"    - name: orders\n", "    # from May on ask Ana before you change this\n    - name: orders\n"}, change: texts{"\nframework:", "\n\n\nframework:"},
			has: []string{"# from May on ask Ana before you change this", "# from m.yaml:8 transports.orders.dsn"}, not: []string{"m.yaml:6 transports"},
		},
		"the person declared the broker's window": {
			edit: texts{"window: 2562047h", "window: 96h"},
			has:  []string{"window: 96h", "type: custom"}, not: []string{"TODO(import) type", "TODO(import) redelivery.window"},
		},
		"the person declared the type and deleted the placeholder": {
			edit: texts{"type: custom # from m.yaml:7 transports.mail.dsn\n      inbox: true # from m.yaml:7 transports.mail.inbox\n      failureTransport: failed # from m.yaml:4 failure_transport\n      redelivery:\n        window: 2562047h # from m.yaml:7 transports.mail.dsn\n", "type: amqp\n      inbox: true\n      failureTransport: failed\n"},
			has:  []string{"type: amqp"}, not: []string{"2562047h\n", "2562047h #", "TODO(import) type", "TODO(import) redelivery.window"},
		},
		"the variable is given at last": {
			variables: map[string]string{"MAIL_DSN": "amqp://rabbit/%2f/mail?heartbeat=30"},
			has:       []string{"type: amqp", "heartbeat: 30s"}, not: []string{"2562047h", "TODO(import) type", "custom"},
		},
		"the person declared maxAge": {
			edit: texts{"inbox: false # from m.yaml:8 transports.failed (no inbox)\n", "inbox: false\n      redelivery: {maxAge: 72h}\n"},
			has:  []string{"maxAge: 72h"}, not: []string{"TODO(import) redelivery.maxAge"},
		},
		"a transport is new": {
			change: texts{"            failed: '", "            sms: 'beanstalkd://b'\n            failed: '"},
			has:    []string{"- name: sms\n      type: beanstalkd"},
		},
		"a transport is gone": {
			change: texts{"            mail: { dsn: '%env(MAIL_DSN)%', inbox: true }\n", ""},
			not:    []string{"name: mail"},
		},
		"a transport is gone that the person edited": {
			edit: texts{"window: 2562047h", "window: 96h"}, change: texts{"            mail: { dsn: '%env(MAIL_DSN)%', inbox: true }\n", ""},
			has: []string{"name: mail", "window: 96h"}, kept: "spec.transports[mail]: stays, since it was edited here",
		},
		"the person's own transport stays": {
			edit: texts{"    - name: orders\n", "    - name: own\n      type: sqs\n    - name: orders\n"},
			has:  []string{"- name: own\n      type: sqs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			edited := replaced(t, firstImport(t), test.edit[0], test.edit[1])
			configuration := replaced(t, before, test.change[0], test.change[1])
			updated, kept := importAgain(t, edited, configuration, test.variables)
			checkContent(t, withoutAnnotation(updated), test.has, test.not)
			if said := strings.Join(kept, "\n"); test.kept == "" && said != "" || !strings.Contains(said, test.kept) {
				t.Errorf("kept %q, want %q", said, test.kept)
			}
			if again, kept := importAgain(t, updated, configuration, test.variables); again != updated || len(kept) > 0 {
				t.Errorf("a third import changes it again (%q):\n%s", kept, again)
			}
		})
	}
}

func replaced(t *testing.T, text, old, fresh string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("%q is not in\n%s", old, text)
	}
	if old == "" {
		return text
	}
	return strings.Replace(text, old, fresh, 1)
}

func checkContent(t *testing.T, content string, has, not []string) {
	t.Helper()
	for _, want := range has {
		if !strings.Contains(content, want) {
			t.Errorf("%q is missing in\n%s", want, content)
		}
	}
	for _, never := range not {
		if strings.Contains(content, never) {
			t.Errorf("%q is in\n%s", never, content)
		}
	}
}

func withoutAnnotation(content string) string {
	var lines []string
	for line := range strings.SplitSeq(content, "\n") {
		if !strings.Contains(line, Annotation) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func TestWithoutTheAnnotationEverythingIsThePersons(t *testing.T) {
	updated, kept := importAgain(t, `apiVersion: messaginginbox.dev/v1alpha1
kind: MessagingInbox
metadata: {name: shop}
spec:
  database: {urlSecretRef: {name: mine}}
  transports:
  - {name: orders, type: doctrine, redelivery: {redeliverTimeout: 5m}}
`, before, nil)
	for _, want := range []string{"name: mine", "redeliverTimeout: 5m", "name: failed", Annotation} {
		if !strings.Contains(updated, want) {
			t.Errorf("%q is missing in\n%s", want, updated)
		}
	}
	if said := strings.Join(kept, "\n"); !strings.Contains(said, "redeliverTimeout: stays 5m") || !strings.Contains(said, "urlSecretRef.name: stays mine") {
		t.Errorf("kept %q", said)
	}
}

func TestManifestsThatCannotBeUpdated(t *testing.T) {
	resource := "apiVersion: messaginginbox.dev/v1alpha1\nkind: MessagingInbox\nmetadata: {name: NAME}\nspec: {}\n"
	two := strings.Replace(resource, "NAME", "a", 1) + "---\n" + strings.Replace(resource, "NAME", "b", 1)
	if _, err := OpenManifest("f", []byte(two), ""); err == nil || err.Error() != "f holds more than one MessagingInbox: say which with --name" {
		t.Errorf("two resources: %v", err)
	}
	if opened, err := OpenManifest("f", []byte(two), "b"); err != nil || opened.Name() != "b" {
		t.Errorf("one of two by its name: %v", err)
	}
	if _, err := OpenManifest("f", []byte("kind: Secret"), ""); err == nil {
		t.Error("a file without a resource was accepted")
	}
	broken, err := OpenManifest("f", []byte(strings.Replace(firstImport(t), `'{"database"`, `'x{"database"`, 1)), "")
	if err != nil {
		t.Fatal(err)
	}
	document, err := Document(importText(t, before, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := broken.Update(document); err == nil || !strings.Contains(err.Error(), "delete it to keep the whole manifest as edited") {
		t.Errorf("a broken annotation: %v", err)
	}
}
