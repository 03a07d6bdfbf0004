// Package database connects to PostgreSQL: connection URLs, bounded pools that follow a
// rotated Secret, what an error means and who must act, the facts about a server and the
// privileges of a role.
package database

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
)

// Config is a parsed connection target. It holds the password and shows it nowhere: String
// and GoString are redacted, also for a Config that is not a pointer.
type Config struct {
	settings       map[string]string // by libpq keyword
	connectTimeout time.Duration     // 0 when the URL has none
	ca             []byte
	pgx            *pgx.ConnConfig
}

// String is the redacted target: `host:port/database as user`.
func (c Config) String() string {
	hosts := c.hosts()
	ports := strings.Split(c.settings["port"], ",")
	addresses := make([]string, len(hosts))
	for i, host := range hosts {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		addresses[i] = host + ":" + ports[min(i, len(ports)-1)]
	}
	target := fmt.Sprintf("%s/%s as %s", strings.Join(addresses, ","), c.Database(), c.User())
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, target)
}

// GoString is String, so that %#v is redacted too.
func (c Config) GoString() string { return c.String() }

// Database is the name of the database.
func (c Config) Database() string { return c.settings["dbname"] }

// User is the name of the role that connects.
func (c Config) User() string { return c.settings["user"] }

func (c Config) hosts() []string { return strings.Split(c.settings["host"], ",") }

// fingerprintKey makes fingerprints useless outside this process: without it a password
// could be guessed from a fingerprint in a log.
var fingerprintKey = func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the program instead
	return key
}()

// Fingerprint identifies the target with all its credentials. Equal targets have equal
// fingerprints in one process, and different ones in another.
func (c *Config) Fingerprint() string {
	mac := hmac.New(sha256.New, fingerprintKey)
	for _, key := range slices.Sorted(maps.Keys(c.settings)) {
		_, _ = fmt.Fprintf(mac, "%q=%q ", key, c.settings[key]) // a hash never fails to write
	}
	_, _ = mac.Write(c.ca)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// WithCA returns the same target with the certificate authorities that it trusts, in PEM.
// They take the place of sslrootcert. With verify-full the server's certificate must be
// signed by one of them and name the host. With every other sslmode it must be signed by one
// of them: for require and verify-ca as libpq has it; for prefer, allow and none too, because
// who hands over an authority does not want an unencrypted connection. With sslmode=disable
// the authorities would be unused: an error, as is PEM without a certificate.
func (c *Config) WithCA(pem []byte) (*Config, error) {
	if c.settings["sslmode"] == "disable" {
		return nil, invalid("sslmode=disable leaves the CA certificate unused: remove sslmode from the URL or set it to verify-full, or remove the CA")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, invalid("the CA is not a certificate in PEM: it must begin with -----BEGIN CERTIFICATE-----")
	}
	settings := maps.Clone(c.settings)
	if settings["sslmode"] != "verify-full" && settings["sslrootcert"] != "system" {
		settings["sslmode"] = "verify-ca"
	} else {
		settings["sslmode"] = "verify-full"
	}
	delete(settings, "sslrootcert")
	trusting, err := newConfig(settings)
	if err != nil {
		return nil, err
	}
	trusting.ca = slices.Clone(pem)
	// The check of verify-ca reads RootCAs from these very values: set them, do not copy.
	if trusting.pgx.TLSConfig != nil {
		trusting.pgx.TLSConfig.RootCAs = roots
	}
	for _, fallback := range trusting.pgx.Fallbacks {
		if fallback.TLSConfig != nil {
			fallback.TLSConfig.RootCAs = roots
		}
	}
	return trusting, nil
}

// WithCAOf returns the target with the authorities of another one, as WithCA does, unless its
// own URL says which certificates count: by sslrootcert, or none by sslmode=disable.
func (c *Config) WithCAOf(other *Config) (*Config, error) {
	if other.ca == nil || c.settings["sslrootcert"] != "" || c.settings["sslmode"] == "disable" {
		return c, nil
	}
	return c.WithCA(other.ca)
}

// ambient are the settings that pgx would otherwise take from the environment and the home
// directory of the process: an operator's own environment says nothing about its users' databases.
var ambient = map[string]string{
	"password": "", "passfile": "", "sslmode": "prefer", "sslcert": "", "sslkey": "", "sslrootcert": "",
	"sslpassword": "", "sslcertmode": "allow", "sslsni": "1", "sslnegotiation": "", "channel_binding": "",
	"require_auth": "", "target_session_attrs": "any",
}

// newConfig builds the target from complete and checked settings.
func newConfig(settings map[string]string) (*Config, error) {
	c := &Config{settings: settings}
	timeout, err := connectTimeout(settings["connect_timeout"])
	if err != nil {
		return nil, err
	}
	c.connectTimeout = timeout
	all := maps.Clone(ambient)
	maps.Copy(all, settings)
	delete(all, "connect_timeout")
	var keywords strings.Builder
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		_, _ = fmt.Fprintf(&keywords, "%s='%s' ", key, quote.Replace(all[key])) // a Builder never fails to write
	}
	// pgx's own error can quote the input, and so the password: it is not passed on.
	c.pgx, err = pgx.ParseConfig(keywords.String())
	if err != nil {
		return nil, invalid("the URL's TLS or protocol options are refused: the files that sslrootcert, sslcert and sslkey name must exist and be PEM, sslcert and sslkey go together")
	}
	// Results are read as text, and pgx knows no dates but ISO's: a role may have another style.
	c.pgx.RuntimeParams = map[string]string{"client_encoding": "UTF8", "timezone": "UTC", "datestyle": "ISO"}
	for _, key := range []string{"application_name", "options"} {
		if value := settings[key]; value != "" {
			c.pgx.RuntimeParams[key] = value
		}
	}
	return c, nil
}
