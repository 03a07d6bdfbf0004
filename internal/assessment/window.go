package assessment

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// Requirement computes the redelivery windows that the spec declares.
func Requirement(spec *v1alpha1.MessagingInboxSpec) redelivery.Requirement {
	transports := make([]redelivery.Transport, 0, len(spec.Transports))
	for i := range spec.Transports {
		transports = append(transports, declaredTransport(&spec.Transports[i], spec.Redelivery))
	}
	return redelivery.Require(transports)
}

func declaredTransport(transport *v1alpha1.Transport, common v1alpha1.RedeliverySpec) redelivery.Transport {
	own := transport.Redelivery
	if own == nil {
		own = &v1alpha1.TransportRedelivery{}
	}
	return redelivery.Transport{
		Name:                 string(transport.Name),
		Type:                 redelivery.Type(transport.Type),
		Path:                 fmt.Sprintf("spec.transports[%s]", transport.Name),
		Inbox:                transport.Inbox,
		BatchHandlers:        transport.BatchHandlers,
		Outbox:               string(transport.Outbox),
		FailureTransport:     string(transport.FailureTransport),
		Window:               setting(own.Window),
		RedeliverTimeout:     setting(own.RedeliverTimeout),
		CheckDelayedInterval: setting(own.CheckDelayedInterval),
		ClaimInterval:        setting(own.ClaimInterval),
		MaxPending:           count(own.MaxPending),
		ConsumerTimeout:      setting(own.ConsumerTimeout),
		Heartbeat:            setting(own.Heartbeat),
		VisibilityTimeout:    setting(own.VisibilityTimeout),
		TTR:                  setting(own.TTR),
		Retry:                retryStrategy(own.RetryStrategy),
		MaxAge:               setting(own.MaxAge),
		LostAcks:             countOr(own.LostAcks, common.LostAcks, defaultRedelivery.LostAcks),
		MaxDowntime:          settingOr(own.MaxDowntime, common.MaxDowntime, defaultRedelivery.MaxDowntime),
		ReplayWindow:         settingOr(own.ReplayWindow, common.ReplayWindow, defaultRedelivery.ReplayWindow),
		MaxHandlerTime:       settingOr(own.MaxHandlerTime, common.MaxHandlerTime, defaultRedelivery.MaxHandlerTime),
		MaxWorkerHang:        settingOr(own.MaxWorkerHang, common.MaxWorkerHang, defaultRedelivery.MaxWorkerHang),
	}
}

func retryStrategy(declared *v1alpha1.RetryStrategy) redelivery.RetryStrategy {
	if declared == nil {
		return redelivery.RetryStrategy{}
	}
	return redelivery.RetryStrategy{
		Service:    declared.Service,
		MaxTotal:   setting(declared.MaxTotal),
		MaxRetries: count(declared.MaxRetries),
		Delay:      setting(declared.Delay),
		MaxDelay:   setting(declared.MaxDelay),
		Multiplier: ratio(declared.Multiplier),
		Jitter:     ratio(declared.Jitter),
	}
}

func setting(declared *v1alpha1.Duration) redelivery.Setting {
	if declared == nil {
		return redelivery.Setting{}
	}
	return redelivery.Declared(declared.Duration.Duration)
}

// defaultRedelivery holds the CRD's defaults of spec.redelivery; a test compares the two.
var defaultRedelivery = v1alpha1.RedeliverySpec{
	MaxDowntime:    v1alpha1.Duration{Duration: metav1.Duration{Duration: 24 * time.Hour}},
	LostAcks:       1,
	MaxHandlerTime: v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Minute}},
	MaxWorkerHang:  v1alpha1.Duration{Duration: metav1.Duration{Duration: 2 * time.Hour}},
}

// settingOr takes the transport's own value, else the resource's. The CRD stores its
// defaults in the resource, so a value that equals the default counts as one.
func settingOr(own *v1alpha1.Duration, common, byDefault v1alpha1.Duration) redelivery.Setting {
	if own != nil {
		return setting(own)
	}
	merged := setting(&common)
	if common == byDefault {
		merged.Origin = redelivery.OriginDefault
	}
	return merged
}

func count(declared *int32) redelivery.Count {
	if declared == nil {
		return redelivery.Count{}
	}
	return redelivery.DeclaredCount(int64(*declared))
}

func countOr(own *int32, common, byDefault int32) redelivery.Count {
	if own != nil {
		return count(own)
	}
	merged := count(&common)
	if common == byDefault {
		merged.Origin = redelivery.OriginDefault
	}
	return merged
}

// RetentionStatus compares the declared period with the requirement.
func RetentionStatus(spec *v1alpha1.MessagingInboxSpec, requirement redelivery.Requirement) *v1alpha1.RetentionStatus {
	status := &v1alpha1.RetentionStatus{
		Effective:         &metav1.Duration{Duration: effectivePeriod(spec.Retention)},
		DecidingTransport: requirement.Deciding,
	}
	margin := int64(spec.Retention.MarginPercent)
	if requirement.Bounded {
		status.Required = &metav1.Duration{Duration: requirement.Required}
	}
	if withMargin, bounded := requirement.WithMargin(margin); bounded {
		status.RequiredWithMargin = &metav1.Duration{Duration: withMargin}
	}
	if recommended, bounded := requirement.Recommended(margin); bounded {
		status.Recommended = &metav1.Duration{Duration: recommended}
	}
	return status
}

// TransportStatuses shows each transport's window with its terms.
func TransportStatuses(requirement redelivery.Requirement) []v1alpha1.TransportStatus {
	statuses := make([]v1alpha1.TransportStatus, 0, len(requirement.Windows))
	for _, window := range requirement.Windows {
		status := v1alpha1.TransportStatus{
			Name:       window.Transport,
			Covered:    window.Covered,
			Undeclared: window.Undeclared,
		}
		if window.Bounded {
			status.Window = &metav1.Duration{Duration: window.Duration}
		}
		for _, term := range window.Terms {
			status.Terms = append(status.Terms, v1alpha1.WindowTerm{
				Name: term.Name, Value: metav1.Duration{Duration: term.Value}, Origin: string(term.Origin),
			})
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// ratio keeps a quantity exact: a quantity is never finer than a billionth.
func ratio(declared *resource.Quantity) *redelivery.Ratio {
	if declared == nil {
		return nil
	}
	exact := redelivery.Ratio(declared.ScaledValue(resource.Nano))
	return &exact
}
