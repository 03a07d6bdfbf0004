package redelivery

import (
	"math/bits"
	"time"
)

// milliseconds is an exact number as long as a binary fraction can hold it, and is
// rounded upwards from then on. Symfony computes a delay in PHP's floats; asFloat
// bounds what it gets.
type milliseconds struct {
	whole    uint64
	fraction uint64 // in units of 2^-64
	inexact  bool   // a ratio or a product was one that no binary fraction holds
}

// tooLong stands for all numbers from there on: far beyond any time.Duration, and
// low enough that two of them can be added.
const tooLong = 1 << 61

// floatError is more than a float can stray upwards in all. The float of a
// multiplier is up to 2^-53 of itself too large, its power (of at most a million
// retries, which the CRD allows) up to 2^-33, and power and product round once more.
const floatError Ratio = 1

// asFloat is the largest number that PHP can have in place of m. A whole number
// that was reached without rounding is the same there.
func (m milliseconds) asFloat() milliseconds {
	if m.inexact || m.fraction > 0 {
		return m.times(One + floatError)
	}
	return m
}

// times multiplies by a ratio that is not negative.
func (m milliseconds) times(ratio Ratio) milliseconds {
	top, middle := bits.Mul64(m.whole, unsigned(ratio))
	carried, low := bits.Mul64(m.fraction, unsigned(ratio))
	middle, carry := bits.Add64(middle, carried, 0)
	top += carry
	if top >= unsigned(One)/8 { // the quotient would be 2^64/8 or more
		return milliseconds{whole: tooLong}
	}
	whole, rest := bits.Div64(top, middle, unsigned(One))
	fraction, rest := bits.Div64(rest, low, unsigned(One))
	if rest > 0 {
		fraction, carry = bits.Add64(fraction, 1, 0)
		whole += carry
	}
	return milliseconds{whole: whole, fraction: fraction, inexact: m.inexact || rest > 0 || !ratio.isBinary()}
}

func (m milliseconds) roundedUp() uint64 {
	if m.fraction > 0 {
		return m.whole + 1
	}
	return m.whole
}

// isBinary says that a binary fraction holds the ratio: One is 2^9 * 5^9, so the
// ratio must have all of those fives.
func (r Ratio) isBinary() bool { return r%1_953_125 == 0 }

// squared is rounded up to a billionth.
func (r Ratio) squared() Ratio {
	return Ratio(milliseconds{whole: unsigned(r)}.times(r).roundedUp()) //nolint:gosec // times ends at tooLong
}

func wholeMilliseconds(d time.Duration) uint64 {
	return (unsigned(d) + 999_999) / 1_000_000
}

func duration(milliseconds uint64) time.Duration {
	if milliseconds > overflow/1_000_000 {
		return overflow
	}
	return time.Duration(milliseconds) * time.Millisecond
}

// unsigned takes a value that is not negative, as all of this package are.
func unsigned[T ~int64](value T) uint64 {
	return uint64(value)
}
