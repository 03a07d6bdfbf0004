package pruner

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestExpiryIsAWholeSecondNotAfterTheRetention(t *testing.T) {
	cases := []struct{ now, want string }{
		{"2026-07-08T10:00:00Z", "2026-07-01T10:00:00Z"},
		{"2026-07-08T10:00:00.999999Z", "2026-07-01T10:00:00Z"},
		{"2026-07-08T12:00:01.5+02:00", "2026-07-01T10:00:01Z"},
	}
	for _, c := range cases {
		now, err := time.Parse(time.RFC3339Nano, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := expiry(now, 7*24*time.Hour).Format(time.RFC3339Nano); got != c.want {
			t.Errorf("expiry at %s = %s, want %s", c.now, got, c.want)
		}
	}
}

// A writer may round half a second up or down, or cut the fraction off. None of it may
// make a record that is inside the retention look older than the cutoff.
func TestNoRoundingOfTheWriterExpiresARecordEarly(t *testing.T) {
	now := time.Date(2026, 7, 8, 10, 0, 0, 0, time.UTC)
	const retention = time.Hour
	for fraction := time.Duration(0); fraction < time.Second; fraction += 10 * time.Millisecond {
		cutoff := expiry(now.Add(fraction), retention)
		youngest := now.Add(fraction - retention) // just inside
		for _, stored := range []time.Time{youngest, youngest.Round(time.Second), youngest.Truncate(time.Second)} {
			if stored.Before(cutoff) {
				t.Errorf("handled at %s, stored as %s, expired before %s", youngest, stored, cutoff)
			}
		}
	}
}

func TestBatchFollowsTheDurationOfSlices(t *testing.T) {
	b := newBatch(5000)
	for range 3 {
		b.succeeded(5 * time.Millisecond)
	}
	if b.size != 5000 {
		t.Errorf("after quick slices the size is %d, want the limit of 5000", b.size)
	}
	b.succeeded(600 * time.Millisecond)
	if b.size != 500 {
		t.Errorf("after a slice of 600 ms the size is %d, want 500 for the aim of 60 ms", b.size)
	}
	b.succeeded(100 * time.Millisecond)
	if b.size != 500 {
		t.Errorf("after a slice of 100 ms the size is %d, want it unchanged", b.size)
	}
	for range 10 {
		b.failed()
	}
	if b.size != 1 || !b.smallest() {
		t.Errorf("after failures the size is %d, want 1", b.size)
	}
	if newBatch(3).size != 3 {
		t.Error("a limit below the usual start is exceeded")
	}
}

func TestSpansVisitEverythingOnceAndThenWhatWasPassed(t *testing.T) {
	s := spans[int]{open: []span[int]{{0, 10}, {20, 30}}}
	s.advance(4, false)
	s.pass(10, true)
	s.advance(30, true)
	if !s.finished() || len(s.left()) != 1 || s.left()[0] != (span[int]{4, 10}) {
		t.Errorf("left: %v", s.left())
	}
	if !s.reopen() || s.finished() || s.open[0] != (span[int]{4, 10}) {
		t.Errorf("reopened: %v", s.open)
	}
	s.advance(10, true)
	if s.reopen() {
		t.Error("nothing was passed, and something reopened")
	}
}

func TestStartPagesOfSuccessiveRunsAreSpread(t *testing.T) {
	const pages, runs = 1000, 40
	var visited [10]int
	at := time.Date(2026, 7, 8, 10, 0, 3, 0, time.UTC)
	for range runs {
		page := firstPage(at, pages)
		if page < 0 || page >= pages {
			t.Fatalf("page %d of %d", page, pages)
		}
		visited[page*10/pages]++
		at = at.Add(15 * time.Minute)
	}
	for tenth, n := range visited {
		if n == 0 {
			t.Errorf("no run of %d started in tenth %d of the table: %v", runs, tenth, visited)
		}
	}
}

func TestReportStaysBelowTheKubeletsLimit(t *testing.T) {
	for name, message := range map[string]string{"control characters": strings.Repeat("\x01", 5000), "text": strings.Repeat("žluťoučký ", 1000), "short": "fine"} {
		t.Run(name, func(t *testing.T) {
			encoded, err := Report{Result: ResultDone, Message: message}.JSON()
			if err != nil {
				t.Fatal(err)
			}
			var back Report
			if err := json.Unmarshal(encoded, &back); err != nil {
				t.Fatal(err)
			}
			if len(encoded) >= 4096 || !utf8.Valid(encoded) || back.Result != ResultDone {
				t.Errorf("%d bytes: %.80s", len(encoded), encoded)
			}
			if name == "short" && back.Message != message {
				t.Errorf("a short message became %q", back.Message)
			}
			if name != "short" && len(encoded) < 4000 {
				t.Errorf("cut to %d bytes, which is more than needed", len(encoded))
			}
		})
	}
}

func TestAClockThatIsFarAheadIsNotPrunedBy(t *testing.T) {
	own := time.Date(2026, 7, 8, 10, 0, 0, 0, time.UTC)
	for ahead, refused := range map[time.Duration]bool{
		-240 * time.Hour: false, 0: false, 5 * time.Minute: false, 5*time.Minute + time.Second: true, 240 * time.Hour: true,
	} {
		err := checkClock(own.Add(ahead), own)
		var why *refusal
		if errors.As(err, &why) != refused || (refused && why.reason != ReasonClockSkew) {
			t.Errorf("a database that is %s ahead: %v, want refused = %t", ahead, err, refused)
		}
	}
}
