package messenger

import "cmp"

// Doctrine is what the sources say of Doctrine's connections; empty when no source
// holds the section doctrine.
type Doctrine struct {
	// Declared says that a source holds the section.
	Declared          bool
	defaultConnection string
	defaultManager    string
	managers          map[string]string
}

func (d *Doctrine) merge(block *Value) {
	d.Declared = true
	if d.managers == nil {
		d.managers = map[string]string{}
	}
	d.defaultConnection = cmp.Or(textOf(block.Get("dbal").Get("default_connection")), d.defaultConnection)
	orm := block.Get("orm")
	d.defaultManager = cmp.Or(textOf(orm.Get("default_entity_manager")), d.defaultManager)
	if managers := orm.Get("entity_managers"); managers != nil {
		for _, entry := range managers.Entries {
			d.managers[entry.Key] = cmp.Or(textOf(entry.Value.Get("connection")), d.managers[entry.Key])
		}
	}
}

func textOf(value *Value) string {
	if value == nil || value.Kind != Text {
		return ""
	}
	text, known := value.Text.Known()
	if !known {
		return ""
	}
	return text
}

// DefaultConnection is the name of the connection that counts when none is named.
func (d *Doctrine) DefaultConnection() string { return cmp.Or(d.defaultConnection, "default") }

// ConnectionOf is the connection of an entity manager, "" being the default one. It is
// false when the sources do not say.
func (d *Doctrine) ConnectionOf(manager string) (string, bool) {
	manager = cmp.Or(manager, d.defaultManager, "default")
	connection, declared := d.managers[manager]
	switch {
	case declared:
		return cmp.Or(connection, d.DefaultConnection()), true
	case manager == cmp.Or(d.defaultManager, "default"):
		return d.DefaultConnection(), true
	}
	return "", false
}
