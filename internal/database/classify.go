package database

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// UnsupportedServerError says that the server's version is too old.
type UnsupportedServerError struct {
	VersionNum int // server_version_num, such as 120022
}

// Error names the version and what is needed.
func (e *UnsupportedServerError) Error() string {
	return fmt.Sprintf("the server is PostgreSQL %d, %d or later is needed: upgrade it", e.VersionNum/10000, MinimumMajor)
}

// ReadOnlyError says that the server takes no writes.
type ReadOnlyError struct {
	InRecovery bool // a standby; else default_transaction_read_only is on
}

// Error says why, and what to do.
func (e *ReadOnlyError) Error() string {
	if e.InRecovery {
		return "the server is a read-only replica (in recovery): point the URL at the primary, or add target_session_attrs=read-write to a URL with several hosts"
	}
	return "transactions are read-only here (default_transaction_read_only is on): turn it off for this role and database"
}

// errClosed says that the pools were closed, or a pool was replaced while it was asked for.
var errClosed = errors.New("the connection pool is closed")

// Classify says what an error of this package or of pgx means, for a connection attempt and
// for a query. The message names the target when the error knows it (a failed connection
// does), repeats the server's own words where they help, and never has the password in it.
// No error is the zero Failure.
func Classify(err error) Failure {
	if err == nil {
		return Failure{}
	}
	var (
		ours   *ConnectError
		driver *pgconn.ConnectError
	)
	switch {
	case errors.As(err, &ours):
		return classify(ours.cause).on(ours.config.String(), ours.config.settings["password"])
	case errors.As(err, &driver):
		return classify(err).on(targetOf(driver.Config), driver.Config.Password)
	default:
		return classify(err)
	}
}

// on names the target. It takes the password out of the rest of the message, in case that a
// server repeats it; a password that is one of the fixed words costs that word.
func (f Failure) on(target, password string) Failure {
	if password != "" {
		f.Message = strings.ReplaceAll(f.Message, password, "(redacted)")
	}
	f.Message = target + ": " + f.Message
	return f
}

func classify(err error) Failure {
	var (
		url         *URLError
		unsupported *UnsupportedServerError
		readOnly    *ReadOnlyError
		server      *pgconn.PgError
	)
	switch {
	case errors.As(err, &url):
		class := WaitingOnUser
		if url.Reason == ReasonUnsupportedDatabase {
			class = Terminal
		}
		return Failure{class, url.Reason, url.Message}
	case errors.As(err, &unsupported):
		return Failure{Terminal, ReasonUnsupportedServer, unsupported.Error()}
	case errors.As(err, &readOnly):
		return Failure{WaitingOnUser, ReasonReadOnly, readOnly.Error()}
	case errors.As(err, &server):
		return classifyState(server)
	case strings.Contains(err.Error(), "ValidateConnect failed"):
		return Failure{WaitingOnUser, ReasonReadOnly, "no host of the URL is what target_session_attrs asks for (such as a primary that takes writes): " +
			"check the hosts, or wait for the failover to end"}
	}
	if failure, found := classifyTLS(err); found {
		return failure
	}
	return classifyNetwork(err)
}

func classifyTLS(err error) (Failure, bool) {
	message, found := DescribeCertificate(err, "give the right CA certificate", "connect by a name in the certificate, or use sslmode=verify-ca")
	var header tls.RecordHeaderError
	switch {
	case found:
	case strings.Contains(err.Error(), "server refused TLS connection"):
		message = "the server does not offer TLS, which the URL's sslmode requires: turn ssl on at the server, or use sslmode=prefer if an unencrypted connection is acceptable"
	case errors.As(err, &header), strings.Contains(err.Error(), "tls: "):
		message = "the TLS handshake failed (" + excerpt(lastWords(err)) + "): check the TLS settings of URL and server"
	default:
		return Failure{}, false
	}
	return Failure{WaitingOnUser, ReasonTLSFailed, message}, true
}

func classifyNetwork(err error) Failure {
	var (
		name    *net.DNSError
		network net.Error
	)
	unreachable := func(message string) Failure { return Failure{Transient, ReasonUnreachable, message} }
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return unreachable(fmt.Sprintf("the host name %q does not resolve: check the URL, and the DNS of the cluster", excerpt(name.Name)))
	case errors.Is(err, context.Canceled):
		return Failure{Transient, ReasonUnexpectedError, "the operation was cancelled: it is tried again"}
	case timedOut(err):
		return unreachable("no answer in time: check host, port, network policies, whether the server is overloaded or hangs, and that a pooler before it reaches it")
	case errors.As(err, &network):
		return unreachable("cannot reach the server (" + excerpt(lastWords(err)) + "): check host, port, network policies and that it runs")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, pgconn.ErrConnClosed):
		return unreachable("the connection was lost: the server or something between ended it; it is tried again")
	case strings.Contains(err.Error(), "too many failed attempts acquiring connection"): // pgxpool's, which has no value for it
		return unreachable("one connection after the other was lost: the server or something between ended them; it is tried again")
	case errors.Is(err, errClosed), errors.Is(err, puddle.ErrClosedPool):
		return unreachable("the connection pool was closed or replaced meanwhile: it is tried again")
	default:
		return Failure{Transient, ReasonUnexpectedError, "unexpected error: " + excerpt(err.Error())}
	}
}

// timedOut says that an answer did not come in time, be it of the server or of the network.
func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) || errors.As(err, &network) && network.Timeout()
}

// lastWords is the text of the innermost error: the outer ones repeat addresses.
func lastWords(err error) string {
	for {
		switch wrapper := err.(type) { //nolint:errorlint // this walks the chain itself
		case interface{ Unwrap() error }:
			if wrapper.Unwrap() == nil {
				return err.Error()
			}
			err = wrapper.Unwrap()
		case interface{ Unwrap() []error }:
			err = wrapper.Unwrap()[0]
		default:
			return err.Error()
		}
	}
}

// excerpt makes foreign text fit for a condition: one printable line that is not too long.
func excerpt(text string) string {
	const most = 300
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

// targetOf is Config.String for pgx's own configuration.
func targetOf(config *pgconn.Config) string {
	hosts, ports := []string{config.Host}, []string{fmt.Sprint(config.Port)}
	for _, fallback := range config.Fallbacks {
		host, port := fallback.Host, fmt.Sprint(fallback.Port)
		// sslmode=prefer has each host twice: with TLS and without.
		if last := len(hosts) - 1; hosts[last] == host && ports[last] == port {
			continue
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	return Config{settings: map[string]string{
		"host": strings.Join(hosts, ","), "port": strings.Join(ports, ","), "dbname": config.Database, "user": config.User,
	}}.String()
}
