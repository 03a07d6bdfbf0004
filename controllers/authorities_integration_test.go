//go:build integration

package controllers

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/test/brokers"
	"github.com/messaginginbox/operator/test/certificates"
	"github.com/messaginginbox/operator/test/postgres"
	"github.com/messaginginbox/operator/test/symfony"
)

func unseen(t *testing.T, inbox *v1alpha1.MessagingInbox, says ...string) {
	t.Helper()
	await(t, inbox, v1alpha1.ConditionTransportsObserved, metav1.ConditionFalse, v1alpha1.ReasonProbeFailed, says...)
}

func seen(t *testing.T, inbox *v1alpha1.MessagingInbox) v1alpha1.TransportStatus {
	t.Helper()
	return await(t, inbox, v1alpha1.ConditionTransportsObserved, metav1.ConditionTrue, v1alpha1.ReasonObserved).Status.Transports[0]
}

// Each change of a Secret is looked at well within the minute from one look to the next.
func TestARedisWithAPrivateAuthority(t *testing.T) {
	authority, stranger := certificates.New(t), certificates.New(t)
	broker := brokers.RunRedisTLS(t, certificates.Must(t)(authority.Issue("127.0.0.1")))
	messages := broker.Client()
	t.Cleanup(func() { _ = messages.Close() })
	seedRedis(t, messages, 60)
	namespace := managed(t)
	putSecretValues(t, namespace, "database", map[string]string{"url": postgres.Shared(t).NewDatabase(t)})
	putSecretValues(t, namespace, "redis", map[string]string{"url": broker.URL() + "/orders/workers"})
	inbox := orders(t, namespace, `transports: [{name: orders, type: redis, observe: {urlSecretRef: {name: redis}}}]`)
	apply(t, inbox)
	unseen(t, inbox, "orders (TLSFailed)", broker.Address(), "an authority that is not trusted", "observe.caSecretRef")

	change(t, inbox, func(spec *v1alpha1.MessagingInboxSpec) {
		spec.Transports[0].Observe.CASecretRef = &v1alpha1.SecretKeyReference{Name: "redis-ca", Key: "ca.crt"}
	})
	unseen(t, inbox, "orders (SecretNotFound)", "redis-ca")
	putCA := func(value string) { putSecretValues(t, namespace, "redis-ca", map[string]string{"ca.crt": value}) }
	putCA("no certificate")
	unseen(t, inbox, "orders (InvalidURL)", "Secret redis-ca, key ca.crt", "PEM")
	putCA(string(authority.PEM))
	if found := seen(t, inbox); found.Messages == nil || *found.Messages != (v1alpha1.MessageCounts{Pending: 50, InFlight: 10}) {
		t.Errorf("messages %+v", found.Messages)
	}
	putCA(string(stranger.PEM))
	unseen(t, inbox, "orders (TLSFailed)", "an authority that is not trusted")
	putCA(string(stranger.PEM) + string(authority.PEM)) // as while an authority is rotated
	seen(t, inbox)
}

// others is a resource whose failure transport is in another database than the inbox.
const others = `
  database: {urlSecretRef: {name: database}%s}
  retention: {period: 1000h, applicationPeriod: 1000h}
  transports:
  - {name: failed, type: doctrine, inbox: false, redelivery: {maxAge: 336h}, observe: {urlSecretRef: {name: failed}}}
  - {name: orders, type: amqp, failureTransport: failed}`

func withoutOptions(rawURL string) string {
	bare, _, _ := strings.Cut(rawURL, "?")
	return bare
}

func TestAFailureTransportInAnotherDatabaseWithAPrivateAuthority(t *testing.T) {
	server := postgres.Run(t, postgres.Options{TLS: true, HBA: []string{"hostnossl all all all reject"}})
	failed := server.NewDatabase(t)
	execute(t, failed, symfony.MessagesTable)
	execute(t, failed, `INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at)
		SELECT '', '[]', 'default', u, u FROM (SELECT now() AT TIME ZONE 'utc' AS u) now`)
	for name, tested := range map[string]struct {
		inbox, authority string // of spec.database
		ofTheJob         string
	}{
		"of its own":               {postgres.Shared(t).NewDatabase(t), "", "INBOX_GUARD_0_CA failed"},
		"that is also the inbox's": {withoutOptions(server.NewDatabase(t)), ", caSecretRef: {name: authority, key: inbox}", "INBOX_DATABASE_CA inbox"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := managed(t)
			putSecretValues(t, namespace, "database", map[string]string{"url": tested.inbox})
			putSecretValues(t, namespace, "failed", map[string]string{"url": withoutOptions(failed) + "?sslmode=verify-full"})
			putSecretValues(t, namespace, "authority", map[string]string{"inbox": string(server.CAPEM()), "failed": string(server.CAPEM())})
			inbox := orders(t, namespace, strings.Replace(others, "%s", tested.authority, 1))
			apply(t, inbox)
			if tested.authority == "" {
				unseen(t, inbox, "failed (TLSFailed)", "an authority that is not trusted", "observe.caSecretRef", "spec.database.caSecretRef")
				change(t, inbox, func(spec *v1alpha1.MessagingInboxSpec) {
					spec.Transports[0].Observe.CASecretRef = &v1alpha1.SecretKeyReference{Name: "authority", Key: "failed"}
				})
			}
			if found := seen(t, inbox); found.Messages == nil || *found.Messages != (v1alpha1.MessageCounts{Pending: 1}) {
				t.Errorf("messages %+v", found.Messages)
			}
			// The pruning run reads the authority from the same Secret.
			job := pruningJob(get(t, inbox), JobImage{}, time.Now(), time.Hour)
			if got := authoritiesOf(job.Spec.Template.Spec.Containers[0].Env); got != tested.ofTheJob {
				t.Errorf("the authorities of the Job are %q, want %q", got, tested.ofTheJob)
			}
		})
	}
}

// authoritiesOf are the variables with authorities, with their keys in the Secret authority.
func authoritiesOf(environment []corev1.EnvVar) string {
	var found []string
	for _, variable := range environment {
		if source := variable.ValueFrom; source != nil && source.SecretKeyRef.Name == "authority" {
			found = append(found, variable.Name+" "+source.SecretKeyRef.Key)
		}
	}
	return strings.Join(found, ", ")
}
