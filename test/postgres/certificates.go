package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// writeCertificates writes ca.pem, server.pem and server.key, once: after a restart the
// clients still trust the server.
func (s *Server) writeCertificates() error {
	if s.ca != nil {
		return nil
	}
	authority := template(1, "test authority")
	authority.IsCA = true
	authority.BasicConstraintsValid = true
	authority.KeyUsage = x509.KeyUsageCertSign
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca, err := sign(authority, authority, authorityKey, authorityKey)
	if err != nil {
		return err
	}
	server := template(2, "test server")
	server.DNSNames = []string{"localhost"}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	if ip := net.ParseIP(s.Host()); ip != nil {
		server.IPAddresses = append(server.IPAddresses, ip)
	} else {
		server.DNSNames = append(server.DNSNames, s.Host())
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	certificate, err := sign(server, authority, serverKey, authorityKey)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		return err
	}
	s.ca = ca
	files := map[string][]byte{
		"ca.pem":     ca,
		"server.pem": certificate,
		"server.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
	for name, content := range files {
		if err := s.writeFile(s.path(name), content); err != nil {
			return err
		}
	}
	return nil
}

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(30 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

func sign(certificate, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
