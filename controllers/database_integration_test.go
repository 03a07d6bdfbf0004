//go:build integration

package controllers

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/test/postgres"
)

func TestAnAppliedResourceMakesItsTableAndIsReady(t *testing.T) {
	namespace, target := managed(t), postgres.Shared(t).NewDatabase(t)
	putSecret(t, namespace, "url", target)
	inbox := orders(t, namespace, "")
	apply(t, inbox)

	ready := awaitReady(t, inbox)
	if count := queryInt(t, target, "SELECT count(*) FROM public.messenger_inbox"); count != 0 {
		t.Errorf("the new table has %d rows", count)
	}
	for conditionType, status := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionDatabaseReachable: metav1.ConditionTrue,
		v1alpha1.ConditionSchemaReady:       metav1.ConditionTrue,
		v1alpha1.ConditionRetentionSafe:     metav1.ConditionTrue,
		v1alpha1.ConditionCoverageComplete:  metav1.ConditionTrue,
		v1alpha1.ConditionPruningHealthy:    metav1.ConditionUnknown,
	} {
		if found := meta.FindStatusCondition(ready.Status.Conditions, conditionType); found == nil || found.Status != status {
			t.Errorf("%s = %+v, want %s", conditionType, found, status)
		}
	}
	if ready.Status.ObservedGeneration != ready.Generation {
		t.Errorf("observedGeneration = %d, generation = %d", ready.Status.ObservedGeneration, ready.Generation)
	}
	// amqp without heartbeat: 2h of a hung worker, 1.1s to the first retry, 7.7s of retries, 24h of downtime.
	if required := ready.Status.Retention.Required.Duration; required != 26*time.Hour+8800*time.Millisecond {
		t.Errorf("required = %s, want 26h0m8.8s", required)
	}
	if next := ready.Status.Pruning.NextRun; next == nil || time.Until(next.Time) > 15*time.Minute {
		t.Errorf("nextRun = %v, want a quarter of an hour at most from now", next)
	}
	if columns := ready.Status.Schema.Columns; len(columns) != 3 || columns[2].Type != "timestamp(0) without time zone" {
		t.Errorf("columns = %+v", columns)
	}
}

// Each row brings a database out of reach in its own way, and mends it. The resource
// says what is wrong, and is ready by itself afterwards.
func TestADatabaseOutOfReachIsNamedAndRecovers(t *testing.T) {
	server := postgres.Shared(t)
	for name, fault := range map[string]struct {
		broken  func(good string) string
		key     string
		reason  string
		says    []string
		stalled bool
		retried bool
	}{
		"no Secret":        {nil, "url", v1alpha1.ReasonSecretNotFound, []string{"Secret database does not exist"}, false, false},
		"no such key":      {func(good string) string { return good }, "dsn", v1alpha1.ReasonSecretKeyMissing, []string{`"url"`, `"dsn"`}, false, false},
		"not a URL":        {func(string) string { return "postgresql://[" }, "url", v1alpha1.ReasonInvalidURL, []string{"Secret database, key url"}, false, false},
		"another database": {func(string) string { return "mysql://app:hunter2@db/app" }, "url", v1alpha1.ReasonUnsupportedDatabase, []string{"PostgreSQL"}, true, false},
		"a wrong password": {func(good string) string {
			return edited(good, func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "hunter2") })
		}, "url", v1alpha1.ReasonAuthenticationFailed, nil, false, false},
		"a port nobody is on": {func(good string) string { return edited(good, func(u *url.URL) { u.Host = "127.0.0.1:1" }) }, "url", v1alpha1.ReasonUnreachable, []string{"127.0.0.1:1"}, false, true},
		"an unknown database": {func(good string) string { return edited(good, func(u *url.URL) { u.Path = "/nowhere" }) }, "url", v1alpha1.ReasonDatabaseNotFound, []string{"nowhere"}, false, false},
		"TLS that is refused": {func(good string) string { return edited(good, func(u *url.URL) { u.RawQuery = "sslmode=require" }) }, "url", v1alpha1.ReasonTLSFailed, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, good := managed(t), server.NewDatabase(t)
			if fault.broken != nil {
				putSecret(t, namespace, fault.key, fault.broken(good))
			}
			inbox := orders(t, namespace, "")
			apply(t, inbox)

			broken := await(t, inbox, v1alpha1.ConditionDatabaseReachable, metav1.ConditionFalse, fault.reason)
			mustSay(t, broken, v1alpha1.ConditionDatabaseReachable, fault.says...)
			if ready := meta.FindStatusCondition(broken.Status.Conditions, v1alpha1.ConditionReady); ready.Status != metav1.ConditionFalse || ready.Reason != fault.reason {
				t.Errorf("Ready = %s (%s)", ready.Status, ready.Reason)
			}
			if !meta.IsStatusConditionTrue(broken.Status.Conditions, v1alpha1.ConditionRetentionSafe) {
				t.Error("the retention is judged also while the database is out of reach")
			}
			if stalled := meta.IsStatusConditionTrue(broken.Status.Conditions, v1alpha1.ConditionStalled); stalled != fault.stalled {
				t.Errorf("Stalled = %t, want %t", stalled, fault.stalled)
			}
			if retried := meta.IsStatusConditionTrue(broken.Status.Conditions, v1alpha1.ConditionReconciling); retried != fault.retried {
				t.Errorf("Reconciling = %t, want %t", retried, fault.retried)
			}
			if strings.Contains(describe(broken), "hunter2") {
				t.Errorf("a password is in the status:\n%s", describe(broken))
			}
			putSecret(t, namespace, "url", good)
			awaitReady(t, inbox)
		})
	}
}

