package database

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// URLError says why a connection URL cannot be used. Its text is made of fixed phrases and
// known option names only: no part of the URL is in it, so no part of a password can be.
type URLError struct {
	Reason  string // ReasonInvalidURL or ReasonUnsupportedDatabase
	Message string
}

// Error is the message.
func (e *URLError) Error() string { return e.Message }

func invalid(message string) *URLError { return &URLError{Reason: ReasonInvalidURL, Message: message} }

const example = "postgresql://user:password@host:5432/database" // #nosec G101 -- an example

// encodeHint is for URLs whose parts cannot be told apart with certainty.
const encodeHint = "the URL is ambiguous: in a user name, password or option write @ as %40, / as %2F, ? as %3F, # as %23 and % as %25"

// Parse reads a connection target in one of the forms that libpq and Doctrine accept:
//
//   - a libpq URL (postgresql://, postgres://), also with several hosts;
//   - libpq keywords ("host=db user=inbox dbname=shop");
//   - a Doctrine DATABASE_URL (also pgsql://, pdo-pgsql://, pdo_pgsql://), whose serverVersion,
//     charset and other options of Doctrine's own are dropped.
//
// Host and user must be there; the port is 5432 and the database is the user's name when
// they are not. Nothing is taken from the environment (PGHOST, PGPASSWORD, .pgpass, ...).
// An option that is not known is refused, as libpq does: a misspelt sslmode must not pass.
// Options that make the process read its own files for credentials (service, passfile) are
// refused. Space around the text is ignored: Secrets often end in a line feed.
//
// The error is a *URLError.
func Parse(raw string) (*Config, error) {
	settings, err := parseSettings(strings.TrimSpace(raw))
	if err != nil {
		return nil, err
	}
	settings, err = keepKnown(settings)
	if err != nil {
		return nil, err
	}
	if err := complete(settings); err != nil {
		return nil, err
	}
	return newConfig(settings)
}

func parseSettings(raw string) (map[string]string, error) {
	if raw == "" {
		return nil, invalid("the URL is empty: expected one such as " + example)
	}
	scheme, rest, isURL := strings.Cut(raw, "://")
	if !isURL || strings.ContainsAny(scheme, "= '\t\n") {
		return parseKeywords(raw)
	}
	scheme = strings.ToLower(scheme)
	switch scheme {
	case "postgresql", "postgres", "pgsql", "pdo-pgsql", "pdo_pgsql":
		return parseURL(rest)
	}
	if name, known := otherDatabases[scheme]; known {
		return nil, &URLError{Reason: ReasonUnsupportedDatabase, Message: name + " is not supported: the inbox needs PostgreSQL 13 or later, with a URL such as " + example}
	}
	return nil, &URLError{
		Reason:  ReasonUnsupportedDatabase,
		Message: "the URL's scheme is not supported: expected postgresql, postgres, pgsql or pdo-pgsql, in a URL such as " + example,
	}
}

// parseURL reads what follows the scheme. It is stricter than libpq: where a character that
// should have been percent-encoded makes the parts ambiguous, guessing could take a piece of
// the password for a host name and show it.
func parseURL(rest string) (map[string]string, error) {
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	if strings.Contains(rest, "#") || strings.Contains(tail, "@") || strings.Count(authority, "@") > 1 {
		return nil, invalid(encodeHint)
	}
	settings := map[string]string{}
	path, query, _ := strings.Cut(tail, "?")
	parts := map[string]string{"dbname": strings.TrimPrefix(path, "/")}
	if userinfo, hosts, found := strings.Cut(authority, "@"); found {
		authority = hosts
		parts["user"], parts["password"], _ = strings.Cut(userinfo, ":")
	}
	for key, part := range parts {
		value, err := url.PathUnescape(part)
		if err != nil {
			return nil, invalid(encodeHint)
		}
		if value != "" {
			settings[key] = value
		}
	}
	if err := parseHosts(authority, settings); err != nil {
		return nil, err
	}
	return settings, parseQuery(query, settings)
}

// parseHosts reads host:port,host:port with IPv6 addresses in brackets.
func parseHosts(authority string, settings map[string]string) error {
	if authority == "" {
		return nil
	}
	var hosts, ports []string
	for element := range strings.SplitSeq(authority, ",") {
		host, port, _ := strings.Cut(element, ":")
		if address, found := strings.CutPrefix(element, "["); found {
			var closed bool
			host, port, closed = strings.Cut(address, "]")
			if !closed || port != "" && port[0] != ':' {
				return invalid("the URL's host is not valid: an IPv6 address is written [2001:db8::1]:5432")
			}
			port = strings.TrimPrefix(port, ":")
		}
		host, err := url.PathUnescape(host)
		if err != nil {
			return invalid(encodeHint)
		}
		if port == "" {
			port = "5432"
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	settings["host"], settings["port"] = strings.Join(hosts, ","), strings.Join(ports, ",")
	return nil
}

func parseQuery(query string, settings map[string]string) error {
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		rawKey, rawValue, found := strings.Cut(pair, "=")
		key, keyErr := url.PathUnescape(rawKey)
		value, valueErr := url.PathUnescape(rawValue)
		if !found || keyErr != nil || valueErr != nil {
			return invalid("the URL's options are not valid: expected ?name=value&name=value; " + encodeHint)
		}
		settings[key] = value
	}
	return nil
}

// parseKeywords reads `key=value key='quoted value'` with libpq's rules: a backslash makes
// the next character literal. Unlike libpq it refuses a key that comes twice and a value
// that swallows the next key (`user= password=x`): a piece of a password could end up in a
// part of the target that is shown.
func parseKeywords(raw string) (map[string]string, error) {
	settings := map[string]string{}
	for raw != "" {
		key, rest, found := strings.Cut(raw, "=")
		key = strings.TrimSpace(key)
		if !found || key == "" || strings.ContainsAny(key, whitespace) {
			return nil, invalid("this is neither a URL such as " + example + " nor keywords such as host=db user=inbox dbname=shop; a value with spaces is written in single quotes")
		}
		if _, twice := settings[key]; twice {
			return nil, invalid("a keyword comes twice; a value with spaces is written in single quotes")
		}
		trimmed := strings.TrimLeft(rest, whitespace)
		value, after, ok := cutValue(trimmed)
		if !ok {
			return nil, invalid("a quoted value does not end: within single quotes write ' as \\' and \\ as \\\\")
		}
		if len(trimmed) < len(rest) && strings.Contains(value, "=") && trimmed[0] != '\'' {
			return nil, invalid("a keyword has no value: an empty one is written ''")
		}
		settings[key] = value
		raw = strings.TrimLeft(after, whitespace)
	}
	return settings, nil
}

const whitespace = " \t\r\n\v\f"

func cutValue(s string) (value, rest string, ok bool) {
	quoted := strings.HasPrefix(s, "'")
	s = strings.TrimPrefix(s, "'")
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			if i++; i < len(s) {
				b.WriteByte(s[i])
			}
		case quoted && s[i] == '\'':
			return b.String(), s[i+1:], true
		case !quoted && strings.IndexByte(whitespace, s[i]) >= 0:
			return b.String(), s[i:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), "", !quoted
}

func connectTimeout(value string) (time.Duration, error) {
	if value == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return 0, invalid("connect_timeout is not a number of seconds")
	}
	return time.Duration(seconds) * time.Second, nil
}
