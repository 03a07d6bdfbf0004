package assessment

import "testing"

func TestRolesOfTransportsThatAreNotCovered(t *testing.T) {
	for name, test := range map[string]struct {
		transports string
		of         string
		want       Role
	}{
		"covered":                             {"[{name: a, type: amqp}]", "a", Role{}},
		"without an inbox":                    {"[{name: a, type: amqp, inbox: false}]", "a", Role{"no inbox", "a redelivery runs its handlers again"}},
		"without a broker":                    {"[{name: a, type: sync, inbox: false}]", "a", Role{"no broker", "nothing comes back from it"}},
		"with batch handlers":                 {"[{name: a, type: amqp, batchHandlers: true}]", "a", Role{"batch handlers", "Symfony does not record messages of batch handlers"}},
		"a failure transport":                 {"[{name: a, type: amqp, failureTransport: f}, {name: b, type: amqp, inbox: false, failureTransport: f}, {name: f, type: doctrine, inbox: false}]", "f", Role{"failure transport of a, b", "its maxAge counts in the window of a"}},
		"a failure transport with a window":   {"[{name: a, type: amqp, failureTransport: f}, {name: f, type: doctrine, inbox: false, redelivery: {window: 3h}}]", "f", Role{"failure transport of a", "its window counts in the window of a"}},
		"a failure transport of no use":       {"[{name: a, type: amqp, failureTransport: f}, {name: f, type: inMemory, inbox: false}]", "f", Role{"failure transport of a", "nothing comes back from it"}},
		"a failure transport of an uncovered": {"[{name: a, type: amqp, inbox: false, failureTransport: f}, {name: f, type: doctrine, inbox: false}]", "f", Role{"failure transport of a", "it counts in no window, since that transport is not covered either"}},
		"an outbox":                           {"[{name: a, type: amqp, outbox: o}, {name: o, type: doctrine, inbox: false}]", "o", Role{"outbox of a", "its redelivery counts in the window of a"}},
		"an outbox and a failure transport":   {"[{name: a, type: amqp, outbox: o, failureTransport: o}, {name: o, type: doctrine, inbox: false}]", "o", Role{"failure transport of a; outbox of a", "its maxAge counts in the window of a; its redelivery counts in the window of a"}},
		"the failure transport of an outbox":  {"[{name: a, type: sync, outbox: o}, {name: o, type: doctrine, inbox: false, failureTransport: f}, {name: f, type: doctrine, inbox: false}]", "f", Role{"failure transport of o", "its maxAge counts in the window of a"}},
	} {
		if got := Roles(declared(t, "transports: "+test.transports))[test.of]; got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
