package assessment

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
)

// DatabaseFacts is what was learned of the database. The zero value means that
// nobody looked.
type DatabaseFacts struct {
	// Inspected is false when nobody looked, as in "inbox check" without a database.
	Inspected bool
	// Target is the server, database and role, without credentials.
	Target string
	// Connection is what went wrong on the way to a usable connection.
	Connection *database.Failure
	// Schema is what was learned of the table, once the connection is usable.
	Schema SchemaFacts
}

// SchemaFacts is what was learned of the table, after the plan was applied where the
// policy allows it.
type SchemaFacts struct {
	// Failure is what went wrong while the table was inspected.
	Failure *database.Failure
	// ApplyFailure is what went wrong while the plan was applied.
	ApplyFailure *database.Failure
	// Observed is the table as it is.
	Observed dbschema.Observed
	// Verdict compares it with the contract.
	Verdict dbschema.Verdict
	// Building describes a step that another session or a Job is at; empty when none is.
	Building string
}

// DatabaseReachable says whether the operator has a usable connection.
func DatabaseReachable(facts DatabaseFacts) metav1.Condition {
	const conditionType = v1alpha1.ConditionDatabaseReachable
	switch {
	case !facts.Inspected:
		return isUnknown(conditionType, v1alpha1.ReasonNotInspected, "The database was not looked at.")
	case facts.Connection != nil:
		return isFalse(conditionType, facts.Connection.Reason, "%s", facts.Connection.Message)
	default:
		return isTrue(conditionType, v1alpha1.ReasonConnected, "Connected to %s.", facts.Target)
	}
}

// SchemaReady says whether the table keeps the contract.
func SchemaReady(spec *v1alpha1.MessagingInboxSpec, facts DatabaseFacts) metav1.Condition {
	const conditionType = v1alpha1.ConditionSchemaReady
	schema := facts.Schema
	switch {
	case !facts.Inspected || facts.Connection != nil:
		return isUnknown(conditionType, v1alpha1.ReasonNotInspected, "The table was not looked at.")
	case schema.Failure != nil:
		return isFalse(conditionType, schema.Failure.Reason, "%s", schema.Failure.Message)
	case schema.Verdict.Met():
		return isTrue(conditionType, v1alpha1.ReasonContractMet, "%s keeps the contract.%s%s", tableName(spec), wishes(schema.Verdict), pendingPlan(spec, schema))
	case schema.ApplyFailure != nil:
		return isFalse(conditionType, schema.ApplyFailure.Reason, "%s%s", schema.ApplyFailure.Message, pendingPlan(spec, schema))
	case schema.Building != "":
		return isFalse(conditionType, v1alpha1.ReasonApplying, "%s", schema.Building)
	case awaitsApproval(spec, schema.Verdict):
		return isFalse(conditionType, v1alpha1.ReasonPlanApproval, "%s%s", problems(schema.Verdict), pendingPlan(spec, schema))
	default:
		return isFalse(conditionType, firstBlocking(schema.Verdict).Reason, "%s%s", problems(schema.Verdict), pendingPlan(spec, schema))
	}
}

// SchemaBeforeApply is SchemaReady for a check that applies nothing: a plan that the
// operator would apply is no failure.
func SchemaBeforeApply(spec *v1alpha1.MessagingInboxSpec, facts DatabaseFacts) metav1.Condition {
	if facts.Schema.Failure == nil && !facts.Schema.Verdict.Met() && MayApply(spec, facts.Schema.Verdict) {
		return isUnknown(v1alpha1.ConditionSchemaReady, v1alpha1.ReasonPlanPending, "%s%s", problems(facts.Schema.Verdict), pendingPlan(spec, facts.Schema))
	}
	return SchemaReady(spec, facts)
}

// MayApply says whether the operator may apply the verdict's plan.
func MayApply(spec *v1alpha1.MessagingInboxSpec, verdict dbschema.Verdict) bool {
	if spec.Suspend || verdict.Plan.Empty() {
		return false
	}
	switch spec.Schema.Policy {
	case v1alpha1.SchemaPolicyApply:
		return true
	case v1alpha1.SchemaPolicyPlan:
		return spec.Schema.ApprovedPlan == verdict.Plan.Digest()
	default:
		return false
	}
}

