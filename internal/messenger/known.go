package messenger

import (
	"net/url"
	"strings"

	"github.com/messaginginbox/operator/internal/redelivery"
)

// NewTransport is a transport of which only its DSN is known, wholly, such as one from
// a Secret. It accepts any text.
func NewTransport(name, dsn string) *Transport {
	transport := &Transport{Name: name, DSN: Field{Key: "dsn", Value: literal(dsn), Kind: Text}}
	transport.describe()
	return transport
}

// Login is the user and the password of the DSN's first address that has them, with
// their escapes undone; redis://password@host has only a password. Never show them.
func (d *DSN) Login() (user, password string) { return d.user, d.password }

// setLogin keeps the first login of a DSN.
func (d *DSN) setLogin(userinfo string) {
	if d.user != "" || d.password != "" {
		return
	}
	user, password, hasPassword := strings.Cut(userinfo, ":")
	if !hasPassword && d.Type == redelivery.Redis {
		user, password = "", user
	}
	d.user, d.password = unescapeLogin(user), unescapeLogin(password)
}

// cutUnescapedLogin takes off a login whose password has a / ? or # that is not
// escaped: PHP refuses the DSN, but the password must not pass for a path.
func (d *DSN) cutUnescapedLogin(dsn Expression, node string) string {
	address, hasAuthority := strings.CutPrefix(node, "//")
	authority := authorityOf(address)
	at := strings.LastIndexByte(address, '@')
	_, port, hasPort := strings.Cut(authority, ":")
	if !hasAuthority || at < len(authority) || !hasPort || strings.Contains(authority, "@") || strings.HasPrefix(authority, "[") || isPort(port) {
		return node
	}
	d.Credentials = true
	_, password, _ := strings.Cut(address[:at], ":")
	d.addSecret(dsn.of(password))
	d.setLogin(address[:at])
	return "//" + address[at+1:]
}

func isPort(text string) bool {
	return strings.ContainsRune(text, opening) || strings.Trim(text, "0123456789") == ""
}

// unescapeLogin leaves a plus sign as it is: only a query writes a space so.
func unescapeLogin(text string) string {
	unescaped, err := url.PathUnescape(text)
	if err != nil {
		return text
	}
	return unescaped
}
