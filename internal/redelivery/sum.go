package redelivery

import (
	"math"
	"slices"
)

// overflow is where sums and products stop. A duration that reaches it is unbounded.
const overflow = math.MaxInt64

// add takes values that are not negative, and so returns none.
func add[T ~int64](a, b T) T {
	if a > overflow-b {
		return overflow
	}
	return a + b
}

// multiply takes values that are not negative, and so returns none.
func multiply[T ~int64](value T, times int64) T {
	if times > 0 && value > overflow/T(times) {
		return overflow
	}
	return value * T(times)
}

func (s Sourced[T]) plus(other Sourced[T]) Sourced[T] {
	return Sourced[T]{Value: add(s.Value, other.Value), Origin: mostInformative(s.Origin, other.Origin)}
}

func (s Sourced[T]) times(n Count) Sourced[T] {
	return Sourced[T]{Value: multiply(s.Value, n.Value), Origin: mostInformative(s.Origin, n.Origin)}
}

// part is a duration on its way into a window; it is known when no field is missing.
type part struct {
	known   Setting
	missing []string
}

func known(s Setting) part { return part{known: s} }

func unknown(field string) part { return part{missing: []string{field}} }

func (p part) plus(other part) part {
	return part{known: p.known.plus(other.known), missing: slices.Concat(p.missing, other.missing)}
}

func (p part) times(n Count) part {
	return part{known: p.known.times(n), missing: p.missing}
}
