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

// maxSummed is how many different delays are summed one by one: as many retries as the CRD accepts.
const maxSummed = 1_000_000

// total is the sum of the delays of the first retries, overflow when it has no bound:
//
//	sum for k = 0 .. retries-1 of min(ceil(b + floor(b * jitter)), limit), b = delay * multiplier^k
func (b backoff) total(retries int64) Setting {
	return Setting{Value: b.sum(retries), Origin: b.origin}
}

func (b backoff) sum(retries int64) time.Duration {
	var sum time.Duration
	base := milliseconds{whole: b.delay}
	for left := retries; left > 0 && sum < overflow; left-- {
		delay := b.longest(base)
		if b.staysAt(delay) {
			return add(sum, multiply(duration(delay), left))
		}
		if retries-left == maxSummed {
			return add(sum, multiply(b.longestOfAll(), left))
		}
		sum = add(sum, duration(delay))
		base = base.times(b.multiplier)
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

func (b backoff) longestOfAll() time.Duration {
	if b.limit == 0 {
		return overflow
	}
	return duration(b.limit)
}
