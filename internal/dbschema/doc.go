// Package dbschema compares the inbox table in PostgreSQL with the contract that
// a consumer inbox relies on, and makes what is missing.
//
// The catalogue is the only state: Inspect reads it, Compare decides from plain
// values what is wrong and what may be done about it, Apply does that and nothing
// else. Steps only add: a table of another package, a wrong column or a missing
// unique key over duplicates is named and left alone.
//
// PostgreSQL 13 or newer. Apply needs a session of its own, so no transaction
// pooler between it and the server.
package dbschema
