package database

// Reasons of failures. They are the reasons of the resource's conditions, word for word;
// this package imports nothing of the API, so it has them once more.
const (
	ReasonInvalidURL           = "InvalidURL"
	ReasonUnsupportedDatabase  = "UnsupportedDatabase"
	ReasonUnreachable          = "Unreachable"
	ReasonTLSFailed            = "TLSFailed"
	ReasonAuthenticationFailed = "AuthenticationFailed"
	ReasonDatabaseNotFound     = "DatabaseNotFound"
	ReasonReadOnly             = "ReadOnly"
	ReasonTooManyConnections   = "TooManyConnections"
	ReasonUnsupportedServer    = "UnsupportedServer"
	ReasonStatementTimeout     = "StatementTimeout"
	ReasonLockTimeout          = "LockTimeout"
	ReasonPermissionDenied     = "PermissionDenied"
	ReasonUnexpectedError      = "UnexpectedError"
)

// Class says who must act on a failure.
type Class int

const (
	// Transient failures pass: retry with backoff.
	Transient Class = iota
	// WaitingOnUser failures need a changed Secret, a GRANT or another target: wait for
	// that, and look again slowly.
	WaitingOnUser
	// Terminal failures do not end without another server or another version of the
	// operator: report as stalled, and look again slowly.
	Terminal
)

// String is the name of the class.
func (c Class) String() string {
	switch c {
	case Transient:
		return "Transient"
	case WaitingOnUser:
		return "WaitingOnUser"
	default:
		return "Terminal"
	}
}

// Failure is what an error means.
type Failure struct {
	Class   Class
	Reason  string // one of the Reason constants
	Message string // what failed, on which redacted target, and what to do next
}
