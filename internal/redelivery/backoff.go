package redelivery

import "time"

// backoff is the slowest that Symfony's MultiplierRetryStrategy can be: its jitter always adds.
type backoff struct {
	retries    int64
	delay      uint64 // milliseconds
	limit      uint64 // milliseconds; 0 is none
	multiplier Ratio  // at least 1
	jitter     Ratio
	origin     Origin
}

// summedExactly is how many retries are summed one by one. Later ones are summed in steps
// of up to a thousandth of their number, each as often as its last and longest delay: an
// absurd strategy (a million growing delays) takes no time, and the sum is at most 3 % too large.
const summedExactly = 2048

// total is the sum of the delays of the first retries, overflow when it has no bound:
//
//	sum for k = 0 .. retries-1 of min(ceil(b + floor(b * jitter)), limit), b = delay * multiplier^k
func (b backoff) total(retries int64) Setting {
	return Setting{Value: b.sum(retries), Origin: b.origin}
}

func (b backoff) sum(retries int64) time.Duration {
	var sum time.Duration
	base := milliseconds{whole: b.delay}
	step, growth := int64(1), b.multiplier // the growth of one step
	for done := int64(0); done < retries && sum < overflow; {
		delay := b.longest(base)
		if b.staysAt(delay) {
			return add(sum, multiply(duration(delay), retries-done))
		}
		count := min(step, retries-done)
		sum = add(sum, multiply(duration(delay), count))
		done += count
		if done >= summedExactly*step {
			step, growth = 2*step, growth.squared()
		}
		base = base.times(growth)
	}
	return sum
}

// longest is the delay that starts from base, in milliseconds, with all of its jitter.
func (b backoff) longest(base milliseconds) uint64 {
	base = base.asFloat()
	delay := base.roundedUp() + base.times(b.jitter).asFloat().whole
	if b.limit > 0 {
		return min(delay, b.limit)
	}
	return delay
}

// staysAt says that every retry after one with this delay has the same delay.
func (b backoff) staysAt(delay uint64) bool {
	return b.multiplier == One || delay == 0 || delay == b.limit
}
