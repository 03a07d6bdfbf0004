package pruner

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// futureTolerance is how far ahead of the database's clock a record may be dated before
// the report says so.
const futureTolerance = 5 * time.Minute

// cutoff separates the expired records from the others.
type cutoff struct {
	// now is the time on the database's clock.
	now time.Time
	// instant: what was handled before it is expired.
	instant time.Time
	// position is the instant as a value of the column: what is less is expired.
	position time.Time
}

// expiry is the instant before which records are expired. Whole seconds are safe for
// a timestamp(0), however its writer rounds: a value that is less than a whole second is
// at least one second less, and rounding adds or takes at most one.
func expiry(now time.Time, retention time.Duration) time.Time {
	return now.Add(-retention).UTC().Truncate(time.Second)
}

// checkClock refuses to prune by a clock that is far ahead of the client's: one of the two
// is wrong, and a cutoff that lies too late deletes proofs too early. A clock that is behind
// only keeps them for longer.
func checkClock(database, client time.Time) error {
	if ahead := database.Sub(client); ahead > futureTolerance {
		return refuse(ReasonClockSkew, "the database's clock shows %s, which is %s ahead of this machine's: one of them is wrong; correct it, for records must not expire early",
			database.UTC().Format(time.RFC3339), ahead.Round(time.Second))
	}
	return nil
}

// readCutoff asks the database for its time and, for a column without time zone, for the
// cutoff's reading on the wall clock of the table's zone.
func readCutoff(ctx context.Context, db *session, t table, retention time.Duration) (cutoff, error) {
	var c cutoff
	if err := db.read(ctx, &c.now, `SELECT clock_timestamp()`); err != nil {
		return cutoff{}, fmt.Errorf("read the database's clock: %w", err)
	}
	if err := checkClock(c.now, time.Now()); err != nil {
		return cutoff{}, err
	}
	c.instant = expiry(c.now, retention)
	c.position = c.instant
	if !t.zoneless {
		return c, nil
	}
	reading, err := earliestReading(ctx, db, c.instant, t.timeZone)
	if err != nil {
		return cutoff{}, fmt.Errorf("read the cutoff %s in the time zone %s: %w", c.instant.Format(time.RFC3339), t.timeZone, err)
	}
	c.position = reading
	return c, nil
}

// earliestReading is the earliest that the zone's wall clock shows at the instant or
// later, as if in UTC. When the clock is put back it shows an hour twice: a record with
// such a reading may be of the second time, so it must not expire with the first.
// Changes of the clock happen on whole minutes, and put it back by less than a day.
func earliestReading(ctx context.Context, db *session, instant time.Time, timeZone string) (time.Time, error) {
	var reading time.Time
	err := db.read(ctx, &reading, `SELECT least($1::timestamptz AT TIME ZONE $3::text, (SELECT min(later AT TIME ZONE $3::text)
		FROM generate_series($2::timestamptz, $2::timestamptz + interval '24 hours', interval '1 minute') later))`,
		pgtype.Timestamptz{Time: instant, Valid: true},
		pgtype.Timestamptz{Time: instant.Truncate(time.Minute).Add(time.Minute), Valid: true}, timeZone)
	return reading, err
}

// instantOf converts a value of the column to the instant that it stands for.
func instantOf(ctx context.Context, db *session, t table, position time.Time) (time.Time, error) {
	if !t.zoneless {
		return position.UTC(), nil
	}
	var instant time.Time
	err := db.read(ctx, &instant, `SELECT $1::timestamp AT TIME ZONE $2::text`, t.value(position), t.timeZone)
	return instant.UTC(), err
}

// newestInFuture returns the newest record when it is dated clearly after the database's
// clock. It needs the index.
func newestInFuture(ctx context.Context, db *session, t table, c cutoff) (*time.Time, error) {
	var newest *time.Time
	err := db.read(ctx, &newest, t.sql(`SELECT (SELECT {time} FROM {table} WHERE {time} < 'infinity' AND {time} > '-infinity' ORDER BY {time} DESC LIMIT 1)`))
	if err != nil || newest == nil {
		return nil, err
	}
	instant, err := instantOf(ctx, db, t, *newest)
	if err != nil || !instant.After(c.now.Add(futureTolerance)) {
		return nil, err
	}
	return &instant, nil
}
