package redelivery

// retryDelays is D: the longest that its retry strategy can delay one message in all,
// and what the transport adds to each of the delays. The transport's type is one that redelivers.
func retryDelays(t Transport) part {
	switch t.Type {
	case Doctrine:
		return strategyDelays(t).plus(delayedWakeUps(t))
	case AMQP, Redis, SQS, Beanstalkd:
		return strategyDelays(t)
	default:
		return unknown(windowField(t)) // nobody knows how an unknown broker keeps a delay
	}
}

func strategyDelays(t Transport) part {
	if t.Retry.Service != "" {
		return serviceDelays(t)
	}
	slowest := backoffOf(t)
	total := slowest.total(slowest.retries)
	if total.Value == overflow {
		return unknown(retryField(t, "maxDelay"))
	}
	return known(total)
}

// firstRetryDelay is part of R on amqp. Without retries there is none: what is
// redelivered goes to the failure transport at once.
func firstRetryDelay(t Transport) part {
	if t.Retry.Service != "" {
		return serviceDelays(t)
	}
	slowest := backoffOf(t)
	return known(slowest.total(min(slowest.retries, 1)))
}

func serviceDelays(t Transport) part {
	if !t.Retry.MaxTotal.IsSet() {
		return unknown(retryField(t, "maxTotal"))
	}
	return known(t.Retry.MaxTotal.or(0))
}

// delayedWakeUps is what doctrine on PostgreSQL adds to the delays: nothing notifies a
// worker when a delayed message is due, so each retry can wait for one more periodic check.
func delayedWakeUps(t Transport) part {
	interval := t.CheckDelayedInterval.or(DefaultCheckDelayedInterval)
	if interval.Value == 0 {
		return known(interval)
	}
	if t.Retry.Service != "" && !t.Retry.MaxRetries.IsSet() {
		return unknown(retryField(t, "maxRetries"))
	}
	retries := t.Retry.MaxRetries.or(DefaultMaxRetries)
	return known(interval.plus(byDefault(pollingSlack)).times(retries))
}

func retryField(t Transport, field string) string {
	return t.Path + ".redelivery.retryStrategy." + field
}

func backoffOf(t Transport) backoff {
	retries := t.Retry.MaxRetries.or(DefaultMaxRetries)
	delay := t.Retry.Delay.or(DefaultDelay)
	maxDelay := t.Retry.MaxDelay.or(DefaultMaxDelay)
	multiplier := ratio(t.Retry.Multiplier, DefaultMultiplier)
	jitter := ratio(t.Retry.Jitter, DefaultJitter)

	limit := maxDelay.Value
	if t.Type == SQS && (limit == 0 || limit > MaxSQSDelay) {
		limit = MaxSQSDelay
	}
	return backoff{
		retries:    retries.Value,
		delay:      wholeMilliseconds(delay.Value),
		limit:      wholeMilliseconds(limit),
		multiplier: max(multiplier.Value, One),
		jitter:     jitter.Value,
		origin:     mostInformative(retries.Origin, delay.Origin, maxDelay.Origin, multiplier.Origin, jitter.Origin),
	}
}

func ratio(declared *Ratio, fallback Ratio) Sourced[Ratio] {
	if declared == nil {
		return byDefault(fallback)
	}
	return Sourced[Ratio]{Value: *declared, Origin: OriginDeclared}.or(fallback)
}
