//go:build integration

package database_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/test/postgres"
)

// A role, a database and a server can each have a style in which results are written that
// is not the driver's.
func TestStylesOfARoleDoNotReachTheResults(t *testing.T) {
	s := postgres.Shared(t)
	address := startPgBouncer(t, s)
	for _, style := range []string{
		"datestyle = 'German'", "datestyle = 'SQL, DMY'", "datestyle = 'SQL, MDY'", "datestyle = 'Postgres, DMY'", "datestyle = 'ISO, DMY'",
		"intervalstyle = 'iso_8601'", "intervalstyle = 'sql_standard'", "bytea_output = 'escape'", "extra_float_digits = -15", "timezone = 'Asia/Kolkata'",
	} {
		t.Run(style, func(t *testing.T) {
			direct := s.NewDatabase(t)
			name := parse(t, direct).Database()
			execute(t, connect(t, parse(t, direct), database.Limits{}), fmt.Sprintf("ALTER ROLE postgres IN DATABASE %q SET %s", name, style))
			pooled := fmt.Sprintf("postgresql://postgres:%s@%s/%s?sslmode=disable", s.Password(), address, name)
			for way, url := range map[string]string{"direct": direct, "through PgBouncer": pooled} {
				t.Run(way, func(t *testing.T) {
					wantReadable(t, connect(t, parse(t, url), database.Limits{}))
					wantReadable(t, get(t, pools(t, database.PoolOptions{}), "a", parse(t, url)))
				})
			}
		})
	}
}

func wantReadable(t *testing.T, q database.Querier) {
	t.Helper()
	facts, err := database.ReadFacts(t.Context(), q)
	if err != nil || time.Since(facts.Now).Abs() > time.Minute {
		t.Errorf("got %+v, %v", facts, err)
	}
	moment := time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	var withZone, without, day time.Time
	var later bool
	err = q.QueryRow(t.Context(), `SELECT $1::timestamptz, $1::timestamptz AT TIME ZONE 'UTC', $1::timestamptz::date,
		$1::timestamptz + $2::interval = '2026-02-03 05:35:06.789+00'`, moment, 90*time.Minute).Scan(&withZone, &without, &day, &later)
	if err != nil || !withZone.Equal(moment) || !without.Equal(moment) || !day.Equal(moment.Truncate(24*time.Hour)) || !later {
		t.Errorf("got %s, %s, %s, %t, %v", withZone, without, day, later, err)
	}
}

func TestNumbersAreReadInFull(t *testing.T) {
	url := postgres.Shared(t).NewDatabase(t)
	admin := connect(t, parse(t, url), database.Limits{})
	execute(t, admin, fmt.Sprintf("ALTER ROLE postgres IN DATABASE %q SET extra_float_digits = -15", parse(t, url).Database()))
	var pi float64
	if err := connect(t, parse(t, url), database.Limits{}).QueryRow(t.Context(), "SELECT pi()").Scan(&pi); err != nil || pi != math.Pi {
		t.Errorf("got %v, %v", pi, err)
	}
}
