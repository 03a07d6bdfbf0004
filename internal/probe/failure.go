package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"unicode"

	"github.com/messaginginbox/operator/internal/database"
)

// Reasons of a Failure. A doctrine transport can also fail with one of package database.
const (
	ReasonUnreachable          = database.ReasonUnreachable
	ReasonAuthenticationFailed = database.ReasonAuthenticationFailed
	ReasonPermissionDenied     = database.ReasonPermissionDenied
	ReasonTLSFailed            = database.ReasonTLSFailed
	ReasonInvalidURL           = database.ReasonInvalidURL
	ReasonUnexpectedError      = database.ReasonUnexpectedError
	ReasonQueueNotFound        = "QueueNotFound" // no such table, stream, group, queue or virtual host
	ReasonNoAnswer             = "NoAnswer"      // the time limit passed
	ReasonNotObservable        = "NotObservable" // the transport's type has nothing to look at
)

// Failure is why a transport could not be looked at. No credential is in its text.
type Failure struct {
	// Reason is one of the constants.
	Reason string
	// Message says what failed, where, and what to do.
	Message string
}

// Error is the message.
func (f *Failure) Error() string { return f.Message }

func failed(reason, format string, args ...any) *Failure {
	return &Failure{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// asFailure says what an error of the network or of a client means, in words that stay
// the same from one look to the next.
func asFailure(target Target, err error) *Failure {
	var (
		ours        *Failure
		timeout     net.Error
		operation   *net.OpError
		resolution  *net.DNSError
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return failed(ReasonTLSFailed, "%s: encryption could not be agreed on, or the certificate is not trusted", target.Broker())
	case errors.As(err, &resolution) && !resolution.IsTimeout:
		return failed(ReasonUnreachable, "%s: the host's name is not known", target.Broker())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return failed(ReasonNoAnswer, "%s did not answer within %s", target.Broker(), DefaultTimeLimit)
	case errors.As(err, &operation):
		return failed(ReasonUnreachable, "%s: %s", target.Broker(), cause(operation))
	default:
		return failed(ReasonUnexpectedError, "%s: %s", target.Broker(), excerpt(err.Error(), target.secrets()))
	}
}

// cause leaves out the local port, which differs from one attempt to the next.
func cause(operation *net.OpError) string {
	if operation.Op == "dial" {
		return "the connection was refused: check host, port and network policy"
	}
	return "the connection was lost"
}

// excerpt makes foreign text fit for a condition: one printable line, not too long,
// without any of the secrets.
func excerpt(text string, secrets []string) string {
	const most = 300
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
