package importer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/messaginginbox/operator/internal/messenger"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// optionField is an option of a transport type, and the manifest's field for it.
type optionField struct {
	option string
	path   string
	unit   time.Duration
}

var optionFields = map[redelivery.Type][]optionField{
	redelivery.Doctrine:   {{"redeliver_timeout", "redelivery.redeliverTimeout", time.Second}, {"check_delayed_interval", checkDelayedInterval, time.Millisecond}},
	redelivery.Redis:      {{"redeliver_timeout", "redelivery.redeliverTimeout", time.Second}, {"claim_interval", "redelivery.claimInterval", time.Millisecond}},
	redelivery.AMQP:       {{"heartbeat", "redelivery.heartbeat", time.Second}},
	redelivery.SQS:        {{"visibility_timeout", "redelivery.visibilityTimeout", time.Second}},
	redelivery.Beanstalkd: {{"ttr", "redelivery.ttr", time.Second}},
}

const (
	checkDelayedInterval = "redelivery.checkDelayedInterval"
	retryStrategy        = "redelivery.retryStrategy."
)

// The largest values that the API accepts.
const (
	maxRetries    = 1_000_000
	maxMultiplier = 1000
)

func (d *declaring) declareRedelivery() error {
	switch d.transport.Type() {
	case redelivery.Sync, redelivery.InMemory:
		return nil
	}
	if all := d.transport.UnknownOptions; all.IsSet() {
		d.unknown("redelivery", all)
		d.unbounded = append(d.unbounded, "what options hold")
	}
	for _, field := range optionFields[d.transport.Type()] {
		if err := d.declareOption(field); err != nil {
			return err
		}
	}
	return d.declareRetryStrategy()
}

func (d *declaring) declareOption(field optionField) error {
	if field.path == checkDelayedInterval {
		// Without LISTEN a doctrine worker polls, so a delayed message waits for no notification.
		if notify, declared := d.transport.Option("use_notify"); declared && isOff(notify) {
			d.set(field.path, "0s", Text, notify.Field)
			return nil
		}
	}
	option, declared := d.transport.Option(field.option)
	if !declared {
		return nil
	}
	return d.setDuration(field.path, option.Field, field.unit)
}

// isOff is true for false in YAML and for false or 0 in a DSN. The text 'false' of
// options is true to PHP.
func isOff(option messenger.Option) bool {
	switch option.Field.Kind {
	case messenger.Bool:
		return !option.Field.IsTrue()
	case messenger.Text:
		return option.Queried() && slices.Contains([]string{"false", "0"}, option.Field.Text())
	}
	return false
}

// shownNumber quotes a number, and nothing else: the text may be a password that slipped.
func shownNumber(field messenger.Field) string {
	if _, err := strconv.ParseFloat(field.Text(), 64); err != nil {
		return " is no number"
	}
	return fmt.Sprintf(" is %q", field.Text())
}

func (d *declaring) setDuration(path string, source messenger.Field, unit time.Duration) error {
	if source.IsUnknown() {
		d.unknown(path, source)
		d.unbounded = append(d.unbounded, source.Key)
		return nil
	}
	duration, valid := source.Duration(unit)
	if !valid {
		return &messenger.Error{At: source.At, Message: fmt.Sprintf("%s%s: a number from 0 to 292 years was expected", source.Key, shownNumber(source))}
	}
	d.set(path, humanDuration(duration), Text, source)
	return nil
}

func (d *declaring) declareRetryStrategy() error {
	retry := d.transport.Retry
	if retry.Service.IsSet() {
		d.set(retryStrategy+"service", retry.Service.Value.String(), Text, retry.Service)
		d.note(retryStrategy+"maxTotal", retry.Service.At, "how long can all the delays of one message be together? The service %s decides it, and without a bound no proof can be pruned", messenger.Shown(retry.Service.Value.String()))
		return nil
	}
	if err := d.setNumber(retryStrategy+"maxRetries", retry.MaxRetries, Integer, maxRetries); err != nil {
		return err
	}
	if retry.Delay.IsSet() {
		if err := d.setDuration(retryStrategy+"delay", retry.Delay, time.Millisecond); err != nil {
			return err
		}
	}
	if err := d.setNumber(retryStrategy+"multiplier", retry.Multiplier, Text, maxMultiplier); err != nil {
		return err
	}
	if retry.MaxDelay.IsSet() {
		if err := d.setDuration(retryStrategy+"maxDelay", retry.MaxDelay, time.Millisecond); err != nil {
			return err
		}
	}
	return d.setNumber(retryStrategy+"jitter", retry.Jitter, Text, 1)
}

func (d *declaring) setNumber(path string, source messenger.Field, kind Kind, limit float64) error {
	if !source.IsSet() {
		return nil
	}
	if source.IsUnknown() {
		d.unknown(path, source)
		d.unbounded = append(d.unbounded, source.Key)
		return nil
	}
	number, err := strconv.ParseFloat(source.Text(), 64)
	if err != nil || number < 0 || number > limit {
		return &messenger.Error{At: source.At, Message: fmt.Sprintf("%s%s: a manifest holds 0 to %v", source.Key, shownNumber(source), limit)}
	}
	d.set(path, decimal(number), kind, source)
	return nil
}

// decimal keeps the nine digits that a quantity has.
func decimal(number float64) string {
	text := strconv.FormatFloat(number, 'f', 9, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// humanDuration is the shortest text of a duration: 1h, not 1h0m0s.
func humanDuration(duration time.Duration) string {
	text := duration.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
