package assessment

import (
	"slices"
	"strings"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// Role is what a transport is that the inbox does not cover.
type Role struct {
	// Is it in a few words, such as failure transport of orders; "" for a covered transport.
	Is string
	// Meaning says what of it counts, or what that means; a sentence without its full stop.
	Meaning string
}

// Roles of the transports by name. Those that the inbox covers are left out.
func Roles(spec *v1alpha1.MessagingInboxSpec) map[string]Role {
	covered := CoveredTransports(spec)
	roles := map[string]Role{}
	for i := range spec.Transports {
		if name := string(spec.Transports[i].Name); !slices.Contains(covered, name) {
			roles[name] = roleOf(spec, &spec.Transports[i], covered)
		}
	}
	return roles
}

func roleOf(spec *v1alpha1.MessagingInboxSpec, transport *v1alpha1.Transport, covered []string) Role {
	if transport.BatchHandlers {
		return Role{"batch handlers", "Symfony does not record messages of batch handlers"}
	}
	var failing, relayed, failureCounts, outboxCounts []string
	for i := range spec.Transports {
		user := &spec.Transports[i]
		name, isCovered := string(user.Name), slices.Contains(covered, string(user.Name))
		if user.FailureTransport == transport.Name && user.Name != transport.Name {
			failing = append(failing, name)
		}
		if user.Outbox == transport.Name && user.Name != transport.Name {
			relayed = append(relayed, name)
			if isCovered {
				outboxCounts = append(outboxCounts, name)
			}
		}
		if isCovered && failureTransportOf(spec, user) == transport.Name {
			failureCounts = append(failureCounts, name)
		}
	}
	var is, meaning []string
	add := func(role, part string, users, counts []string) {
		switch {
		case len(users) == 0:
			return
		case !comesBack(transport):
			meaning = append(meaning, "nothing comes back from it")
		case len(counts) == 0:
			meaning = append(meaning, "it counts in no window, since that transport is not covered either")
		default:
			meaning = append(meaning, "its "+part+" counts in the window of "+named(counts))
		}
		is = append(is, role+" of "+named(users))
	}
	add("failure transport", declaredOr(transport, "maxAge"), failing, failureCounts)
	add("outbox", declaredOr(transport, "redelivery"), relayed, outboxCounts)
	switch {
	case len(is) > 0:
		return Role{strings.Join(is, "; "), strings.Join(meaning, "; ")}
	case !comesBack(transport):
		return Role{"no broker", "nothing comes back from it"}
	default:
		return Role{"no inbox", "a redelivery runs its handlers again"}
	}
}

// declaredOr is the part of a transport that enters the windows of others.
func declaredOr(transport *v1alpha1.Transport, part string) string {
	if transport.Redelivery != nil && transport.Redelivery.Window != nil {
		return "window"
	}
	return part
}
