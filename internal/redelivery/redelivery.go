package redelivery

// redelivery is R: the latest moment, after a commit whose acknowledgement was lost,
// at which a live worker gets the message again. The bounds of doctrine, redis
// and amqp are those that real Symfony workers kept; the documented ones were too small.
// The transport's type is one that redelivers.
func redelivery(t Transport) part {
	switch t.Type {
	case Doctrine:
		return known(t.RedeliverTimeout.or(DefaultRedeliverTimeout).
			plus(t.CheckDelayedInterval.or(DefaultCheckDelayedInterval)).
			plus(byDefault(pollingSlack)))
	case Redis:
		// Only the oldest pending entry is claimed, once per interval, so a slow head
		// holds up all that are pending behind it, also while workers are idle.
		oneEntry := t.ClaimInterval.or(DefaultClaimInterval).plus(t.MaxHandlerTime.or(DefaultMaxHandlerTime))
		return known(t.RedeliverTimeout.or(DefaultRedeliverTimeout).
			plus(oneEntry.times(t.MaxPending.or(DefaultMaxPending))))
	case AMQP:
		// Symfony rejects what RabbitMQ redelivers and sends it again through the retry
		// strategy: handlers see it one retry delay later.
		return known(connectionLoss(t)).plus(firstRetryDelay(t))
	case SQS:
		return known(t.VisibilityTimeout.or(DefaultVisibilityTimeout))
	case Beanstalkd:
		return known(t.TTR.or(DefaultTTR))
	default:
		return unknown(windowField(t))
	}
}

// connectionLoss is how long RabbitMQ can keep a message for a hung or cut-off worker.
// Without a heartbeat only the worker's death is certain to release it: when
// consumer_timeout closes a channel, what was fetched with basic.get stays unacknowledged.
func connectionLoss(t Transport) Setting {
	heartbeat := t.Heartbeat.or(DefaultHeartbeat)
	if heartbeat.Value > 0 {
		return heartbeat.times(byDefault(missedHeartbeats))
	}
	consumerTimeout := t.ConsumerTimeout.or(DefaultConsumerTimeout).plus(byDefault(consumerTimeoutSlack))
	workerHang := t.MaxWorkerHang.or(DefaultMaxWorkerHang)
	if consumerTimeout.Value > workerHang.Value {
		return consumerTimeout
	}
	return workerHang
}

func windowField(t Transport) string { return t.Path + ".redelivery.window" }
