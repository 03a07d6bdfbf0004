//go:build integration

package controllers

import (
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/test/pgbouncer"
	"github.com/messaginginbox/operator/test/postgres"
)

const withHandlers = `database: {urlSecretRef: {name: database}, handlerURLSecretRefs: [{name: handler}, {name: handler, key: pooled}]}`

func TestHandlersThatCommitElsewhereAreNamedUntilTheirSecretIsCorrected(t *testing.T) {
	server := postgres.Shared(t)
	namespace, own, other := managed(t), server.NewDatabase(t), server.NewDatabase(t)
	pooler := pgbouncer.Run(t, server, pgbouncer.Options{Mode: pgbouncer.Transaction})
	putSecret(t, namespace, "url", own)
	inbox := orders(t, namespace, withHandlers)
	apply(t, inbox)

	broken := await(t, inbox, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound)
	mustSay(t, broken, v1alpha1.ConditionTransactionShared, "handlerURLSecretRefs[0]", "Secret handler does not exist")
	putSecretValues(t, namespace, "handler", map[string]string{"url": own})
	broken = await(t, inbox, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSecretKeyMissing)
	mustSay(t, broken, v1alpha1.ConditionTransactionShared, "handlerURLSecretRefs[1]", `"pooled"`)
	secret := func(direct, pooled string) {
		putSecretValues(t, namespace, "handler", map[string]string{"url": direct, "pooled": pooled})
	}
	secret(edited(own, func(u *url.URL) { u.Host = "localhost:" + u.Port() }), pooler.URL(edit(other).Path[1:]))
	broken = await(t, inbox, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonOtherDatabase)
	mustSay(t, broken, v1alpha1.ConditionTransactionShared, "handlerURLSecretRefs[1] (Secret handler, key pooled)", edit(other).Path[1:])

	secret(own, pooler.URL(edit(own).Path[1:]))
	mustSay(t, awaitReady(t, inbox), v1alpha1.ConditionTransactionShared, "All 2 connections")

	// A promise that cannot be looked at is not broken: nobody is woken for it.
	secret(own, edited(own, func(u *url.URL) { u.Host = "127.0.0.1:1" }))
	unreachable := await(t, inbox, v1alpha1.ConditionTransactionShared, metav1.ConditionUnknown, v1alpha1.ReasonUnreachable)
	mustSay(t, unreachable, v1alpha1.ConditionTransactionShared, "127.0.0.1:1")
	awaitReady(t, inbox)
}

func TestABusinessKeyWithoutAnIndexIsNamedWithTheStatementThatAddsIt(t *testing.T) {
	namespace, target := managed(t), postgres.Shared(t).NewDatabase(t)
	execute(t, target, "CREATE TABLE payments (attempt text NOT NULL)")
	putSecret(t, namespace, "url", target)
	inbox := orders(t, namespace, "businessKeys: [{table: payments, columns: [attempt]}]")
	apply(t, inbox)

	broken := await(t, inbox, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonBusinessKeyMissing)
	mustSay(t, broken, v1alpha1.ConditionBusinessKeysEnforced, `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."payments" ("attempt")`)
	execute(t, target, `CREATE UNIQUE INDEX CONCURRENTLY ON "public"."payments" ("attempt")`)
	awaitReady(t, inbox)
}

func TestFullCoverageCountsOnDemandOnly(t *testing.T) {
	namespace := managed(t)
	putSecret(t, namespace, "url", postgres.Shared(t).NewDatabase(t))
	inbox := orders(t, namespace, "transports: [{name: orders, type: amqp}, {name: reports, type: amqp, batchHandlers: true}]")
	apply(t, inbox)
	mustSay(t, awaitReady(t, inbox), v1alpha1.ConditionReady, "Not protected by the inbox: reports")

	change(t, inbox, func(spec *v1alpha1.MessagingInboxSpec) { spec.RequireFullCoverage = true })
	await(t, inbox, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonFullCoverageRequired)
}
