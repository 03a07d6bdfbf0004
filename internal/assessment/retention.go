package assessment

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// effectivePeriod is the retention that protects: whoever prunes first decides.
func effectivePeriod(retention v1alpha1.RetentionSpec) time.Duration {
	if application := retention.ApplicationPeriod; application != nil {
		return min(retention.Period.Duration.Duration, application.Duration.Duration)
	}
	return retention.Period.Duration.Duration
}

// effectiveField is the field that the effective period came from.
func effectiveField(retention v1alpha1.RetentionSpec) string {
	if application := retention.ApplicationPeriod; application != nil && application.Duration.Duration < retention.Period.Duration.Duration {
		return "spec.retention.applicationPeriod"
	}
	return "spec.retention.period"
}

// RetentionSafe says whether a proof outlives the last moment at which its message
// can come back.
func RetentionSafe(spec *v1alpha1.MessagingInboxSpec, requirement redelivery.Requirement) metav1.Condition {
	effective, field, margin := effectivePeriod(spec.Retention), effectiveField(spec.Retention), int64(spec.Retention.MarginPercent)
	if effective <= 0 {
		return isFalse(v1alpha1.ConditionRetentionSafe, v1alpha1.ReasonRetentionZero,
			"%s is 0s: every proof would be pruned as soon as it is written. Declare how long a proof is kept.", field)
	}
	if len(requirement.Undeclared) > 0 {
		return isFalse(v1alpha1.ConditionRetentionSafe, v1alpha1.ReasonUnbounded,
			"Nothing bounds how late a message can come back. Declare %s.%s", named(requirement.Undeclared), doubtfulWindows(requirement))
	}
	withMargin, bounded := requirement.WithMargin(margin)
	if !bounded {
		return isFalse(v1alpha1.ConditionRetentionSafe, v1alpha1.ReasonUnbounded,
			"The window of transport %s is longer than 292 years. Shorten what spec.transports declares for it.", requirement.Deciding)
	}
	if !redelivery.Protects(effective, requirement, margin) {
		recommended, _ := requirement.Recommended(margin)
		return isFalse(v1alpha1.ConditionRetentionSafe, v1alpha1.ReasonTooShort,
			"%s is %s, but a message of transport %s can come back %s after it was handled; with a margin of %d %% that is %s. Set %s to %s or more.%s",
			field, Human(effective), requirement.Deciding, Human(requirement.Required), margin, Human(withMargin), field, Human(recommended), doubtfulWindows(requirement))
	}
	return isTrue(v1alpha1.ConditionRetentionSafe, v1alpha1.ReasonCoversWindow, "%s%s", coverage(spec, requirement, effective, withMargin), doubtfulWindows(requirement))
}

func coverage(spec *v1alpha1.MessagingInboxSpec, requirement redelivery.Requirement, effective, withMargin time.Duration) string {
	if requirement.Deciding == "" {
		return fmt.Sprintf("No declared transport needs a proof; %s is %s.", effectiveField(spec.Retention), Human(effective))
	}
	return fmt.Sprintf("%s is %s and covers the %s that a message of transport %s needs (%s and a margin of %d %%).",
		effectiveField(spec.Retention), Human(effective), Human(withMargin), requirement.Deciding, Human(requirement.Required), spec.Retention.MarginPercent)
}

// doubtfulWindows names the declared windows that are shorter than what the
// transport's own broker and retries already need.
func doubtfulWindows(requirement redelivery.Requirement) string {
	var doubts []string
	for _, window := range requirement.Windows {
		if window.ShorterThan != nil {
			doubts = append(doubts, fmt.Sprintf("%s declares a window of %s, but its broker and its retries alone take up to %s", window.Transport, Human(window.Duration), Human(*window.ShorterThan)))
		}
	}
	if len(doubts) == 0 {
		return ""
	}
	return " Check the declared windows: " + named(doubts) + "."
}

// Human prints a duration without its zero parts: 168h instead of 168h0m0s.
func Human(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
