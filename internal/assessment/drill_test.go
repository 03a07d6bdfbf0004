package assessment

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/dbschema"
	"github.com/messaginginbox/operator/internal/drill"
	"github.com/messaginginbox/operator/internal/schedule"
)

const drilledDaily = "drill: {schedule: \"@daily\"}\n  transports: [{name: a, type: amqp}]"

func TestContractProven(t *testing.T) {
	mustBe(t, ContractProven(declared(t, "transports: [{name: a, type: amqp}]"), DrillFacts{}), metav1.ConditionUnknown, v1alpha1.ReasonNotDeclared)
	spec := declared(t, drilledDaily)
	ended := &metav1.Time{Time: time.Date(2026, 7, 1, 2, 3, 4, 0, time.UTC)}
	last := func(result v1alpha1.DrillResult) *v1alpha1.DrillStatus {
		return &v1alpha1.DrillStatus{LastRun: ended, Job: "orders-drill-1", Subject: "old", Result: result, Reason: "InsertSwallowed", Message: "a trigger.",
			LockWait: &metav1.Duration{Duration: 53 * time.Millisecond}}
	}
	for name, test := range map[string]struct {
		facts  DrillFacts
		status metav1.ConditionStatus
		reason string
		says   []string
	}{
		"a schedule that never fires":           {DrillFacts{ScheduleError: &schedule.Error{Reason: v1alpha1.ReasonInvalidSchedule, Message: "never"}}, metav1.ConditionFalse, v1alpha1.ReasonInvalidSchedule, []string{"spec.drill.schedule", "never"}},
		"no drill yet":                          {DrillFacts{}, metav1.ConditionUnknown, v1alpha1.ReasonAwaitingRun, []string{"@daily"}},
		"only the next run is known":            {DrillFacts{Last: &v1alpha1.DrillStatus{NextRun: ended}}, metav1.ConditionUnknown, v1alpha1.ReasonAwaitingRun, nil},
		"a gate that is shut":                   {DrillFacts{Blocker: &metav1.Condition{Type: "SchemaReady", Status: "False", Reason: "TableMissing"}}, metav1.ConditionUnknown, v1alpha1.ReasonAwaitingRun, []string{"SchemaReady is False (TableMissing)"}},
		"a Job that is not accepted":            {DrillFacts{JobRejected: "quota", Last: last(v1alpha1.DrillProven)}, metav1.ConditionUnknown, v1alpha1.ReasonJobRejected, []string{"quota"}},
		"proven":                                {DrillFacts{Last: last(v1alpha1.DrillProven), Subject: "old"}, metav1.ConditionTrue, v1alpha1.ReasonProven, []string{"2026-07-01T02:03:04Z", "orders-drill-1", "53ms"}},
		"proven, database out of reach now":     {DrillFacts{Last: last(v1alpha1.DrillProven)}, metav1.ConditionTrue, v1alpha1.ReasonProven, nil},
		"proven, of another table":              {DrillFacts{Last: last(v1alpha1.DrillProven), Subject: "new"}, metav1.ConditionUnknown, v1alpha1.ReasonAwaitingRun, []string{"changed"}},
		"broken":                                {DrillFacts{Last: last(v1alpha1.DrillBroken), Subject: "old"}, metav1.ConditionFalse, v1alpha1.ReasonContractBroken, []string{"InsertSwallowed", "a trigger."}},
		"broken, until a new drill says better": {DrillFacts{Last: last(v1alpha1.DrillBroken), Subject: "new"}, metav1.ConditionFalse, v1alpha1.ReasonContractBroken, nil},
		"not tried":                             {DrillFacts{Last: last(v1alpha1.DrillNotTried), Subject: "old"}, metav1.ConditionUnknown, v1alpha1.ReasonDrillNotTried, []string{"a trigger."}},
		"failed":                                {DrillFacts{Last: last(v1alpha1.DrillFailed), Subject: "old"}, metav1.ConditionUnknown, v1alpha1.ReasonRunFailed, []string{"a trigger."}},
	} {
		t.Run(name, func(t *testing.T) {
			mustBe(t, ContractProven(spec, test.facts), test.status, test.reason, test.says...)
		})
	}
	unscheduled := declared(t, "transports: [{name: a, type: amqp}]")
	for name, test := range map[string]struct {
		facts  DrillFacts
		status metav1.ConditionStatus
		reason string
		says   []string
	}{
		"proven by hand":                   {DrillFacts{Last: last(v1alpha1.DrillProven), Subject: "old"}, metav1.ConditionTrue, v1alpha1.ReasonProven, []string{"2026-07-01T02:03:04Z", "orders-drill-1"}},
		"proven by hand, of another table": {DrillFacts{Last: last(v1alpha1.DrillProven), Subject: "new"}, metav1.ConditionUnknown, v1alpha1.ReasonNotDeclared, []string{"changed since the drill of 2026-07-01T02:03:04Z", "kubectl inbox drill"}},
		"broken by hand":                   {DrillFacts{Last: last(v1alpha1.DrillBroken), Subject: "old"}, metav1.ConditionFalse, v1alpha1.ReasonContractBroken, []string{"2026-07-01T02:03:04Z", "a trigger."}},
		"broken by hand, table changed":    {DrillFacts{Last: last(v1alpha1.DrillBroken), Subject: "new"}, metav1.ConditionFalse, v1alpha1.ReasonContractBroken, []string{"drill again with kubectl inbox drill"}},
		"not tried by hand":                {DrillFacts{Last: last(v1alpha1.DrillNotTried), Subject: "old"}, metav1.ConditionUnknown, v1alpha1.ReasonDrillNotTried, []string{"a trigger."}},
		"never drilled":                    {DrillFacts{Last: &v1alpha1.DrillStatus{}, Subject: "new"}, metav1.ConditionUnknown, v1alpha1.ReasonNotDeclared, []string{"not drilled"}},
	} {
		t.Run("without a schedule, "+name, func(t *testing.T) {
			mustBe(t, ContractProven(unscheduled, test.facts), test.status, test.reason, test.says...)
		})
	}
	spec.Suspend = true
	mustBe(t, ContractProven(spec, DrillFacts{}), metav1.ConditionUnknown, v1alpha1.ReasonSuspended)
	mustBe(t, ContractProven(spec, DrillFacts{Last: last(v1alpha1.DrillBroken)}), metav1.ConditionFalse, v1alpha1.ReasonContractBroken)
}

