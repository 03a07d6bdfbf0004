package controllers

import (
	"strings"
	"testing"

	"github.com/messaginginbox/operator/internal/manifest"
)

func TestWhichTransportsAreGuarded(t *testing.T) {
	const watched = "inbox: false, observe: {urlSecretRef: {name: s}}"
	for name, test := range map[string]struct{ transports, want string }{
		"an outbox, then a failure transport":     {"{name: a, type: amqp, failureTransport: f, outbox: o}, {name: f, type: redis, " + watched + "}, {name: o, type: doctrine, " + watched + "}", "o f"},
		"what the relay of an outbox failed at":   {"{name: a, type: sync, outbox: o}, {name: o, type: doctrine, failureTransport: f, inbox: false}, {name: f, type: doctrine, " + watched + "}", "f"},
		"each once":                               {"{name: a, type: amqp, failureTransport: f}, {name: b, type: amqp, failureTransport: f}, {name: f, type: doctrine, " + watched + "}", "f"},
		"not without observe":                     {"{name: a, type: amqp, failureTransport: f}, {name: f, type: doctrine, inbox: false}", ""},
		"not whose messages would have to be got": {"{name: a, type: amqp, failureTransport: f}, {name: f, type: amqp, " + watched + "}", ""},
		"not of a transport without proofs":       {"{name: a, type: amqp, inbox: false, failureTransport: f}, {name: b, type: amqp, batchHandlers: true, outbox: f}, {name: f, type: doctrine, " + watched + "}", ""},
		"not the transport itself":                {"{name: a, type: redis, observe: {urlSecretRef: {name: s}}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inboxes, err := manifest.Parse("test", []byte("apiVersion: messaginginbox.dev/v1alpha1\nkind: MessagingInbox\nmetadata: {name: orders}\nspec:\n  database: {urlSecretRef: {name: d}}\n  transports: ["+test.transports+"]"))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, transport := range guardedTransports(inboxes[0]) {
				names = append(names, string(transport.Name))
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("guarded are %q, want %q", got, test.want)
			}
		})
	}
}
