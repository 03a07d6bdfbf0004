//go:build integration

package probe_test

import (
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/certificates"
)

func TestRedisThroughTLS(t *testing.T) {
	authority, stranger := certificates.New(t), certificates.New(t)
	here := brokers.RunRedisTLS(t, certificates.Must(t)(authority.Issue("127.0.0.1")))
	elsewhere := brokers.RunRedisTLS(t, certificates.Must(t)(authority.Issue("cache.example")))
	expired := brokers.RunRedisTLS(t, certificates.Must(t)(authority.IssueExpired("127.0.0.1")))
	demanding := brokers.RunRedisTLS(t, certificates.Must(t)(authority.Issue("127.0.0.1")), "--tls-auth-clients", "yes")
	ownSigned := brokers.RunRedisTLS(t, certificates.Must(t)(certificates.SelfSigned("127.0.0.1")))
	for _, server := range []*brokers.Redis{here, elsewhere, expired, demanding, ownSigned} {
		seedOrders(t, server.Client())
	}
	doOnce(t, here, "ACL SETUSER prober on >hunter2prober ~* +xinfo|groups +xlen +xpending +xrange +zcount +zcard")
	doOnce(t, here, "CONFIG SET requirepass hunter2default")
	const path = "/orders/workers"
	plain := "redis://:hunter2default@" + here.Address() + path

	for name, tested := range map[string]struct {
		dsn       string
		authority []byte
	}{
		"with the authority and a password":         {"rediss://:hunter2default@" + here.Address() + path, authority.PEM},
		"with the authority and an ACL user":        {"rediss://prober:hunter2prober@" + here.Address() + path, authority.PEM},
		"by the option auth, which beats the login": {"rediss://prober:hunter2x@" + here.Address() + path + "?auth=hunter2default", authority.PEM},
		"by valkeys":                                  {"valkeys://:hunter2default@" + here.Address() + path, authority.PEM},
		"by an option of ssl alone":                   {plain + "?ssl[verify_peer]=1", authority.PEM},
		"by the option tls of Symfony 5":              {plain + "?tls=1", authority.PEM},
		"with several authorities, of which one fits": {"rediss://:hunter2default@" + here.Address() + path, append(stranger.PEM, authority.PEM...)},
		"without an authority, unverified":            {"rediss://:hunter2default@" + here.Address() + path + "?ssl[verify_peer]=0", nil},
		"by another name that the DSN expects":        {elsewhere.URL() + path + "?ssl[peer_name]=cache.example", authority.PEM},
		"by another name, which is not verified":      {elsewhere.URL() + path + "?ssl[verify_peer_name]=false", authority.PEM},
		"self-signed, which the DSN allows":           {ownSigned.URL() + path + "?ssl[allow_self_signed]=1", nil},
		"expired, unverified":                         {expired.URL() + path + "?ssl[verify_peer]=0&ssl[verify_peer_name]=0", nil},
	} {
		t.Run(name, func(t *testing.T) {
			mustSee(t, look(t, trusting(t, target(t, redelivery.Redis, tested.dsn, probe.Place{}), tested.authority)), seeded(1))
		})
	}

	for name, tested := range map[string]struct {
		dsn       string
		authority []byte
		reason    string
		says      []string
	}{
		"without the authority":                    {here.URL() + path, nil, probe.ReasonTLSFailed, []string{here.Address(), untrusted, nextStep}},
		"with another authority":                   {here.URL() + path, stranger.PEM, probe.ReasonTLSFailed, []string{untrusted, nextStep}},
		"with another authority, which counts":     {here.URL() + path + "?ssl[verify_peer]=0", stranger.PEM, probe.ReasonTLSFailed, []string{untrusted}},
		"by a name that is not in the certificate": {elsewhere.URL() + path, authority.PEM, probe.ReasonTLSFailed, []string{elsewhere.Address(), "another host name", "127.0.0.1", "ssl[peer_name]"}},
		"by such a name, otherwise unverified":     {elsewhere.URL() + path + "?ssl[verify_peer]=0", nil, probe.ReasonTLSFailed, []string{"another host name"}},
		"self-signed":                              {ownSigned.URL() + path, nil, probe.ReasonTLSFailed, []string{untrusted, nextStep}},
		"signed, where self-signed is allowed":     {here.URL() + path + "?ssl[allow_self_signed]=1", nil, probe.ReasonTLSFailed, []string{untrusted, nextStep}},
		"expired":                                  {expired.URL() + path, authority.PEM, probe.ReasonTLSFailed, []string{expired.Address(), "has expired", "renew it"}},
		"with a certificate asked of the client":   {demanding.URL() + path, authority.PEM, probe.ReasonTLSFailed, []string{demanding.Address(), "certificate of its clients"}},
		"with a wrong password":                    {"rediss://prober:hunter2x@" + here.Address() + path, authority.PEM, probe.ReasonAuthenticationFailed, []string{here.Address()}},
		"without a password":                       {here.URL() + path, authority.PEM, probe.ReasonAuthenticationFailed, nil},
		"without TLS":                              {"redis://" + here.Address() + path, authority.PEM, probe.ReasonUnreachable, []string{here.Address(), "TLS"}},
	} {
		t.Run(name, func(t *testing.T) {
			mustFail(t, trusting(t, target(t, redelivery.Redis, tested.dsn, probe.Place{}), tested.authority), tested.reason, tested.says...)
		})
	}
	t.Run("expired, in words without the time of the look", func(t *testing.T) {
		there := trusting(t, target(t, redelivery.Redis, expired.URL()+path, probe.Place{}), authority.PEM)
		_, first := probe.Probe(t.Context(), there)
		time.Sleep(time.Second + time.Millisecond) // a status that follows the words would else be written at each look
		if _, second := probe.Probe(t.Context(), there); first == nil || second == nil || first.Error() != second.Error() {
			t.Errorf("two failures: %v\n%v", first, second)
		}
	})
}

// A redis that answers slowly: the handshake of TLS takes ten seconds, or the answer after it.
func TestASlowRedisThroughTLSIsLeftAfterTheTimeLimit(t *testing.T) {
	authority := certificates.New(t)
	silentAddress, _ := silent(t)
	slow := brokers.RunRedisTLS(t, certificates.Must(t)(authority.Issue("127.0.0.1")))
	seedOrders(t, slow.Client())
	for name, tested := range map[string]struct {
		address string
		says    string
	}{
		"in the handshake": {silentAddress, "2s to connect"},
		"in its answer":    {slow.Address(), "within 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			if tested.address == slow.Address() {
				doOnce(t, slow, "CLIENT PAUSE 10000 ALL")
			}
			started := time.Now()
			mustFail(t, trusting(t, target(t, redelivery.Redis, "rediss://"+tested.address+"/orders/workers", probe.Place{}), authority.PEM), probe.ReasonNoAnswer, tested.address, tested.says)
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("left after %s", took)
			}
		})
	}
}
