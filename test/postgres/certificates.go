package postgres

import (
	"errors"

	"github.com/messaginginbox/operator/test/certificates"
)

// writeCertificates makes the server's certificate, once: after a restart the clients still
// trust the server.
func (s *Server) writeCertificates() error {
	if s.ca != nil {
		return nil
	}
	authority, err := certificates.NewAuthority()
	if err != nil {
		return err
	}
	certificate, err := authority.Issue("localhost", "127.0.0.1", s.Host())
	if err != nil {
		return err
	}
	paths, err := certificate.WriteTo(s.dir)
	var failures []error
	for _, path := range paths {
		failures = append(failures, s.account.own(path))
	}
	s.ca = authority.PEM
	return errors.Join(append(failures, err)...)
}
