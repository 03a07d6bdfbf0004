package messenger

import (
	"math"
	"strconv"
	"time"
)

// RetryStrategy is the retry_strategy of a transport. A field that is not set has the
// framework's default.
type RetryStrategy struct {
	Service    Field
	MaxRetries Field
	// Delay and MaxDelay are in milliseconds.
	Delay    Field
	MaxDelay Field
	// Multiplier is at least 1.
	Multiplier Field
	// Jitter is from 0 to 1.
	Jitter Field
}

var retryKeys = []string{"delay", "jitter", "max_delay", "max_retries", "multiplier", "service"}

// mergeRetryStrategy reads a map, or the name of a service alone.
func (l *loader) mergeRetryStrategy(strategy *RetryStrategy, path string, entry Entry) {
	if entry.Value.Kind == Text {
		strategy.Service = l.named(fieldOf(path, entry.Value))
		return
	}
	entries := normalize(l.children(path, entry))
	var service, others bool
	for _, child := range entries {
		field := l.scalar(path+"."+child.Key, child)
		switch child.Key {
		case "service":
			strategy.Service = l.named(field)
			service = field.IsSet()
			continue
		case "max_retries":
			strategy.MaxRetries = field
			l.atLeast(field, 0, true)
		case "delay":
			strategy.Delay = field
			l.atLeast(field, 0, true)
		case "max_delay":
			strategy.MaxDelay = field
			l.atLeast(field, 0, true)
		case "multiplier":
			strategy.Multiplier = field
			l.atLeast(field, 1, false)
		case "jitter":
			strategy.Jitter = field
			l.atLeast(field, 0, false)
			if number, err := strconv.ParseFloat(field.Text(), 64); err == nil && number > 1 {
				l.failures.add(field.At, "%s is %s; Symfony allows 0 to 1", field.Key, field.Text())
			}
		default:
			unknown := Unrecognized{Key: path + "." + Shown(child.Key), Place: "option of a retry strategy", Suggestion: resembling(child.Key, retryKeys)}
			l.failures.add(child.At, "%s", unknown)
			continue
		}
		others = others || field.IsSet()
	}
	if service && others {
		l.failures.add(entry.At, "%s has a service and other options: Symfony allows one or the other", path)
	}
}

// atLeast checks a number that is known.
func (l *loader) atLeast(field Field, minimum float64, whole bool) {
	if !field.IsSet() || field.IsUnknown() {
		return
	}
	number, err := strconv.ParseFloat(field.Text(), 64)
	switch {
	case err != nil || math.IsNaN(number) || math.IsInf(number, 0) || field.Kind == Bool:
		l.failures.add(field.At, "%s is not a number", field.Key) // the text may be a password that slipped
	case whole && number != math.Trunc(number):
		l.failures.add(field.At, "%s is %s; Symfony allows whole numbers only", field.Key, field.Text())
	case number < minimum:
		l.failures.add(field.At, "%s is %s; Symfony allows no less than %v", field.Key, field.Text(), minimum)
	}
}

// Duration converts a number of units. It is false when the field is not set, not
// known, not a number, negative, or longer than 292 years.
func (f Field) Duration(unit time.Duration) (time.Duration, bool) {
	number, err := strconv.ParseFloat(f.Text(), 64)
	if err != nil || math.IsNaN(number) || number < 0 || number*float64(unit) >= math.MaxInt64 {
		return 0, false
	}
	if whole, err := strconv.ParseInt(f.Text(), 10, 64); err == nil {
		return time.Duration(whole) * unit, true
	}
	return time.Duration(number * float64(unit)), true
}