func TestAReplicaIsRefusedByName(t *testing.T) {
	server := postgres.Shared(t)
	replica, err := server.Replica(t.Context(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = replica.Stop() })
	namespace := managed(t)
	putSecret(t, namespace, "url", replica.URL("postgres"))
	inbox := orders(t, namespace, "")
	apply(t, inbox)

	broken := await(t, inbox, v1alpha1.ConditionDatabaseReachable, metav1.ConditionFalse, v1alpha1.ReasonReadOnly)
	mustSay(t, broken, v1alpha1.ConditionDatabaseReachable, "replica")
	putSecret(t, namespace, "url", server.NewDatabase(t))
	awaitReady(t, inbox)
}

func TestAMissingPrivilegeIsNamedAndFoundWhenGranted(t *testing.T) {
	server := postgres.Shared(t)
	namespace, good := managed(t), server.NewDatabase(t)
	execute(t, good, "CREATE ROLE limited LOGIN PASSWORD 'limited'")
	t.Cleanup(func() { execute(t, server.URL("postgres"), "DROP ROLE limited") })
	t.Cleanup(func() { execute(t, good, "DROP OWNED BY limited") })
	putSecret(t, namespace, "url", edited(good, func(u *url.URL) { u.User = url.UserPassword("limited", "limited") }))
	inbox := orders(t, namespace, "")
	apply(t, inbox)

	broken := await(t, inbox, v1alpha1.ConditionSchemaReady, metav1.ConditionFalse, v1alpha1.ReasonPermissionDenied)
	mustSay(t, broken, v1alpha1.ConditionSchemaReady, "CREATE", "limited", "public")
	execute(t, good, "GRANT CREATE ON SCHEMA public TO limited")
	awaitReady(t, inbox)
}

func TestARoleThatCannotDeleteIsNamed(t *testing.T) {
	server := postgres.Shared(t)
	namespace, good := managed(t), server.NewDatabase(t)
	execute(t, good, doctrineTable)
	execute(t, good, "CREATE ROLE reader LOGIN PASSWORD 'reader'")
	t.Cleanup(func() { execute(t, server.URL("postgres"), "DROP ROLE reader") })
	t.Cleanup(func() { execute(t, good, "DROP OWNED BY reader") })
	execute(t, good, "GRANT SELECT ON messenger_inbox TO reader")
	putSecret(t, namespace, "url", edited(good, func(u *url.URL) { u.User = url.UserPassword("reader", "reader") }))
	inbox := orders(t, namespace, "")
	apply(t, inbox)

	broken := await(t, inbox, v1alpha1.ConditionSchemaReady, metav1.ConditionFalse, v1alpha1.ReasonPermissionDenied)
	mustSay(t, broken, v1alpha1.ConditionSchemaReady, "DELETE", "public.messenger_inbox", `GRANT DELETE ON "public"."messenger_inbox" TO "reader"`)
	execute(t, good, "GRANT DELETE ON messenger_inbox TO reader")
	awaitReady(t, inbox)
}

