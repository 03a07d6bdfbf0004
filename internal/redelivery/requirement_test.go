package redelivery

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"
)

func lasting(name string, window time.Duration) Transport {
	return at(name, Transport{Type: Custom, Window: Declared(window)})
}

func TestRequireTakesTheLargestWindowOfTheCovered(t *testing.T) {
	uncovered := lasting("mail", 100*hour)
	uncovered.Inbox = false
	batched := lasting("batch", 100*hour)
	batched.BatchHandlers = true
	unknown := at("kafka", Transport{Type: Custom})
	unknownToo := at("pubsub", Transport{Type: Custom})
	unknownUncovered := at("events", Transport{Type: Custom})
	unknownUncovered.Inbox = false
	failing := func(name string) Transport {
		return at(name, Transport{Type: AMQP, FailureTransport: "failed"})
	}
	failed := at("failed", Transport{Type: SQS})

	tests := map[string]struct {
		transports []Transport
		bounded    bool
		required   time.Duration
		deciding   string
		undeclared []string
	}{
		"none":                         {nil, true, 0, "", nil},
		"none covered":                 {[]Transport{uncovered, batched, unknownUncovered}, true, 0, "", nil},
		"one":                          {[]Transport{lasting("a", hour)}, true, hour, "a", nil},
		"the largest":                  {[]Transport{lasting("a", hour), lasting("b", 3*hour), lasting("c", 2*hour)}, true, 3 * hour, "b", nil},
		"the first of equals":          {[]Transport{lasting("a", hour), lasting("b", hour)}, true, hour, "a", nil},
		"the first of empty ones":      {[]Transport{at("now", Transport{Type: Sync}), lasting("a", 0)}, true, 0, "now", nil},
		"the covered only":             {[]Transport{uncovered, batched, unknownUncovered, lasting("a", hour)}, true, hour, "a", nil},
		"unbounded decides":            {[]Transport{lasting("a", hour), unknown, unknownToo, lasting("b", 2*hour)}, false, 0, "kafka", []string{"spec.transports[kafka].redelivery.window", "spec.transports[pubsub].redelivery.window"}},
		"a shared cause is named once": {[]Transport{failing("a"), failing("b"), failed}, false, 0, "a", []string{"spec.transports[failed].redelivery.maxAge"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Require(test.transports)
			if r.Bounded != test.bounded || r.Required != test.required || r.Deciding != test.deciding || !slices.Equal(r.Undeclared, test.undeclared) {
				t.Errorf("got %+v", r)
			}
			for i, transport := range test.transports {
				if w := r.Windows[i]; w.Transport != transport.Name || w.Covered != (transport.Inbox && !transport.BatchHandlers) {
					t.Errorf("window %d is %+v, want that of %s", i, w, transport.Name)
				}
			}
		})
	}
}

func TestMarginAndRecommendation(t *testing.T) {
	const never = -1
	tests := map[string]struct {
		required                time.Duration
		percent                 int64
		withMargin, recommended time.Duration
	}{
		"no margin":                           {2 * hour, 0, 2 * hour, 2 * hour},
		"ten percent":                         {10 * hour, 10, 11 * hour, 11 * hour},
		"rounded up to whole hours":           {25 * hour, 10, 27*hour + 30*minute, 28 * hour},
		"rounded up to a nanosecond":          {time.Duration(1), 10, time.Duration(2), hour},
		"a negative margin is none":           {2 * hour, -50, 2 * hour, 2 * hour},
		"nothing required":                    {0, 1000, 0, 0},
		"ten times":                           {hour, 1000, 11 * hour, 11 * hour},
		"the largest that fits":               {math.MaxInt64 - 1, 0, math.MaxInt64 - 1, never},
		"the margin overflows":                {math.MaxInt64 - 1, 1, never, never},
		"the margin overflows much":           {math.MaxInt64 - 1, math.MaxInt64, never, never},
		"the largest margin of a nanosecond":  {time.Duration(1), math.MaxInt64, math.MaxInt64/100 + 2, 25621 * hour},
		"twice as much still fits":            {math.MaxInt64 / 2, 100, math.MaxInt64 - 1, never},
		"the sum is the sentinel of overflow": {math.MaxInt64, 0, never, never},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Requirement{Bounded: true, Required: test.required}
			got, bounded := r.WithMargin(test.percent)
			if bounded != (test.withMargin != never) || bounded && got != test.withMargin {
				t.Errorf("WithMargin: got %d, %v; want %d", got, bounded, test.withMargin)
			}
			recommended, known := r.Recommended(test.percent)
			if known != (test.recommended != never) || known && recommended != test.recommended {
				t.Errorf("Recommended: got %v, %v; want %v", recommended, known, test.recommended)
			}
		})
	}
}

func TestProtects(t *testing.T) {
	r := Requirement{Bounded: true, Required: 100 * hour}
	tests := map[string]struct {
		effective   time.Duration
		requirement Requirement
		want        bool
	}{
		"exactly the window and its margin": {110 * hour, r, true},
		"a nanosecond less":                 {110*hour - 1, r, false},
		"more":                              {168 * hour, r, true},
		"unbounded":                         {math.MaxInt64, Requirement{}, false},
		"nothing required":                  {0, Requirement{Bounded: true}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Protects(test.effective, test.requirement, 10); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestUnboundedHasNoMarginAndNoRecommendation(t *testing.T) {
	r := Require([]Transport{at("kafka", Transport{Type: Custom})})
	if got, bounded := r.WithMargin(10); bounded || got != 0 {
		t.Errorf("WithMargin: got %v, %v", got, bounded)
	}
	if got, bounded := r.Recommended(10); bounded || got != 0 {
		t.Errorf("Recommended: got %v, %v", got, bounded)
	}
}

func manyTransports(retry RetryStrategy) []Transport {
	transports := []Transport{
		at("db_outbox", Transport{Type: Doctrine}),
		at("failed", Transport{Type: Doctrine, MaxAge: Declared(336 * hour)}),
	}
	for i := len(transports); i < 300; i++ {
		transports = append(transports, at("orders"+strconv.Itoa(i), Transport{Type: AMQP, Outbox: "db_outbox", FailureTransport: "failed", Retry: retry}))
	}
	return transports
}

func BenchmarkRequire300Transports(b *testing.B) {
	benchmarks := map[string]RetryStrategy{
		"defaults":           {},
		"a million retries":  {MaxRetries: DeclaredCount(1_000_000), MaxDelay: Declared(hour)},
		"a million summands": {MaxRetries: DeclaredCount(1_000_000), Multiplier: new(One + 1)},
	}
	for name, retry := range benchmarks {
		transports := manyTransports(retry)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if r := Require(transports); !r.Bounded {
					b.Fatal("unbounded")
				}
			}
		})
	}
}
