package redelivery

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	anyDuration = rapid.OneOf(
		rapid.Just[time.Duration](0),
		rapid.Map(rapid.Int64Range(0, 1_000_000), func(n int64) time.Duration { return time.Duration(n) * time.Second }),
		rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }),
	)
	anyCount = rapid.OneOf(rapid.Int64Range(0, 40), rapid.Int64())
	anyRatio = rapid.OneOf(rapid.Map(rapid.Int64Range(0, 40), func(n int64) Ratio { return Ratio(n) * One / 8 }), rapid.Map(rapid.Int64(), func(n int64) Ratio { return Ratio(n) }))
	anyType  = rapid.SampledFrom([]Type{AMQP, Doctrine, Redis, SQS, Beanstalkd, Sync, InMemory, Custom})
	setBy    = rapid.SampledFrom([]Origin{"", OriginDSN, OriginDeclared, OriginObserved})
)

func settings(t *Transport) map[string]*Setting {
	return map[string]*Setting{
		"window": &t.Window, "redeliverTimeout": &t.RedeliverTimeout, "checkDelayedInterval": &t.CheckDelayedInterval,
		"claimInterval": &t.ClaimInterval, "consumerTimeout": &t.ConsumerTimeout, "heartbeat": &t.Heartbeat,
		"visibilityTimeout": &t.VisibilityTimeout, "ttr": &t.TTR, "maxTotal": &t.Retry.MaxTotal, "delay": &t.Retry.Delay,
		"maxDelay": &t.Retry.MaxDelay, "maxAge": &t.MaxAge, "maxDowntime": &t.MaxDowntime, "replayWindow": &t.ReplayWindow,
		"maxHandlerTime": &t.MaxHandlerTime, "maxWorkerHang": &t.MaxWorkerHang,
	}
}

func counts(t *Transport) map[string]*Count {
	return map[string]*Count{"maxPending": &t.MaxPending, "lostAcks": &t.LostAcks, "maxRetries": &t.Retry.MaxRetries}
}

var (
	settingNames = []string{
		"window", "redeliverTimeout", "checkDelayedInterval", "claimInterval", "consumerTimeout", "heartbeat",
		"visibilityTimeout", "ttr", "maxTotal", "delay", "maxDelay", "maxAge", "maxDowntime", "replayWindow",
		"maxHandlerTime", "maxWorkerHang",
	}
	countNames = []string{"maxPending", "lostAcks", "maxRetries"}
)

func drawTransport(t *rapid.T, name string) Transport {
	transport := at(name, Transport{Type: anyType.Draw(t, name+" type")})
	for _, field := range settingNames {
		// A declared window hides all else: most transports have none.
		if field != "window" || rapid.IntRange(0, 9).Draw(t, name+" has a window") == 0 {
			*settings(&transport)[field] = Setting{Value: anyDuration.Draw(t, name+" "+field), Origin: setBy.Draw(t, name+" "+field+" origin")}
		}
	}
	for _, field := range countNames {
		*counts(&transport)[field] = Count{Value: anyCount.Draw(t, name+" "+field), Origin: setBy.Draw(t, name+" "+field+" origin")}
	}
	if rapid.Bool().Draw(t, name+" has ratios") {
		transport.Retry.Multiplier = new(anyRatio.Draw(t, name+" multiplier"))
		transport.Retry.Jitter = new(anyRatio.Draw(t, name+" jitter"))
	}
	transport.Retry.Service = rapid.SampledFrom([]string{"", "", "app.retry"}).Draw(t, name+" service")
	transport.Outbox = rapid.SampledFrom([]string{"", "a", "b", "c", "nowhere"}).Draw(t, name+" outbox")
	transport.FailureTransport = rapid.SampledFrom([]string{"", "a", "b", "c", "nowhere"}).Draw(t, name+" failureTransport")
	return transport
}

func drawTransports(t *rapid.T) []Transport {
	return []Transport{drawTransport(t, "a"), drawTransport(t, "b"), drawTransport(t, "c")}
}

func TestTermsAddUpAndNothingIsNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, w := range Require(drawTransports(t)).Windows {
			sum := sumOfTerms(t, w)
			if w.Bounded && (sum != w.Duration || len(w.Undeclared) > 0) {
				t.Fatalf("the terms add up to %v in %+v", sum, w)
			}
			if !w.Bounded && (w.Duration != 0 || len(w.Undeclared) == 0) {
				t.Fatalf("nothing to declare in %+v", w)
			}
		}
	})
}

// sumOfTerms also checks each term by itself.
func sumOfTerms(t *rapid.T, w Window) (sum time.Duration) {
	names := map[string]bool{}
	for _, term := range w.Terms {
		if term.Value < 0 || names[term.Name] || term.Origin == "" || term.Origin == OriginDefault && term.Value == 0 {
			t.Fatalf("term %+v of %+v", term, w)
		}
		sum += term.Value
		names[term.Name] = true
	}
	if sum < 0 {
		t.Fatalf("the sum is negative in %+v", w)
	}
	return sum
}

// Two settings mean something else at 0, and shorten the window when they leave it: a
// heartbeat of 0 is none, and so is a maxDelay of 0. They grow from more than that. And
// a ratio grows by more than the error of a float that its bound allows for.
func TestWindowNeverFallsWhenATermGrows(t *testing.T) {
	growing := slices.Concat([]string{"multiplier", "jitter"}, settingNames, countNames)
	rapid.Check(t, func(t *rapid.T) {
		before := drawTransports(t)
		which := rapid.IntRange(0, 2).Draw(t, "which transport grows")
		field := rapid.SampledFrom(growing).Draw(t, "what grows")
		declare(t, &before[which], field)
		after := slices.Clone(before)
		grow(&after[which], field, rapid.OneOf(rapid.Int64Range(0, int64(time.Hour)), rapid.Int64Range(0, 1<<62)).Draw(t, "growth"))

		from, to := Require(before), Require(after)
		for i := range from.Windows {
			if to.Windows[i].Bounded && (!from.Windows[i].Bounded || to.Windows[i].Duration < from.Windows[i].Duration) {
				t.Fatalf("%s of %s grew and the window fell from %+v to %+v", field, before[which].Name, from.Windows[i], to.Windows[i])
			}
		}
		if to.Bounded && (!from.Bounded || to.Required < from.Required) {
			t.Fatalf("the requirement fell from %+v to %+v", from, to)
		}
	})
}

// declare sets the field when it is not set, so that growth is not compared with a default.
func declare(t *rapid.T, transport *Transport, field string) {
	if setting, found := settings(transport)[field]; found {
		setting.Origin = OriginDeclared
		if field == "heartbeat" || field == "maxDelay" {
			setting.Value = max(setting.Value, 1)
		}
	}
	if count, found := counts(transport)[field]; found {
		count.Origin = OriginDeclared
	}
	if transport.Retry.Multiplier == nil {
		transport.Retry.Multiplier, transport.Retry.Jitter = new(anyRatio.Draw(t, "multiplier")), new(anyRatio.Draw(t, "jitter"))
	}
}

func grow(transport *Transport, field string, growth int64) {
	switch field {
	case "multiplier":
		transport.Retry.Multiplier = grown(transport.Retry.Multiplier, growth)
	case "jitter":
		transport.Retry.Jitter = grown(transport.Retry.Jitter, growth)
	default:
		if setting, found := settings(transport)[field]; found {
			setting.Value = add(max(setting.Value, 0), time.Duration(growth))
		}
		if count, found := counts(transport)[field]; found {
			count.Value = add(max(count.Value, 0), growth)
		}
	}
}

func grown(ratio *Ratio, growth int64) *Ratio {
	from := max(*ratio, 0)
	return new(add(from, max(Ratio(growth), from/100_000_000, 10)))
}
