package probe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"

	"github.com/messaginginbox/operator/internal/messenger"
)

// encryption is what the DSN asks of a server's certificate, by the options that PHP has
// for TLS.
type encryption struct {
	authorities  *x509.CertPool // nil: the system's
	name         string         // that the certificate must have; "" is the host's
	anyAuthority bool
	anyName      bool
	selfSigned   bool // is accepted too
}

// encryption is nil when the DSN asks for none: Symfony's redis transport speaks TLS by its
// scheme, and also when it has options ssl[...]. Files that these name are the application's
// own. Who gives the operator authorities wants them to count.
func (t Target) encryption() *encryption {
	options := t.subOptions("ssl")
	secure := []string{"rediss", "valkeys"}
	if !slices.Contains(secure, t.dsn.Address.Scheme) && !t.dsn.Setting("tls").IsTrue() && len(options) == 0 {
		return nil
	}
	isOff := func(name string) bool {
		value, found := options[name]
		return found && !messenger.IsTrue(value)
	}
	trusting := t.authorities == nil
	return &encryption{
		authorities:  t.authorities,
		name:         options["peer_name"],
		anyAuthority: trusting && isOff("verify_peer"),
		anyName:      isOff("verify_peer_name"),
		selfSigned:   trusting && messenger.IsTrue(options["allow_self_signed"]),
	}
}

// dial opens an encrypted connection.
func (e *encryption) dial(ctx context.Context, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config, asked := e.config(host), false
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked = true
		return &tls.Certificate{}, nil // none
	}
	connection, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	switch {
	case !asked:
		return connection, err
	case err != nil && !timedOut(err):
		return nil, errClientCertificate // that of the server was good, or none would be asked of us
	case err != nil:
		return nil, err
	}
	return &askedConn{Conn: connection}, nil
}

// errClientCertificate says that the server ended a connection after it asked for a
// certificate of the client.
var errClientCertificate = errors.New("no certificate of the client")

// askedConn is a connection whose server asked for a certificate of the client, and may do
// without. If not, TLS 1.3 tells so only after the handshake, and what is sent meanwhile can
// turn its words into a lost connection.
type askedConn struct {
	net.Conn
	answered bool
}

// Read is net.Conn's.
func (c *askedConn) Read(p []byte) (int, error) {
	read, err := c.Conn.Read(p)
	c.answered = c.answered || read > 0
	return read, c.explain(err)
}

// Write is net.Conn's.
func (c *askedConn) Write(p []byte) (int, error) {
	written, err := c.Conn.Write(p)
	return written, c.explain(err)
}

func (c *askedConn) explain(err error) error {
	if err == nil || c.answered || timedOut(err) {
		return err
	}
	return errClientCertificate
}

// config is for a connection to the host.
func (e *encryption) config(host string) *tls.Config {
	name := cmp.Or(e.name, host)
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: e.authorities, ServerName: name}
	if e.anyAuthority || e.anyName || e.selfSigned {
		config.InsecureSkipVerify = true // verify does what the DSN leaves of it
		config.VerifyConnection = func(state tls.ConnectionState) error { return e.verify(name, state.PeerCertificates) }
	}
	return config
}

// verify judges a server's certificates, of which the first is its own.
func (e *encryption) verify(name string, chain []*x509.Certificate) error {
	own := chain[0]
	if e.anyAuthority {
		if e.anyName {
			return nil
		}
		return own.VerifyHostname(name)
	}
	options := x509.VerifyOptions{Roots: e.authorities, Intermediates: x509.NewCertPool()}
	if !e.anyName {
		options.DNSName = name
	}
	for _, above := range chain[1:] {
		options.Intermediates.AddCert(above)
	}
	_, err := own.Verify(options)
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) && e.selfSigned && signsItself(own) {
		options.Roots = x509.NewCertPool()
		options.Roots.AddCert(own)
		_, err = own.Verify(options)
	}
	return err
}

func signsItself(certificate *x509.Certificate) bool {
	return bytes.Equal(certificate.RawIssuer, certificate.RawSubject) &&
		certificate.CheckSignature(certificate.SignatureAlgorithm, certificate.RawTBSCertificate, certificate.Signature) == nil
}
