// Package certificates makes a private certificate authority, and certificates of servers,
// for the tests.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime of an authority, and of a certificate unless it says otherwise.
const lifetime = 30 * 24 * time.Hour

// Authority signs the certificates of servers.
type Authority struct {
	// PEM is the certificate that clients trust.
	PEM []byte

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Certificate is a server's.
type Certificate struct {
	// Authority that signed it, Certificate and Key in PEM.
	Authority, Certificate, Key []byte
}

// Names of the files that WriteTo makes.
const (
	AuthorityFile   = "ca.pem"
	CertificateFile = "server.pem"
	KeyFile         = "server.key"
)

// NewAuthority makes an authority that nobody trusts yet.
func NewAuthority() (*Authority, error) {
	template := describe("test authority", lifetime)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signed, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return &Authority{PEM: signed, certificate: template, key: key}, nil
}

// Issue signs a certificate for the hosts, names or IP addresses.
func (a *Authority) Issue(hosts ...string) (Certificate, error) { return issue(a, lifetime, hosts) }

// IssueExpired signs one that was valid until a minute ago.
func (a *Authority) IssueExpired(hosts ...string) (Certificate, error) {
	return issue(a, -time.Minute, hosts)
}

// SelfSigned is a certificate that no authority signed but its own key.
func SelfSigned(hosts ...string) (Certificate, error) { return issue(nil, lifetime, hosts) }

func issue(by *Authority, validFor time.Duration, hosts []string) (Certificate, error) {
	template := describe("test server", validFor)
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, err
	}
	if by == nil {
		by = &Authority{certificate: template, key: key}
	}
	signed, err := sign(template, by.certificate, key, by.key)
	if err != nil {
		return Certificate{}, err
	}
	if by.PEM == nil {
		by.PEM = signed
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Certificate{}, err
	}
	return Certificate{Authority: by.PEM, Certificate: signed, Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})}, nil
}

// WriteTo writes the certificate, its key and the authority's certificate to files of the
// directory, and returns their paths.
func (c Certificate) WriteTo(dir string) ([]string, error) {
	var paths []string
	for name, content := range map[string][]byte{AuthorityFile: c.Authority, CertificateFile: c.Certificate, KeyFile: c.Key} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// ClientTLS trusts the authority.
func (c Certificate) ClientTLS() *tls.Config {
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(c.Authority)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
}

func describe(name string, validFor time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(min(-time.Hour, validFor-time.Hour)),
		NotAfter:     now.Add(validFor),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func sign(certificate, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