func TestADatabaseThatIsDroppedWhileRunningIsNamedAndRecovers(t *testing.T) {
	server := postgres.Shared(t)
	namespace, target := managed(t), server.NewDatabase(t)
	putSecret(t, namespace, "url", target)
	inbox := orders(t, namespace, "")
	apply(t, inbox)
	awaitReady(t, inbox)

	name := strings.TrimPrefix(edit(target).Path, "/")
	if err := server.DropDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	touch(t, inbox) // the next look, which in production comes with the recheck
	await(t, inbox, v1alpha1.ConditionDatabaseReachable, metav1.ConditionFalse, v1alpha1.ReasonDatabaseNotFound)
	if err := server.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, inbox)
}

func TestARotatedSecretIsTakenUpAtOnce(t *testing.T) {
	server := postgres.Shared(t)
	namespace, target := managed(t), server.NewDatabase(t)
	execute(t, target, "CREATE ROLE rotating LOGIN PASSWORD 'first'")
	t.Cleanup(func() { execute(t, server.URL("postgres"), "DROP ROLE rotating") })
	t.Cleanup(func() { execute(t, target, "DROP OWNED BY rotating") })
	execute(t, target, "GRANT CREATE ON SCHEMA public TO rotating")
	as := func(password string) string {
		return edited(target, func(u *url.URL) { u.User = url.UserPassword("rotating", password) })
	}
	putSecret(t, namespace, "url", as("first"))
	inbox := orders(t, namespace, "")
	apply(t, inbox)
	awaitReady(t, inbox)

	execute(t, target, "ALTER ROLE rotating PASSWORD 'second'")
	putSecret(t, namespace, "url", as("wrong"))
	await(t, inbox, v1alpha1.ConditionDatabaseReachable, metav1.ConditionFalse, v1alpha1.ReasonAuthenticationFailed)
	putSecret(t, namespace, "url", as("second"))
	awaitReady(t, inbox)
}

func TestALockOnTheTableIsWaitedForBrieflyAndNamed(t *testing.T) {
	namespace, target := managed(t), postgres.Shared(t).NewDatabase(t)
	// Without a unique key the operator wants to build one, for which it needs a lock.
	execute(t, target, "CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL, processed_at timestamp(0) NOT NULL)")
	release := holdLock(t, target, "messenger_inbox")
	putSecret(t, namespace, "url", target)
	inbox := orders(t, namespace, "")
	apply(t, inbox)

	broken := await(t, inbox, v1alpha1.ConditionSchemaReady, metav1.ConditionFalse, v1alpha1.ReasonLockTimeout)
	if !meta.IsStatusConditionTrue(broken.Status.Conditions, v1alpha1.ConditionReconciling) {
		t.Errorf("a lock passes, so it is retried:\n%s", describe(broken))
	}
	release()
	awaitReady(t, inbox)
}

const doctrineTable = `CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL,
	processed_at timestamp(0) NOT NULL, PRIMARY KEY (transport, message_id)); CREATE INDEX idx_processed ON messenger_inbox (processed_at)`

func edit(raw string) *url.URL {
	parsed, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	return parsed
}

func edited(raw string, change func(*url.URL)) string {
	parsed := edit(raw)
	change(parsed)
	return parsed.String()
}

func connectTo(t *testing.T, target string) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

func execute(t *testing.T, target, statement string) {
	t.Helper()
	connection, err := pgx.Connect(context.Background(), target) // also in a cleanup
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(context.Background()) }()
	if _, err := connection.Exec(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}

func queryInt(t *testing.T, target, query string) (value int64) {
	t.Helper()
	if err := connectTo(t, target).QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// holdLock locks the table as an ALTER TABLE would, until release is called.
func holdLock(t *testing.T, target, table string) (release func()) {
	t.Helper()
	connection := connectTo(t, target)
	transaction, err := connection.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transaction.Exec(t.Context(), "LOCK TABLE "+pgx.Identifier{table}.Sanitize()+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	return func() { _ = transaction.Rollback(context.Background()) }
}

// touch makes the operator look again, by a change of a Secret that it watches.
func touch(t *testing.T, inbox *v1alpha1.MessagingInbox) {
	t.Helper()
	secret := &corev1.Secret{}
	key := inbox.DeepCopy()
	key.Name = "database"
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(key), secret); err != nil {
		t.Fatal(err)
	}
	secret.Annotations = map[string]string{"touched": time.Now().String()}
	if err := kube.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}
