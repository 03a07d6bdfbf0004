package assessment

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/businesskeys"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/samedatabase"
)

// HandlerFacts is what was learned of one connection of spec.database.handlerURLSecretRefs.
type HandlerFacts struct {
	// Secret that holds the connection URL.
	Secret v1alpha1.SecretKeyReference
	// Failure is what went wrong on the way to a verdict.
	Failure *database.Failure
	// Verdict compares it with the inbox's connection.
	Verdict samedatabase.Verdict
}

// TransactionShared says whether the handlers' transactions can hold the inbox's records:
// whether each of their connections reaches the inbox's own table. No facts mean that
// nobody looked.
func TransactionShared(spec *v1alpha1.MessagingInboxSpec, facts []HandlerFacts) metav1.Condition {
	const conditionType = v1alpha1.ConditionTransactionShared
	switch {
	case len(spec.Database.HandlerURLSecretRefs) == 0:
		return isUnknown(conditionType, v1alpha1.ReasonNotDeclared,
			"spec.database.handlerURLSecretRefs is not declared. Whether the handlers write in the inbox's own database is not known.")
	case len(facts) == 0:
		return isUnknown(conditionType, v1alpha1.ReasonNotInspected, "The handlers' connections were not compared with the inbox's.")
	}
	var broken, uncertain objections
	for i := range facts {
		switch fact := &facts[i]; {
		case fact.Failure != nil && fact.Failure.Class == database.Transient:
			uncertain.add(fact.Failure.Reason, location(i, fact), fact.Failure.Message)
		case fact.Failure != nil:
			broken.add(fact.Failure.Reason, location(i, fact), fact.Failure.Message)
		case fact.Verdict.Reason == samedatabase.ReasonTableMissing:
			uncertain.add(v1alpha1.ReasonNotInspected, location(i, fact), fact.Verdict.Message)
		case !fact.Verdict.Shared:
			broken.add(fact.Verdict.Reason, location(i, fact), fact.Verdict.Message)
		}
	}
	switch {
	case broken.reason != "":
		return isFalse(conditionType, broken.reason, "%s", broken.text())
	case uncertain.reason != "":
		return isUnknown(conditionType, uncertain.reason, "%s", uncertain.text())
	default:
		return isTrue(conditionType, v1alpha1.ReasonSharedTransaction, "All %d connections of the handlers reach the inbox's own database: an advisory lock that the inbox's connection holds is refused to each.%s",
			len(facts), remarks(facts))
	}
}

// objections are a list of what is wrong, under the reason of the first.
type objections struct {
	reason   string
	messages []string
}

func (p *objections) add(reason, where, what string) {
	if p.reason == "" {
		p.reason = reason
	}
	p.messages = append(p.messages, where+": "+what)
}

func (p *objections) text() string { return strings.Join(p.messages, "; ") + "." }

func location(i int, fact *HandlerFacts) string {
	return fmt.Sprintf("spec.database.handlerURLSecretRefs[%d] (Secret %s, key %s)", i, fact.Secret.Name, fact.Secret.Key)
}

// remarks are those of the verdicts that are worth knowing though they are good.
func remarks(facts []HandlerFacts) string {
	var outside []string
	for i := range facts {
		if strings.Contains(facts[i].Verdict.Message, "search_path") {
			outside = append(outside, fmt.Sprintf("Secret %s: %s", facts[i].Secret.Name, facts[i].Verdict.Message))
		}
	}
	if len(outside) == 0 {
		return ""
	}
	return " " + strings.Join(outside, "; ") + "."
}

// BusinessKeyFacts is what was learned of spec.businessKeys. The zero value means that
// nobody looked.
type BusinessKeyFacts struct {
	// Inspected is false when nobody looked.
	Inspected bool
	// Failure is what went wrong while the tables were inspected.
	Failure *database.Failure
	// Findings has one for each declared key.
	Findings []businesskeys.Finding
}

// BusinessKeysEnforced says whether PostgreSQL refuses a second row of each business key.
func BusinessKeysEnforced(spec *v1alpha1.MessagingInboxSpec, facts BusinessKeyFacts) metav1.Condition {
	const conditionType = v1alpha1.ConditionBusinessKeysEnforced
	switch {
	case len(spec.BusinessKeys) == 0:
		return isUnknown(conditionType, v1alpha1.ReasonNotDeclared,
			"spec.businessKeys is not declared. Two different messages for one business fact are not recognised by an inbox.")
	case !facts.Inspected:
		return isUnknown(conditionType, v1alpha1.ReasonNotInspected, "The tables of the business keys were not looked at.")
	case facts.Failure != nil:
		return isUnknown(conditionType, facts.Failure.Reason, "%s", facts.Failure.Message)
	}
	var missing, indexes []string
	for _, finding := range facts.Findings {
		switch {
		case finding.Enforced:
			indexes = append(indexes, finding.Index)
		case finding.SQL == "":
			missing = append(missing, finding.Missing)
		default:
			missing = append(missing, fmt.Sprintf("%s. Run: %s", finding.Missing, finding.SQL))
		}
	}
	if len(missing) > 0 {
		return isFalse(conditionType, v1alpha1.ReasonBusinessKeyMissing, "%d of %d business keys are not enforced: %s",
			len(missing), len(facts.Findings), strings.Join(missing, "; "))
	}
	return isTrue(conditionType, v1alpha1.ReasonKeysEnforced, "Unique indexes enforce all %d business keys: %s.", len(indexes), named(indexes))
}

// BusinessKeys are the keys that the spec declares.
func BusinessKeys(spec *v1alpha1.MessagingInboxSpec) []businesskeys.Key {
	keys := make([]businesskeys.Key, 0, len(spec.BusinessKeys))
	for _, declared := range spec.BusinessKeys {
		key := businesskeys.Key{Schema: string(spec.Database.Schema), Table: string(declared.Table)}
		for _, column := range declared.Columns {
			key.Columns = append(key.Columns, string(column))
		}
		keys = append(keys, key)
	}
	return keys
}
