package manifest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// smallest is the smallest useful manifest; %s is put at the end of its spec.
const smallest = `
apiVersion: messaginginbox.dev/v1alpha1
kind: MessagingInbox
metadata: {name: shop}
spec:
  database: {urlSecretRef: {name: shop-database}}
%s`

const oneTransport = "  transports: [{name: orders, type: amqp}]\n"

func TestTheSmallestManifestGetsEveryDefault(t *testing.T) {
	inboxes, err := Parse("shop.yaml", fmt.Appendf(nil, smallest, oneTransport))
	if err != nil {
		t.Fatal(err)
	}
	spec := inboxes[0].Spec
	if spec.Database.URLSecretRef.Key != "url" || spec.Database.Schema != "public" {
		t.Errorf("database = %+v", spec.Database)
	}
	if spec.Table.Name != "messenger_inbox" || spec.Table.Columns != (v1alpha1.ColumnsSpec{Transport: "transport", MessageID: "message_id", ProcessedAt: "processed_at"}) || spec.Table.TimeZone != "UTC" {
		t.Errorf("table = %+v", spec.Table)
	}
	if spec.Retention.Period != hours(168) || spec.Retention.MarginPercent != 10 || spec.Retention.ApplicationPeriod != nil {
		t.Errorf("retention = %+v", spec.Retention)
	}
	if spec.Schema.Policy != v1alpha1.SchemaPolicyApply || spec.Suspend {
		t.Errorf("schema = %+v, suspend = %t", spec.Schema, spec.Suspend)
	}
	redelivery := v1alpha1.RedeliverySpec{
		MaxDowntime: hours(24), ReplayWindow: hours(0), LostAcks: 1,
		MaxHandlerTime: minutes(1), MaxWorkerHang: hours(2),
	}
	if spec.Redelivery != redelivery {
		t.Errorf("redelivery = %+v, want %+v", spec.Redelivery, redelivery)
	}
	if !spec.Transports[0].Inbox || spec.Transports[0].BatchHandlers {
		t.Errorf("transport = %+v", spec.Transports[0])
	}
	if spec.Pruning.Schedule != "*/15 * * * *" || spec.Pruning.BatchSize != 5000 || spec.Pruning.MaxDuration != minutes(10) || spec.Pruning.Pace.Duration.Duration != 10*time.Millisecond {
		t.Errorf("pruning = %+v", spec.Pruning)
	}
}

