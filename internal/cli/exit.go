package cli

import "errors"

// Exit codes of the commands.
const (
	exitDone      = 0
	exitFailure   = 1 // an error, also in the usage; and the no of a command that answers yes or no
	exitTimeLimit = 3 // stopped by its time limit, or asked to stop, with work left
	exitRefused   = 4 // refused to start: trying again would be refused again

	exitNotTried = exitTimeLimit // the drill could not be tried to its end: a lock, another drill, no privilege
	exitBroken   = exitRefused   // the drill found the contract broken: trying again would end the same way
)

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	err  error
}

// Error is the cause's text.
func (e *exitError) Error() string { return e.err.Error() }

// Unwrap is the cause.
func (e *exitError) Unwrap() error { return e.err }

// ExitCode is the code with which the process ends after a command returned err: 0 for
// none, 1 for an error without a code of its own.
func ExitCode(err error) int {
	var withCode *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &withCode):
		return withCode.code
	default:
		return exitFailure
	}
}
