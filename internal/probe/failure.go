package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"unicode"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/redelivery"
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
		ours       *Failure
		node       *nodeError
		operation  *net.OpError
		resolution *net.DNSError
	)
	if errors.As(err, &ours) {
		return ours
	}
	where := target.Broker()
	if errors.As(err, &node) {
		if err = node.cause; node.names() {
			where += ", " + node.node
		}
	}
	if problem := encryptionProblem(err); problem != "" {
		return failed(ReasonTLSFailed, "%s: %s", where, problem)
	}
	switch {
	case errors.As(err, &resolution) && !resolution.IsTimeout:
		return failed(ReasonUnreachable, "%s: the host's name is not known", where)
	case errors.Is(err, errNotConnected):
		return failed(ReasonNoAnswer, "%s took longer than %s to connect", where, dialTimeout)
	case timedOut(err) && target.Type == redelivery.Redis && target.masterName() != "":
		return failed(ReasonNoAnswer, "%s, or the master %s behind it, did not answer within %s", where, target.masterName(), DefaultTimeLimit)
	case timedOut(err):
		return failed(ReasonNoAnswer, "%s did not answer within %s", where, DefaultTimeLimit)
	case errors.As(err, &operation) && operation.Op == "dial":
		return failed(ReasonUnreachable, "%s: the connection was refused: check host, port and network policy", where)
	case errors.As(err, &operation), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failed(ReasonUnreachable, "%s: the connection was lost; a port that speaks only TLS does that too to who speaks none", where)
	default:
		return failed(ReasonUnexpectedError, "%s: %s", where, excerpt(err.Error(), target.secrets()))
	}
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// encryptionProblem says why an encrypted connection could not be made; "" when the error
// is about something else.
func encryptionProblem(err error) string {
	problem, found := database.DescribeCertificate(err, "give the authority in a Secret, by observe.caSecretRef",
		"connect by a name in the certificate (a redis DSN can also name it, by ssl[peer_name])")
	var plain tls.RecordHeaderError
	switch text := err.Error(); {
	case found:
		return problem
	case errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		return "no TLS is spoken at this port: correct the port or the URL's scheme"
	case strings.Contains(text, `malformed HTTP response "\x15`): // an alert of TLS
		return "TLS is spoken at this port: the URL's scheme must be https"
	case errors.Is(err, errClientCertificate), strings.Contains(text, "tls: certificate required"):
		return "the server asks for a certificate of its clients, and the operator has none to show: let it connect by user and password alone (redis: tls-auth-clients optional)"
	case strings.Contains(text, "tls: "):
		return "the TLS handshake failed (" + excerpt(text[strings.LastIndex(text, "tls: "):], nil) + "): check which TLS versions and ciphers the server takes, and whether it asks for a certificate of its clients"
	}
	return ""
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