func TestEachGateOfADrillForbidsItByItself(t *testing.T) {
	const generation = 3
	open := allGood()
	for i := range open {
		open[i].ObservedGeneration = generation
	}
	if blocker := DrillBlocker(open, generation); blocker != nil {
		t.Errorf("%s forbids a drill", blocker.Type)
	}
	if DrillBlocker(open, generation+1) == nil {
		t.Error("an earlier generation's conditions allow a drill")
	}
	for _, gate := range drillGates {
		shut := append([]metav1.Condition(nil), open...)
		for i := range shut {
			if shut[i].Type == gate {
				shut[i].Status = metav1.ConditionFalse
			}
		}
		if blocker := DrillBlocker(shut, generation); blocker == nil || blocker.Type != gate {
			t.Errorf("%s = False does not forbid a drill", gate)
		}
	}
}

func TestASubjectChangesWithWhatADrillIsAbout(t *testing.T) {
	table := func() dbschema.Observed {
		return dbschema.Observed{OID: 1, Kind: dbschema.KindTable, Persistence: dbschema.Permanent,
			Columns: []dbschema.Column{{Name: "transport", Type: "text"}}, Indexes: []dbschema.Index{{Name: "key", Unique: true, Valid: true, Definition: "CREATE"}}}
	}
	subject := func(change func(*v1alpha1.MessagingInboxSpec, *dbschema.Observed)) string {
		spec, observed := declared(t, drilledDaily), table()
		if change != nil {
			change(spec, &observed)
		}
		digest, err := DrillSubject(spec, observed)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	before := subject(nil)
	for name, change := range map[string]func(*v1alpha1.MessagingInboxSpec, *dbschema.Observed){
		"more rows":                 func(_ *v1alpha1.MessagingInboxSpec, o *dbschema.Observed) { o.EstimatedRows, o.Bytes = 5, 5 },
		"a definition under a lock": func(_ *v1alpha1.MessagingInboxSpec, o *dbschema.Observed) { o.Indexes[0].Definition = "" },
		"an index that is being built": func(_ *v1alpha1.MessagingInboxSpec, o *dbschema.Observed) {
			o.Indexes = append(o.Indexes, dbschema.Index{Name: "new", BeingBuilt: true})
		},
		"another retention": func(s *v1alpha1.MessagingInboxSpec, _ *dbschema.Observed) { s.Retention.MarginPercent++ },
	} {
		if subject(change) != before {
			t.Errorf("%s makes another subject", name)
		}
	}
	for name, change := range map[string]func(*v1alpha1.MessagingInboxSpec, *dbschema.Observed){
		"another table":    func(_ *v1alpha1.MessagingInboxSpec, o *dbschema.Observed) { o.OID = 2 },
		"an invalid index": func(_ *v1alpha1.MessagingInboxSpec, o *dbschema.Observed) { o.Indexes[0].Valid = false },
		"a trigger":        func(_ *v1alpha1.MessagingInboxSpec, o *dbschema.Observed) { o.Triggers = []string{"a"} },
		"a rule":           func(_ *v1alpha1.MessagingInboxSpec, o *dbschema.Observed) { o.Rules = []string{"a"} },
		"a column": func(_ *v1alpha1.MessagingInboxSpec, o *dbschema.Observed) {
			o.Columns = append(o.Columns, dbschema.Column{Name: "a"})
		},
		"unlogged": func(_ *v1alpha1.MessagingInboxSpec, o *dbschema.Observed) { o.Persistence = dbschema.Unlogged },
		"a handler's Secret": func(s *v1alpha1.MessagingInboxSpec, _ *dbschema.Observed) {
			s.Database.HandlerURLSecretRefs = []v1alpha1.SecretKeyReference{{Name: "a"}}
		},
		"another column name": func(s *v1alpha1.MessagingInboxSpec, _ *dbschema.Observed) { s.Table.Columns.Transport = "a" },
	} {
		if subject(change) == before {
			t.Errorf("%s makes no other subject", name)
		}
	}
}

func TestTheDrillsWordsAreThoseOfTheAPI(t *testing.T) {
	for ours, theirs := range map[string]string{
		drill.TransportName: v1alpha1.ReservedTransportName, drill.ResultProven: string(v1alpha1.DrillProven), drill.ResultBroken: string(v1alpha1.DrillBroken),
		drill.ResultNotTried: string(v1alpha1.DrillNotTried), drill.ResultFailed: string(v1alpha1.DrillFailed),
	} {
		if ours != theirs {
			t.Errorf("%s is not %s", ours, theirs)
		}
	}
}
