package certificate_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/messaginginbox/operator/hack/cluster/certificate"
)

func parse(t *testing.T, pair certificate.Pair) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(pair.Certificate, pair.Key); err != nil {
		t.Fatalf("certificate and key do not belong together: %v", err)
	}
	block, _ := pem.Decode(pair.Certificate)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func newAuthority(t *testing.T, now time.Time) (*certificate.Authority, *x509.CertPool) {
	t.Helper()
	authority, err := certificate.NewAuthority("test", now)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority.PEM()) {
		t.Fatal("the authority's PEM holds no certificate")
	}
	return authority, pool
}

func TestClientCertificateNamesUserAndGroups(t *testing.T) {
	now := time.Now()
	authority, pool := newAuthority(t, now)
	pair, err := authority.Client("system:node:one", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	got := parse(t, pair)
	if got.Subject.CommonName != "system:node:one" || !slices.Equal(got.Subject.Organization, []string{"system:nodes"}) {
		t.Errorf("subject is %s", got.Subject)
	}
	client := x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := got.Verify(client); err != nil {
		t.Errorf("not valid as a client certificate: %v", err)
	}
	server := client
	server.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if _, err := got.Verify(server); err == nil {
		t.Error("a client certificate must not serve")
	}
	late := client
	late.CurrentTime = now.Add(certificate.Lifetime + time.Minute)
	if _, err := got.Verify(late); err == nil {
		t.Error("valid after its lifetime")
	}
}

func TestServingCertificateIsValidForItsNamesOnly(t *testing.T) {
	now := time.Now()
	authority, pool := newAuthority(t, now)
	pair, err := authority.Serving("kube-apiserver", []string{"kubernetes.default.svc"}, []net.IP{net.IPv4(10, 128, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	got := parse(t, pair)
	for name, valid := range map[string]bool{"kubernetes.default.svc": true, "10.128.0.1": true, "10.128.0.2": false, "example.test": false} {
		_, err := got.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, DNSName: name})
		if (err == nil) != valid {
			t.Errorf("%s: valid is %t, want %t (%v)", name, err == nil, valid, err)
		}
	}
}

func TestAnotherAuthorityIsNotTrusted(t *testing.T) {
	now := time.Now()
	authority, _ := newAuthority(t, now)
	_, other := newAuthority(t, now)
	pair, err := authority.Serving("one", []string{"one"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse(t, pair).Verify(x509.VerifyOptions{Roots: other, CurrentTime: now, DNSName: "one"}); err == nil {
		t.Error("a certificate of one cluster must not be valid in another")
	}
}
