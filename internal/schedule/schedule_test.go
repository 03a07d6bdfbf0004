package schedule

import (
	"errors"
	"sort"
	"strings"
	"testing"
	"time"
)

func TestParseSaysWhatIsWrongAndShowsARightOne(t *testing.T) {
	cases := []struct {
		name, expression, zone string
		says                   []string
	}{
		{"no expression", "", "UTC", []string{`schedule ""`, "*/15 * * * *"}},
		{"four fields", "* * * *", "UTC", []string{`schedule "* * * *"`, "*/15 * * * *"}},
		{"six fields", "0 * * * * *", "UTC", []string{"not a cron expression", "*/15 * * * *"}},
		{"minute 60", "60 * * * *", "UTC", []string{"60", "*/15 * * * *"}},
		{"a word", "@sometimes", "UTC", []string{"@sometimes", "@hourly"}},
		{"an interval", "@every 15m", "UTC", []string{"@every 15m", "*/15 * * * *"}},
		{"a time zone inside", "CRON_TZ=Europe/Berlin 0 3 * * *", "UTC", []string{"own field"}},
		{"a time zone and nothing else", "TZ=UTC", "UTC", []string{"own field"}},
		{"30 February", "0 0 30 2 *", "UTC", []string{"never fires", "0 3 1 * *"}},
		{"31 April and 31 June", "0 0 31 4,6 *", "Europe/Berlin", []string{"never fires"}},
		{"unknown zone", "@hourly", "Europe/Bielefeld", []string{`time zone "Europe/Bielefeld"`, "Europe/Berlin"}},
		{"no zone", "@hourly", "", []string{`time zone ""`, "UTC"}},
		{"the zone of the process", "@hourly", "Local", []string{`time zone "Local"`}},
		{"a path", "@hourly", "../etc/localtime", []string{"time zone"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.expression, c.zone)
			var invalid *Error
			if !errors.As(err, &invalid) {
				t.Fatalf("Parse(%q, %q) = %v, want an *Error", c.expression, c.zone, err)
			}
			if invalid.Reason != "InvalidSchedule" {
				t.Errorf("reason = %q, want InvalidSchedule", invalid.Reason)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("message %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestNext(t *testing.T) {
	cases := []struct {
		name, expression, zone, after string
		want                          []string
	}{
		{"every quarter of an hour", "*/15 * * * *", "UTC", "2026-03-01T10:14:59Z",
			[]string{"2026-03-01T10:15:00Z", "2026-03-01T10:30:00Z", "2026-03-01T10:45:00Z", "2026-03-01T11:00:00Z"}},
		{"a tick is not after itself", "@hourly", "UTC", "2026-03-01T10:00:00Z", []string{"2026-03-01T11:00:00Z"}},
		{"a fraction of a second before", "@hourly", "UTC", "2026-03-01T09:59:59.999999999Z", []string{"2026-03-01T10:00:00Z"}},
		{"daily in a zone", "0 3 * * *", "Asia/Kolkata", "2026-03-01T00:00:00Z", []string{"2026-03-01T21:30:00Z"}},
		{"over the end of a year", "@yearly", "UTC", "2026-01-01T00:00:00Z", []string{"2027-01-01T00:00:00Z"}},
		{"either day field", "0 0 13 * 5", "UTC", "2026-02-06T00:00:00Z", []string{"2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z"}},
		{"29 February", "0 0 29 2 *", "UTC", "2024-03-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		{"29 February around a century", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"a reading that is skipped has no tick", "30 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z",
			[]string{"2026-03-30T00:30:00Z"}},
		{"a reading that is repeated has two", "30 2 * * *", "Europe/Berlin", "2026-10-24T02:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		{"noon before and after the change", "0 12 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T11:00:00Z", "2026-03-29T10:00:00Z"}},
		{"a day without a midnight", "0 12 * * 5", "Africa/Cairo", "2026-04-23T12:00:00Z", []string{"2026-04-24T09:00:00Z"}},
		{"a change of half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-04T15:15:00Z"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := mustParse(t, c.expression, c.zone)
			at := instant(t, c.after)
			for _, want := range c.want {
				at = s.Next(at)
				if got := at.Format(time.RFC3339Nano); got != want {
					t.Fatalf("Next = %s, want %s", got, want)
				}
			}
		})
	}
}

func TestLatest(t *testing.T) {
	cases := []struct {
		name, expression, zone, after, now, want string
	}{
		{"between two ticks", "*/15 * * * *", "UTC", "2026-03-01T10:00:00Z", "2026-03-01T10:29:59Z", "2026-03-01T10:15:00Z"},
		{"now is a tick", "*/15 * * * *", "UTC", "2026-03-01T10:00:00Z", "2026-03-01T10:30:00Z", "2026-03-01T10:30:00Z"},
		{"the first time is excluded", "*/15 * * * *", "UTC", "2026-03-01T10:15:00Z", "2026-03-01T10:29:00Z", ""},
		{"the first time is after now", "* * * * *", "UTC", "2026-03-01T10:15:00Z", "2026-03-01T10:00:00Z", ""},
		{"years without a run", "0 3 * * *", "UTC", "2001-01-01T00:00:00Z", "2026-03-01T02:59:00Z", "2026-02-28T03:00:00Z"},
		{"since the zero time", "0 0 29 2 *", "UTC", "0001-01-01T00:00:00Z", "2104-02-28T00:00:00Z", "2096-02-29T00:00:00Z"},
		{"the second of two readings", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T12:00:00Z", "2026-10-25T01:30:00Z"},
		{"the first of two readings", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T01:29:00Z", "2026-10-25T00:30:00Z"},
		{"a skipped reading", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, found := mustParse(t, c.expression, c.zone).Latest(instant(t, c.after), instant(t, c.now))
			if found != (c.want != "") {
				t.Fatalf("found = %v (%s), want %q", found, got, c.want)
			}
			if found && got.Format(time.RFC3339) != c.want {
				t.Errorf("Latest = %s, want %s", got.Format(time.RFC3339), c.want)
			}
		})
	}
}

// Latest and Next must agree with looking at every minute in turn, for every hour
// around changes of the offset.
func TestTicksAgreeWithAScanOfEveryMinute(t *testing.T) {
	expressions := []string{"*/15 * * * *", "7 1-3 * * *", "30 2 * * *", "0 0 * * *", "59 23 * * 0", "0 12 1,15 * 5", "45 0 31 * *", "10,50 */6 * 3,4,10,11 *", "0 0 * * 1", "5 0 * * 6", "59 23 * * 6", "55 23 * * 4", "40 */2 * * *", "@hourly", "@weekly", "@monthly"}
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kolkata", "Pacific/Chatham", "America/St_Johns", "America/Santiago", "Pacific/Apia"}
	// The last is the week in which Samoa skipped a day.
	starts := []string{"2026-03-27T00:00:00Z", "2026-10-23T00:00:00Z", "2026-03-06T00:00:00Z", "2026-10-30T00:00:00Z", "2026-04-02T00:00:00Z", "2026-10-02T00:00:00Z", "2026-04-22T00:00:00Z", "2011-12-28T00:00:00Z"}
	const span = 96 * time.Hour
	for _, zone := range zones {
		for _, expression := range expressions {
			s := mustParse(t, expression, zone)
			for _, start := range starts {
				from := instant(t, start)
				ticks := scan(s, from, from.Add(span))
				for at := from; at.Before(from.Add(span)); at = at.Add(47*time.Minute + 11*time.Second) {
					compareWithScan(t, s, ticks, from, at)
				}
			}
		}
	}
}

// scan returns all ticks after from and not after to.
func scan(s *Schedule, from, to time.Time) []time.Time {
	var ticks []time.Time
	for at := from.Add(time.Minute); !at.After(to); at = at.Add(time.Minute) {
		if s.mismatch(at.In(s.zone)) == none {
			ticks = append(ticks, at)
		}
	}
	return ticks
}

// compareWithScan compares the last tick in (from, at] and the first one after at.
func compareWithScan(t *testing.T, s *Schedule, ticks []time.Time, from, at time.Time) {
	t.Helper()
	passed := sort.Search(len(ticks), func(i int) bool { return ticks[i].After(at) })
	latest, found := s.Latest(from, at)
	if found != (passed > 0) || found && !latest.Equal(ticks[passed-1]) {
		t.Fatalf("%s: Latest(%s, %s) = %s, %v; a scan finds %v", s.zone, from, at, latest, found, ticks[:passed])
	}
	if next := s.Next(at); passed < len(ticks) && !next.Equal(ticks[passed]) {
		t.Fatalf("%s: Next(%s) = %s, a scan finds %s", s.zone, at, next, ticks[passed])
	}
}

func mustParse(t *testing.T, expression, zone string) *Schedule {
	t.Helper()
	s, err := Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
