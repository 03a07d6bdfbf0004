package database

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// DescribeCertificate says what is wrong with a server's certificate, in words that stay the
// same from one attempt to the next; false when the error is about something else. Trust is
// what to do about an authority that is not trusted, rename about a certificate of another host.
func DescribeCertificate(err error, trust, rename string) (message string, found bool) {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &authority):
		return "the server's certificate is signed by an authority that is not trusted: " + trust, true
	case errors.As(err, &host):
		return fmt.Sprintf("the server's certificate is for another host name (%s): %s", excerpt(host.Error()), rename), true
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		// The error's own text has the time of the attempt.
		return fmt.Sprintf("the server's certificate has expired or is not valid yet (it is from %s to %s): renew it",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339)), true
	case errors.As(err, &invalid):
		return fmt.Sprintf("the server's certificate is not valid (%s): renew it", excerpt(invalid.Error())), true
	}
	return "", false
}
