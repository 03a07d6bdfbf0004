// Package schedule computes the ticks of a cron expression in a time zone.
//
// A tick is every minute whose reading on the zone's wall clock matches the
// expression. So a reading that a change to daylight saving time skips has no tick,
// and a reading that the change back repeats has two.
//
// Parsing is robfig/cron's. Its Next is not used: on the day of a change it left out
// ticks in Africa/Cairo, and did not go on in zones that the tests of this package step
// through, which would have the operator look at its resources in a loop.
package schedule

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // The operator's image has no time zone database of its own.

	"github.com/robfig/cron/v3"
)

// ReasonInvalidSchedule is the Reason of every Error.
const ReasonInvalidSchedule = "InvalidSchedule"

// horizon exceeds the longest gap between two ticks: 29 February is eight years away
// when a century's last year is not a leap year.
const horizon = 9 * 366 * 24 * time.Hour

// cronStar is the bit with which robfig/cron marks a field that was written as a star.
const cronStar = 1 << 63

// Error says which part of a schedule is wrong and what a right one looks like.
type Error struct {
	// Reason is ReasonInvalidSchedule.
	Reason string
	// Message is for the person who wrote the schedule.
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Schedule is a parsed cron expression with its time zone. It is immutable.
type Schedule struct {
	spec *cron.SpecSchedule
	zone *time.Location
}

// Parse reads a cron expression of five fields, or one of @yearly, @annually,
// @monthly, @weekly, @daily, @midnight and @hourly, whose times are read on the wall
// clock of the IANA time zone. An expression that never fires is an error. Errors are
// of type *Error.
func Parse(expression, timeZone string) (*Schedule, error) {
	zone, err := loadZone(timeZone)
	if err != nil {
		return nil, err
	}
	spec, err := parseExpression(expression)
	if err != nil {
		return nil, err
	}
	s := &Schedule{spec: spec, zone: zone}
	// Any start will do: what fires at all fires within the horizon.
	if s.Next(time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, invalid("the schedule %q never fires: no month has the day that it names; write for example \"0 3 1 * *\"", expression)
	}
	return s, nil
}

func loadZone(name string) (*time.Location, error) {
	// Go takes "" for UTC and "Local" for the zone of the process, which no resource can mean.
	if name == "" || name == "Local" {
		return nil, invalid("the time zone %q is not an IANA name; write for example UTC or Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, invalid("the time zone %q is unknown; write an IANA name, for example UTC or Europe/Berlin", name)
	}
	return zone, nil
}

func parseExpression(expression string) (*cron.SpecSchedule, error) {
	if strings.Contains(expression, "TZ=") {
		return nil, invalid("the schedule %q names a time zone; the time zone has its own field, so write only the five fields, for example \"*/15 * * * *\"", expression)
	}
	parsed, err := cron.ParseStandard(expression)
	if err != nil {
		return nil, invalid("the schedule %q is not a cron expression (%v); write five fields, for example \"*/15 * * * *\", or @hourly", expression, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, invalid("the schedule %q is an interval, which has no fixed ticks; write five fields, for example \"*/15 * * * *\"", expression)
	}
	return spec, nil
}

func invalid(format string, args ...any) *Error {
	return &Error{Reason: ReasonInvalidSchedule, Message: fmt.Sprintf(format, args...)}
}

// Next returns the first tick after the given time, in UTC. It is the zero time only
// for a schedule that never fires, which Parse refuses.
func (s *Schedule) Next(after time.Time) time.Time {
	t := after.In(s.zone)
	t = startOfMinute(t).Add(time.Minute)
	for limit := after.Add(horizon); !t.After(limit); {
		unit := s.mismatch(t)
		if unit == none {
			return t.UTC()
		}
		next := startOfNext(unit, t)
		// The clock's reading is only continuous up to the next change of the offset.
		if _, end := t.ZoneBounds(); !end.IsZero() && end.Before(next) {
			next = end
		}
		t = next
	}
	return time.Time{}
}

// Latest returns the last tick that is after the first time and not after now, in
// UTC, and whether there is one. Its work is bounded however long ago the first time is.
func (s *Schedule) Latest(after, now time.Time) (time.Time, bool) {
	t := startOfMinute(now.In(s.zone))
	if limit := now.Add(-horizon); after.Before(limit) {
		after = limit
	}
	for t.After(after) {
		unit := s.mismatch(t)
		if unit == none {
			return t.UTC(), true
		}
		last := startOf(unit, t).Add(-time.Minute)
		if start, _ := t.ZoneBounds(); !start.IsZero() && start.Add(-time.Minute).After(last) {
			last = start.Add(-time.Minute)
		}
		t = last
	}
	return time.Time{}, false
}

// unit is a part of the calendar.
type unit int

const (
	none unit = iota
	minute
	hour
	day
	month
)

// mismatch returns the largest unit in which t's wall clock does not match.
func (s *Schedule) mismatch(t time.Time) unit {
	switch {
	case s.spec.Month&(1<<uint(t.Month())) == 0:
		return month
	case !s.matchesDay(t):
		return day
	case s.spec.Hour&(1<<uint(t.Hour())) == 0:
		return hour
	case s.spec.Minute&(1<<uint(t.Minute())) == 0:
		return minute
	}
	return none
}

// matchesDay follows cron: when both day fields are restricted, either may match.
func (s *Schedule) matchesDay(t time.Time) bool {
	ofMonth := s.spec.Dom&(1<<uint(t.Day())) != 0
	ofWeek := s.spec.Dow&(1<<uint(t.Weekday())) != 0
	if s.spec.Dom&cronStar != 0 || s.spec.Dow&cronStar != 0 {
		return ofMonth && ofWeek
	}
	return ofMonth || ofWeek
}

// startOf returns the start of t's unit, as if the offset of t had always applied.
func startOf(u unit, t time.Time) time.Time {
	t = startOfMinute(t)
	back := time.Duration(0)
	if u >= hour {
		back += time.Duration(t.Minute()) * time.Minute
	}
	if u >= day {
		back += time.Duration(t.Hour()) * time.Hour
	}
	if u >= month {
		back += time.Duration(t.Day()-1) * 24 * time.Hour
	}
	return t.Add(-back)
}

// startOfNext returns the start of the unit after t's, as if the offset of t always applied.
func startOfNext(u unit, t time.Time) time.Time {
	lengths := map[unit]time.Duration{minute: time.Minute, hour: time.Hour, day: 24 * time.Hour}
	length, ok := lengths[u]
	if !ok {
		daysInMonth := time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
		length = time.Duration(daysInMonth) * 24 * time.Hour
	}
	return startOf(u, t).Add(length)
}

func startOfMinute(t time.Time) time.Time {
	return t.Add(-time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
}
