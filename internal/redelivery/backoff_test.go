package redelivery

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func delaysOf(strategy RetryStrategy) time.Duration {
	return strategyDelays(Transport{Type: AMQP, Retry: strategy}).known.Value
}

func TestBackoffSumsTheLongestDelays(t *testing.T) {
	const (
		half   = One / 2
		eighth = One / 8
	)
	tests := map[string]struct {
		strategy RetryStrategy
		want     time.Duration
	}{
		"the defaults of the framework":                  {RetryStrategy{}, 7700 * time.Millisecond},
		"reference: 5 retries from 60 s":                 {RetryStrategy{MaxRetries: DeclaredCount(5), Delay: Declared(time.Minute), Multiplier: new(2 * One), Jitter: new(One / 10)}, 2046 * time.Second},
		"reference: no retries":                          {RetryStrategy{MaxRetries: DeclaredCount(0)}, 0},
		"a negative number of retries is none":           {RetryStrategy{MaxRetries: DeclaredCount(-1)}, 0},
		"one retry":                                      {RetryStrategy{MaxRetries: DeclaredCount(1)}, 1100 * time.Millisecond},
		"no delay":                                       {RetryStrategy{MaxRetries: DeclaredCount(1_000_000), Delay: Declared(0), MaxDelay: Declared(time.Hour)}, 0},
		"no jitter":                                      {RetryStrategy{Jitter: new(Ratio(0))}, 7 * time.Second},
		"a negative jitter is none":                      {RetryStrategy{Jitter: new(-half)}, 7 * time.Second},
		"full jitter doubles":                            {RetryStrategy{Jitter: new(One)}, 14 * time.Second},
		"the jitter is whole milliseconds, rounded down": {RetryStrategy{MaxRetries: DeclaredCount(1), Delay: Declared(19 * time.Millisecond)}, 20 * time.Millisecond},
		"the delay is whole milliseconds, rounded up":    {RetryStrategy{MaxRetries: DeclaredCount(1), Delay: Declared(time.Millisecond + time.Nanosecond)}, 2 * time.Millisecond},
		"a fractional delay is rounded up":               {RetryStrategy{MaxRetries: DeclaredCount(2), Delay: Declared(time.Millisecond), Multiplier: new(One + half), Jitter: new(Ratio(0))}, 3 * time.Millisecond},
		"multiplier 1.5 is exact":                        {RetryStrategy{Multiplier: new(One + half), Jitter: new(Ratio(0))}, 4750 * time.Millisecond},
		"multiplier 1.125 is exact":                      {RetryStrategy{Multiplier: new(One + eighth), Jitter: new(Ratio(0)), Delay: Declared(512 * time.Millisecond)}, 1736 * time.Millisecond},
		"multiplier 1.1: PHP makes 1210 ms 1211 ms":      {RetryStrategy{Multiplier: new(One + One/10), Jitter: new(Ratio(0))}, (1000 + 1101 + 1211) * time.Millisecond},
		"jitter 0.125 is exact":                          {RetryStrategy{Jitter: new(eighth)}, 7875 * time.Millisecond},
		"a multiplier below 1 counts as 1":               {RetryStrategy{Multiplier: new(half), Jitter: new(Ratio(0))}, 3 * time.Second},
		"a million equal delays":                         {RetryStrategy{MaxRetries: DeclaredCount(1_000_000), Multiplier: new(One)}, 1_100_000 * time.Second},
		"maxDelay caps after the jitter":                 {RetryStrategy{MaxDelay: Declared(2100 * time.Millisecond)}, (1100 + 2100 + 2100) * time.Millisecond},
		"maxDelay below the first delay":                 {RetryStrategy{MaxDelay: Declared(time.Second)}, 3 * time.Second},
		"maxDelay makes a million retries finite":        {RetryStrategy{MaxRetries: DeclaredCount(1_000_000), MaxDelay: Declared(1100 * time.Millisecond)}, 1_100_000 * time.Second},
		"a million delays of 1 ms that hardly grow":      {RetryStrategy{MaxRetries: DeclaredCount(1_000_000), Delay: Declared(time.Millisecond), Multiplier: new(One + 1), Jitter: new(Ratio(0))}, 1_999_999 * time.Millisecond},
		"maxDelay caps what overflowed":                  {RetryStrategy{MaxRetries: DeclaredCount(2), Multiplier: new(Ratio(math.MaxInt64)), Delay: Declared(math.MaxInt64), MaxDelay: Declared(time.Hour)}, 2 * time.Hour},
		"the largest delay that fits":                    {RetryStrategy{MaxRetries: DeclaredCount(1), Jitter: new(Ratio(0)), Delay: Declared(9_223_372_036_854 * time.Millisecond)}, 9_223_372_036_854 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := delaysOf(test.strategy); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestBackoffWithoutABoundAsksForMaxDelay(t *testing.T) {
	tests := map[string]RetryStrategy{
		"doubling for 60 retries":      {MaxRetries: DeclaredCount(60)},
		"the largest numbers":          {MaxRetries: DeclaredCount(math.MaxInt64), Delay: Declared(math.MaxInt64), Multiplier: new(Ratio(math.MaxInt64)), Jitter: new(Ratio(math.MaxInt64))},
		"one delay too long":           {MaxRetries: DeclaredCount(1), Delay: Declared(math.MaxInt64)},
		"equal delays too often":       {MaxRetries: DeclaredCount(math.MaxInt64), Multiplier: new(One)},
		"the cap for too many retries": {MaxRetries: DeclaredCount(math.MaxInt64), MaxDelay: Declared(time.Hour)},
		"slow growth for ever":         {MaxRetries: DeclaredCount(math.MaxInt64), Delay: Declared(time.Millisecond), Multiplier: new(One + 1)},
		"a delay past all bounds":      {MaxRetries: DeclaredCount(3), Delay: Declared(24 * time.Hour), Multiplier: new(1_000_000 * One)},
	}
	for name, strategy := range tests {
		t.Run(name, func(t *testing.T) {
			got := strategyDelays(Transport{Type: Redis, Path: "spec.transports[orders]", Retry: strategy})
			if len(got.missing) != 1 || got.missing[0] != "spec.transports[orders].redelivery.retryStrategy.maxDelay" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A fraction of all ones carries into the whole milliseconds, upwards.
func TestMillisecondsCarryTheirRounding(t *testing.T) {
	got := milliseconds{whole: 1, fraction: math.MaxUint64}.times(One / 2)
	if (got != milliseconds{whole: 1, inexact: true}) {
		t.Errorf("got %+v", got)
	}
	got = milliseconds{whole: 2, fraction: math.MaxUint64}.times(One - 1)
	if got.whole != 2 || got.roundedUp() != 3 {
		t.Errorf("got %+v", got)
	}
	// A billionth of the last bit is less than a fraction holds, and still counts.
	if got = (milliseconds{fraction: 1}).times(1); got.fraction != 1 || got.roundedUp() != 1 {
		t.Errorf("got %+v", got)
	}
}

// simulate is Symfony's getWaitingTime as PHP computes it, in floats, with the largest jitter.
func simulate(retries, delay int64, multiplier float64, maxDelay int64, jitter float64) (sum float64) {
	for k := range retries {
		wait := float64(delay) * math.Pow(multiplier, float64(k))
		if jitter > 0 {
			wait += math.Floor(math.Min(math.MaxInt64, wait*jitter))
		}
		if maxDelay != 0 && wait > float64(maxDelay) {
			wait = float64(maxDelay)
		}
		sum += math.Ceil(wait)
	}
	return sum
}

func TestBackoffBoundsSymfonysFloats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Steps of all sizes, so that neat and odd ratios are both tried.
		step := rapid.SampledFrom([]Ratio{1, 1000, One / 128, One / 100, One / 10, One / 8, One / 4, One / 2, One})
		ratioUpTo := func(label string, low, high Ratio) Ratio {
			s := step.Draw(t, label+" step")
			return low + s*Ratio(rapid.Int64Range(0, int64((high-low)/s)).Draw(t, label))
		}
		retries := rapid.Int64Range(0, 200).Draw(t, "retries")
		delay := rapid.Int64Range(0, 100_000).Draw(t, "delay")
		multiplier := ratioUpTo("multiplier", One, rapid.SampledFrom([]Ratio{One + One/50, 3 * One, 1000 * One}).Draw(t, "high"))
		jitter := ratioUpTo("jitter", 0, One)
		maxDelay := rapid.SampledFrom([]int64{0, 1, 999, 60_000, 86_400_000}).Draw(t, "maxDelay")

		bound := delaysOf(RetryStrategy{
			MaxRetries: DeclaredCount(retries), Delay: Declared(time.Duration(delay) * time.Millisecond),
			MaxDelay: Declared(time.Duration(maxDelay) * time.Millisecond), Multiplier: &multiplier, Jitter: &jitter,
		})
		sum := simulate(retries, delay, float64(multiplier)/float64(One), maxDelay, float64(jitter)/float64(One))
		if sum > 9e12 { // milliseconds in a time.Duration
			return
		}
		got := float64(bound / time.Millisecond)
		if got < sum {
			t.Fatalf("bound %.0f ms is below the %.0f ms that Symfony waits", got, sum)
		}
		if excess := got - sum; excess > 2*float64(retries)+sum*1e-8 {
			t.Fatalf("bound %.0f ms is far above the %.0f ms that Symfony waits", got, sum)
		}
	})
}

func TestBackoffOfVeryManyRetriesIsAtMostThreePercentTooLong(t *testing.T) {
	for _, retries := range []int64{2047, 2048, 2049, 4096, 50_001, 1_000_000} {
		for _, multiplier := range []Ratio{One + 1, One + 1000, One + 10_000, One + One/10_000, One + One/1000, One + One/100} {
			for _, maxDelay := range []int64{0, 50_000} {
				bound := delaysOf(RetryStrategy{
					MaxRetries: DeclaredCount(retries), Multiplier: &multiplier,
					MaxDelay: Declared(time.Duration(maxDelay) * time.Millisecond),
				})
				sum := simulate(retries, 1000, float64(multiplier)/float64(One), maxDelay, 0.1)
				if sum > 8e12 {
					continue
				}
				got := float64(bound / time.Millisecond)
				if got < sum || got > sum*1.03+2*float64(retries) {
					t.Errorf("%d retries, multiplier %d, maxDelay %d: got %.0f ms, Symfony waits %.0f ms", retries, multiplier, maxDelay, got, sum)
				}
			}
		}
	}
}