func awaitsApproval(spec *v1alpha1.MessagingInboxSpec, verdict dbschema.Verdict) bool {
	return spec.Schema.Policy == v1alpha1.SchemaPolicyPlan && !verdict.Plan.Empty() && spec.Schema.ApprovedPlan != verdict.Plan.Digest()
}

// pendingPlan says what happens with the steps that are left.
func pendingPlan(spec *v1alpha1.MessagingInboxSpec, schema SchemaFacts) string {
	plan := schema.Verdict.Plan
	if plan.Empty() {
		return ""
	}
	var descriptions []string
	for _, step := range plan.Steps {
		descriptions = append(descriptions, step.Description)
	}
	steps := " Planned: " + named(descriptions) + "."
	switch {
	case schema.Building != "":
		return " " + schema.Building
	case spec.Suspend:
		return steps + " spec.suspend is true, so nothing is applied."
	case spec.Schema.Policy == v1alpha1.SchemaPolicyObserve:
		return steps + " spec.schema.policy is Observe: apply it with the application's own migrations; status.schema.plan has the SQL."
	case schema.ApplyFailure != nil && schema.Verdict.Met():
		return fmt.Sprintf("%s It failed: %s", steps, schema.ApplyFailure.Message)
	case awaitsApproval(spec, schema.Verdict):
		return fmt.Sprintf("%s Approve it with spec.schema.approvedPlan: %s", steps, plan.Digest())
	default:
		return steps
	}
}

func tableName(spec *v1alpha1.MessagingInboxSpec) string {
	return fmt.Sprintf("%s.%s", spec.Database.Schema, spec.Table.Name)
}

func firstBlocking(verdict dbschema.Verdict) dbschema.Finding {
	for _, finding := range verdict.Findings {
		if finding.Blocking {
			return finding
		}
	}
	return dbschema.Finding{}
}

func problems(verdict dbschema.Verdict) string { return messages(verdict, true) }

// wishes are the findings that do not break the contract.
func wishes(verdict dbschema.Verdict) string {
	if text := messages(verdict, false); text != "" {
		return " " + text
	}
	return ""
}

func messages(verdict dbschema.Verdict, blocking bool) string {
	var texts []string
	for _, finding := range verdict.Findings {
		if finding.Blocking == blocking {
			texts = append(texts, finding.Message)
		}
	}
	return strings.Join(texts, " ")
}

// Contract is the table that the spec declares.
func Contract(spec *v1alpha1.MessagingInboxSpec) dbschema.Contract {
	return dbschema.Contract{
		Schema:         string(spec.Database.Schema),
		Table:          string(spec.Table.Name),
		Transport:      string(spec.Table.Columns.Transport),
		MessageID:      string(spec.Table.Columns.MessageID),
		ProcessedAt:    string(spec.Table.Columns.ProcessedAt),
		TimeZone:       spec.Table.TimeZone,
		TimestampIndex: string(spec.Table.TimestampIndex),
	}
}

// SchemaStatus shows the observed table and the steps that are left. PostgreSQL cannot
// format an index while somebody holds or awaits an exclusive lock on its table: then
// the last known definition stays.
func SchemaStatus(schema SchemaFacts, last *v1alpha1.SchemaStatus) *v1alpha1.SchemaStatus {
	known := map[string]string{}
	if last != nil {
		for _, index := range last.Indexes {
			known[index.Name] = index.Definition
		}
	}
	status := &v1alpha1.SchemaStatus{}
	for _, column := range schema.Observed.Columns {
		status.Columns = append(status.Columns, v1alpha1.ColumnStatus{Name: column.Name, Type: column.Type, Nullable: column.Nullable})
	}
	for _, index := range schema.Observed.Indexes {
		status.Indexes = append(status.Indexes, v1alpha1.IndexStatus{Name: index.Name, Definition: cmp.Or(index.Definition, known[index.Name]), Valid: index.Valid})
	}
	if plan := schema.Verdict.Plan; !plan.Empty() {
		status.Plan = &v1alpha1.PlanStatus{Digest: plan.Digest()}
		for _, step := range plan.Steps {
			status.Plan.Steps = append(status.Plan.Steps, v1alpha1.PlanStep{Description: step.Description, SQL: step.SQL})
		}
	}
	return status
}
