package redelivery

import (
	"math/bits"
	"time"
)

// Requirement is what all transports together ask of the retention.
type Requirement struct {
	// Windows of all transports, in their order.
	Windows []Window
	// Bounded is false when the window of a covered transport is unbounded.
	Bounded bool
	// Required is the largest window of the covered transports; 0 when none is covered, and when it is unbounded.
	Required time.Duration
	// Deciding is the covered transport with the largest window, the first of several;
	// the first unbounded one when there is one; "" when none is covered.
	Deciding string
	// Undeclared are the fields to declare to make the requirement bounded.
	Undeclared []string
}

// Require works out the window of each transport, and what they require together.
func Require(transports []Transport) Requirement {
	byName := make(map[string]Transport, len(transports))
	for _, t := range transports {
		byName[t.Name] = t
	}
	r := Requirement{Bounded: true}
	for _, t := range transports {
		w := windowOf(t, byName)
		r.Windows = append(r.Windows, w)
		if w.Covered {
			r.include(w)
		}
	}
	return r
}

func (r *Requirement) include(w Window) {
	r.Undeclared = appendNew(r.Undeclared, w.Undeclared...)
	switch {
	case !r.Bounded:
	case !w.Bounded:
		r.Bounded, r.Required, r.Deciding = false, 0, w.Transport
	case r.Deciding == "" || w.Duration > r.Required:
		r.Required, r.Deciding = w.Duration, w.Transport
	}
}

// WithMargin is the required window and so many percent of it more, rounded up to a
// nanosecond; false when it is unbounded. A negative percentage counts as 0.
func (r Requirement) WithMargin(percent int64) (time.Duration, bool) {
	high, low := bits.Mul64(unsigned(r.Required), unsigned(max(percent, 0))+100)
	low, carry := bits.Add64(low, 99, 0)
	high += carry
	if !r.Bounded || high >= 100 {
		return 0, false
	}
	total, _ := bits.Div64(high, low, 100)
	if total >= overflow {
		return 0, false
	}
	return time.Duration(total), true
}

// Recommended is WithMargin rounded up to whole hours; false when it is unbounded.
func (r Requirement) Recommended(percent int64) (time.Duration, bool) {
	total, bounded := r.WithMargin(percent)
	recommended := roundedUp(total, time.Hour)
	if !bounded || recommended == overflow {
		return 0, false
	}
	return recommended, true
}

// roundedUp is the next multiple of the step, or overflow.
func roundedUp(d, step time.Duration) time.Duration {
	if d%step == 0 {
		return d
	}
	return add(d-d%step, step)
}

// Protects says that a retention of this effective period keeps every proof for the
// required window and the margin. No period protects when the window is unbounded.
func Protects(effective time.Duration, r Requirement, marginPercent int64) bool {
	needed, bounded := r.WithMargin(marginPercent)
	return bounded && effective >= needed
}
