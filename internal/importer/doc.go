// Package importer turns a messenger.Configuration into a MessagingInbox manifest, and
// into the plain list of facts that a manifest is compared with. What the
// configuration does not say becomes a Note, never a guess: where a redelivery window
// depends on it, the window is Unbounded until a person declares it, so that no proof
// is pruned on an assumption.
package importer

import (
	"fmt"
	"time"

	"github.com/messaginginbox/operator/internal/messenger"
)

// Unbounded is the longest duration that a manifest can hold (292 years). The operator
// refuses to prune while it is required.
const Unbounded = "2562047h"

// UnboundedDuration is Unbounded as a number.
const UnboundedDuration = 2_562_047 * time.Hour

// Options decide what is not in the configuration.
type Options struct {
	// Name and Namespace of the resource. Namespace may be empty.
	Name      string
	Namespace string
	// Secret is the name of the Secret with the database's URL.
	Secret string
	// Connection is the Doctrine connection whose inbox is imported; "" is the only one.
	Connection string
}

// Kind is the kind of a field's value in the manifest.
type Kind int

// The kinds of values.
const (
	Text Kind = iota
	Bool
	Integer
)

// Field is one field of a transport in the manifest.
type Field struct {
	// Path below the transport, such as redelivery.retryStrategy.delay.
	Path  string
	Value string
	Kind  Kind
	// At and Key say where the value came from.
	At  messenger.Position
	Key string
}

// Origin is the comment that says where the value came from.
func (f Field) Origin() string { return originPrefix + origin(f.At, f.Key) }

const (
	originPrefix = "from "
	notePrefix   = "TODO(import) "
)

func origin(at messenger.Position, key string) string {
	at.Column = 0
	return messenger.Printable(fmt.Sprintf("%s %s", at, key))
}

// Note is something that the configuration does not say and a person has to declare.
type Note struct {
	// Transport that it is about; "" for the whole resource.
	Transport string
	// Field to declare, below the transport. The note is settled once a person has set it.
	Field   string
	Message string
	At      messenger.Position
}

// Comment is the note in the manifest.
func (n Note) Comment() string { return notePrefix + n.Field + ": " + messenger.Printable(n.Message) }

func (n Note) String() string {
	subject := n.Field
	if n.Transport != "" {
		subject = n.Transport + ": " + subject
	}
	return messenger.Printable(fmt.Sprintf("%s: %s: %s", n.At, subject, n.Message))
}

// Declaration is one transport.
type Declaration struct {
	Name   string
	At     messenger.Position
	Fields []Field
	Notes  []Note
}

// Field returns a field by its path.
func (d *Declaration) Field(path string) (Field, bool) {
	for _, field := range d.Fields {
		if field.Path == path {
			return field, true
		}
	}
	return Field{}, false
}

// HasNote says whether a field is left for a person to declare.
func (d *Declaration) HasNote(path string) bool {
	for _, note := range d.Notes {
		if note.Field == path {
			return true
		}
	}
	return false
}