func TestWhatIsAccepted(t *testing.T) {
	for name, spec := range map[string]string{
		"a quote in a table name":              oneTransport + `  table: {name: "in\"box"}`,
		"an identifier of 63 bytes":            oneTransport + "  table: {name: " + strings.Repeat("a", 63) + "}",
		"300 transports":                       manyTransports(300),
		"a multiplier as a number or a string": "  transports: [{name: a, type: amqp, redelivery: {retryStrategy: {multiplier: 2, jitter: \"0.1\"}}}]",
		"an outbox and a target that has one":  "  transports: [{name: a, type: amqp, outbox: o, dispatchesAfterCurrentBus: [a]}, {name: o, type: doctrine}]",
		"a retention of zero, judged later":    oneTransport + "  retention: {period: 0s}",
		"a custom transport with its window":   "  transports: [{name: a, type: custom, redelivery: {window: 96h}}]",
		"a schedule that is judged later":      oneTransport + "  pruning: {schedule: '0 0 30 2 *', timeZone: Mars/Olympus}",
		"names of a pod":                       oneTransport + "  pruning: {maxReplicaLag: 1s, job: {serviceAccountName: pruner.of-1, priorityClassName: low}}",
		"empty names of a pod":                 oneTransport + "  pruning: {job: {serviceAccountName: '', priorityClassName: ''}}",
		"a schedule by name":                   oneTransport + "  pruning: {schedule: '@hourly'}",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("shop.yaml", fmt.Appendf(nil, smallest, spec)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatIsRefusedAndWhy(t *testing.T) {
	for name, refused := range map[string]struct{ spec, why string }{
		"no transports":                                     {"  transports: []", "at least 1 items"},
		"too many transports":                               {manyTransports(321), "must have at most 320 items"},
		"two transports of one name":                        {"  transports: [{name: a, type: amqp}, {name: a, type: redis}]", "spec.transports[1]: Duplicate value"},
		"a name that is not declared, as failure transport": {"  transports: [{name: a, type: amqp, failureTransport: failed}]", "failureTransport must name another transport that is declared"},
		"itself as failure transport":                       {"  transports: [{name: a, type: amqp, failureTransport: a}]", "failureTransport must name another transport that is declared"},
		"a name that is not declared, as outbox":            {"  transports: [{name: a, type: amqp, outbox: o}]", "outbox must name another transport that is declared"},
		"itself as outbox":                                  {"  transports: [{name: a, type: amqp, outbox: a}]", "outbox must name another transport that is declared"},
		"a dispatch after the current bus without outbox":   {"  transports: [{name: a, type: amqp, dispatchesAfterCurrentBus: [b]}, {name: b, type: amqp}]", "must be declared in spec.transports and have an outbox"},
		"a dispatch after the current bus to nowhere":       {"  transports: [{name: a, type: amqp, dispatchesAfterCurrentBus: [mail]}]", "must be declared in spec.transports and have an outbox"},
		"a custom transport without window":                 {"  transports: [{name: a, type: custom}]", "a custom transport must declare redelivery.window"},
		"the reserved name":                                 {"  transports: [{name: messaginginbox.drill, type: amqp}]", "is reserved for drills"},
		"an unknown type":                                   {"  transports: [{name: a, type: kafka}]", `supported values: "amqp"`},
		"an option of another type":                         {"  transports: [{name: a, type: amqp, redelivery: {ttr: 90s}}]", "redelivery.ttr is an option of beanstalkd transports"},
		"a retry service beside its numbers":                {"  transports: [{name: a, type: amqp, redelivery: {retryStrategy: {service: x, delay: 3s}}}]", "service excludes delay"},
		"a bound without a retry service":                   {"  transports: [{name: a, type: amqp, redelivery: {retryStrategy: {maxTotal: 1h}}}]", "maxTotal bounds a retry service"},
		"a multiplier below one":                            {"  transports: [{name: a, type: amqp, redelivery: {retryStrategy: {multiplier: \"0.5\"}}}]", "multiplier must be from 1 to 1000"},
		"a jitter above one":                                {"  transports: [{name: a, type: amqp, redelivery: {retryStrategy: {jitter: 2}}}]", "jitter must be from 0 to 1"},
		"no lost acknowledgements":                          {oneTransport + "  redelivery: {lostAcks: 0}", "spec.redelivery.lostAcks: Invalid value"},
		"a negative duration":                               {oneTransport + "  retention: {period: -1h}", "must be a duration that is not negative"},
		"a duration in days":                                {oneTransport + "  retention: {period: 7d}", "must be a duration that is not negative"},
		"a duration in words":                               {oneTransport + "  retention: {period: 7 days}", "must be a duration that is not negative"},
		"a duration that overflows":                         {oneTransport + "  retention: {period: 9999999999h}", "spec.retention.period"},
		"a run without time":                                {oneTransport + "  pruning: {maxDuration: 0s}", "maxDuration must be from 1s to 24h"},
		"a replica that must not lag at all":                {oneTransport + "  pruning: {maxReplicaLag: 0s}", "maxReplicaLag must be more than 0s: leave it out when replicas are not to be looked at"},
		"a service account that is no name":                 {oneTransport + "  pruning: {job: {serviceAccountName: Not_A_Name}}", "spec.pruning.job.serviceAccountName: Invalid value"},
		"a priority class that is no name":                  {oneTransport + "  pruning: {job: {priorityClassName: -low}}", "spec.pruning.job.priorityClassName: Invalid value"},
		"an identifier of 64 bytes in 32 characters":        {oneTransport + "  table: {name: " + strings.Repeat("ä", 32) + "}", "at most 63 bytes"},
		"a NUL in a table name":                             {oneTransport + `  table: {name: "in\0box"}`, "cannot contain a NUL"},
		"an empty column name":                              {oneTransport + "  table: {columns: {transport: ''}}", "spec.table.columns.transport"},
		"one column for two facts":                          {oneTransport + "  table: {columns: {transport: message_id}}", "must be three different columns"},
		"a schedule of six fields":                          {oneTransport + "  pruning: {schedule: '0 */15 * * * *'}", "cron expression of five fields"},
		"a time zone inside the schedule":                   {oneTransport + "  pruning: {schedule: 'TZ=UTC * * * * *'}", "the time zone has its own field"},
		"an approved plan that is no digest":                {oneTransport + "  schema: {approvedPlan: latest}", "spec.schema.approvedPlan"},
		"a field that does not exist":                       {oneTransport + "  retention: {days: 7}", "spec.retention.days: Forbidden: unknown field"},
		"a field that is given twice":                       {oneTransport + "  suspend: true\n  suspend: false", `key "suspend" already set`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("shop.yaml", fmt.Appendf(nil, smallest, refused.spec))
			if err == nil || !strings.Contains(err.Error(), refused.why) {
				t.Errorf("error = %v\nwant one with %q", err, refused.why)
			}
		})
	}
}

func TestFilesOfSeveralDocuments(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: shop-database}\n"
	good := fmt.Sprintf(smallest, oneTransport)

	inboxes, err := Parse("all.yaml", []byte(secret+"---\n"+good+"---\n"+good))
	if err != nil || len(inboxes) != 2 {
		t.Errorf("%d inboxes, error %v; want the 2 inboxes and the Secret passed over", len(inboxes), err)
	}
	for name, broken := range map[string]struct{ content, why string }{
		"nothing of ours":      {secret, "all.yaml holds no MessagingInbox"},
		"an empty file":        {"", "all.yaml holds no MessagingInbox"},
		"a later version":      {strings.Replace(good, "v1alpha1", "v9", 1), "apiVersion is"},
		"a broken second one":  {good + "---\nkind: [", "all.yaml, document 2: not valid YAML"},
		"no name":              {strings.Replace(good, "{name: shop}", "{}", 1), "metadata.name: Required"},
		"a name in upper case": {strings.Replace(good, "{name: shop}", "{name: Shop}", 1), "metadata.name: Invalid value"},
		"binary content":       {"\x00\x01\x02\xff", "all.yaml, document 1: not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("all.yaml", []byte(broken.content)); err == nil || !strings.Contains(err.Error(), broken.why) {
				t.Errorf("error = %v, want one with %q", err, broken.why)
			}
		})
	}
	if _, err := Read("does-not-exist.yaml"); err == nil || !strings.Contains(err.Error(), "does-not-exist.yaml") {
		t.Errorf("error = %v, want one that names the file", err)
	}
}

func manyTransports(n int) string {
	list := "  transports:\n"
	for i := range n {
		list += fmt.Sprintf("  - {name: transport-%d, type: amqp}\n", i)
	}
	return list
}

func hours(n int) v1alpha1.Duration { return minutes(60 * n) }

func minutes(n int) v1alpha1.Duration {
	return v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Duration(n) * time.Minute}}
}
