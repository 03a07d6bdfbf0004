package database

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// states are the SQLSTATEs with a meaning of their own, and two-character classes of them.
// Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
var states = map[string]Failure{
	"08":    {Transient, ReasonUnreachable, "the connection failed: it is tried again"},
	"28":    {WaitingOnUser, ReasonAuthenticationFailed, "the server refuses this user: check user and password in the Secret, and pg_hba.conf"},
	"28P01": {WaitingOnUser, ReasonAuthenticationFailed, "wrong password, or no such user: correct them in the Secret"},
	"3D000": {WaitingOnUser, ReasonDatabaseNotFound, "the database does not exist: create it, or correct its name in the URL"},
	"42501": {WaitingOnUser, ReasonPermissionDenied, "a privilege is missing: GRANT it to the role"},
	"25006": {WaitingOnUser, ReasonReadOnly, "the server takes no writes: point the URL at the primary, or turn default_transaction_read_only off"},
	"53300": {Transient, ReasonTooManyConnections, "the server has no connection left: raise max_connections or the role's CONNECTION LIMIT, or use a pooler"},
	"53":    {Transient, ReasonUnexpectedError, "the server is out of resources: free disk space or memory there"},
	"55P03": {Transient, ReasonLockTimeout, "another session holds a lock for too long: end its transaction (see pg_locks); it is tried again"},
	"57014": {Transient, ReasonStatementTimeout, "the statement took too long and was cancelled: look for load or a missing index; it is tried again"},
	"57":    {Transient, ReasonUnreachable, "the server is shutting down, starting or was told to end the session: it is tried again"},
	"57P04": {WaitingOnUser, ReasonDatabaseNotFound, "the database was dropped: create it again, or correct its name in the URL"},
	"25P03": {Transient, ReasonUnreachable, "the session was idle in a transaction for too long: it is tried again"},
	"40":    {Transient, ReasonUnexpectedError, "the transaction collided with another one: it is tried again"},
	"58":    {Transient, ReasonUnexpectedError, "the server has a problem with its system: see its log"},
	"XX":    {Transient, ReasonUnexpectedError, "the server has an internal error: see its log"},
	"0A":    {Terminal, ReasonUnsupportedServer, "the server does not support what is needed"},
	"22":    {Terminal, ReasonUnexpectedError, "the server refuses a value"},
	"23":    {Terminal, ReasonUnexpectedError, "a constraint of the table refuses a row"},
	"42":    {Terminal, ReasonUnexpectedError, "the server refuses a statement: an object is missing or has another shape"},
}

// poolerStates are what PgBouncer says under the one code 08P01: its own refusals, and those
// of the server that it passes on without their code. The first that fits counts.
var poolerStates = []struct {
	text string
	Failure
}{
	{"startup parameter", Failure{WaitingOnUser, ReasonInvalidURL, "the pooler refuses an option: remove `options` from the URL, or let the pooler ignore it"}},
	{"no such user", states["28P01"]},
	{"auth failed", states["28P01"]},
	{"authentication failed", states["28P01"]},
	{"role \"", states["28P01"]},
	{"pg_hba.conf", states["28"]},
	{"no such database", states["3D000"]},
	{"does not exist", states["3D000"]},
	{"SSL required", Failure{WaitingOnUser, ReasonTLSFailed, needsTLS}},
	{"no more connections", states["53300"]},
	{"too many", states["53300"]},
	{"connection slots", states["53300"]},
	{"query_wait_timeout", states["53300"]},
}

const needsTLS = "the server accepts only encrypted connections: remove sslmode=disable from the URL, or set sslmode=require or stronger"

func classifyState(e *pgconn.PgError) Failure {
	failure := meaning(e)
	failure.Message = fmt.Sprintf("%s; the server says %q (SQLSTATE %s)", failure.Message, excerpt(e.Message), excerpt(e.Code))
	return failure
}

func meaning(e *pgconn.PgError) Failure {
	if e.Code == "08P01" {
		for _, state := range poolerStates {
			if strings.Contains(e.Message, state.text) {
				return state.Failure
			}
		}
	}
	// No rule of pg_hba.conf fits: the server says whether encryption would have made a difference.
	if e.Code == "28000" && (strings.Contains(e.Message, "no encryption") || strings.Contains(e.Message, "SSL off")) {
		return Failure{WaitingOnUser, ReasonTLSFailed, needsTLS + "; or pg_hba.conf has no rule for this client at all"}
	}
	if state, found := states[e.Code]; found {
		return state
	}
	if len(e.Code) == 5 {
		if state, found := states[e.Code[:2]]; found {
			return state
		}
	}
	return Failure{Transient, ReasonUnexpectedError, "unexpected error of the server: see its log"}
}
