package database

import (
	"context"
	"time"
)

// MinimumMajor is the oldest major version of PostgreSQL that is supported.
const MinimumMajor = 13

// Facts are what a connection says of its server.
type Facts struct {
	VersionNum       int    // server_version_num, such as 150018 for 15.18
	InRecovery       bool   // a standby
	ReadOnly         bool   // a new transaction cannot write: a standby, or default_transaction_read_only
	SystemIdentifier string // of the cluster, shared with its replicas and clones; empty when the role may not read it
	Database         string
	User             string
	Now              time.Time // the server's clock, in UTC
}

// ReadFacts asks the server for the facts.
func ReadFacts(ctx context.Context, q Querier) (Facts, error) {
	var f Facts
	var identifiable bool
	err := q.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
		current_setting('transaction_read_only')::bool, current_database()::text, current_user::text,
		clock_timestamp(), has_function_privilege('pg_control_system()', 'EXECUTE')`).
		Scan(&f.VersionNum, &f.InRecovery, &f.ReadOnly, &f.Database, &f.User, &f.Now, &identifiable)
	if err != nil {
		return Facts{}, err
	}
	f.Now = f.Now.UTC()
	if identifiable {
		err = q.QueryRow(ctx, `SELECT system_identifier::text FROM pg_control_system()`).Scan(&f.SystemIdentifier)
	}
	return f, err
}

// Check says whether the server can be written to by this version of the operator. The
// error is an *UnsupportedServerError or a *ReadOnlyError.
func (f Facts) Check() error {
	if f.VersionNum < MinimumMajor*10000 {
		return &UnsupportedServerError{VersionNum: f.VersionNum}
	}
	if f.InRecovery || f.ReadOnly {
		return &ReadOnlyError{InRecovery: f.InRecovery}
	}
	return nil
}
