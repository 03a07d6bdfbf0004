package certificates

import "testing"

// New is NewAuthority for a test.
func New(t testing.TB) *Authority {
	t.Helper()
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// Must takes the certificate that was just issued: Must(t)(authority.Issue("localhost")).
func Must(t testing.TB) func(Certificate, error) Certificate {
	return func(issued Certificate, err error) Certificate {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return issued
	}
}
