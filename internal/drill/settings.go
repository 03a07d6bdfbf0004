package drill

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const expectedSettings = "transactions are read committed and survive a crash, and triggers fire"

// sources of a setting, as pg_settings has them, in words.
// https://www.postgresql.org/docs/current/view-pg-settings.html
var sources = map[string]string{
	"user":                 "set for the role (ALTER ROLE)",
	"database":             "set for the database (ALTER DATABASE)",
	"database user":        "set for the role in this database (ALTER ROLE IN DATABASE)",
	"configuration file":   "set for the whole server (its configuration file)",
	"command line":         "set for the whole server (its command line)",
	"environment variable": "set for the whole server (its environment)",
	"client":               "set by the connection URL",
	"session":              "set in the session, perhaps by an earlier user of a pooler's connection",
	"global":               "set for all roles (ALTER ROLE ALL)",
}

// setting is one row of pg_settings.
type setting struct {
	Name, Value, Source string
}

func (s setting) String() string {
	source, known := sources[s.Source]
	if !known {
		source = "source: " + s.Source
	}
	return fmt.Sprintf("%s is %q, %s", s.Name, s.Value, source)
}

// checkSettings makes one failed check of each setting that endangers the contract.
func (d *drilled) checkSettings(ctx context.Context) error {
	started := time.Now()
	settings, err := d.readSettings(ctx)
	if err != nil {
		return err
	}
	seconds := time.Since(started).Seconds()
	problems := judgeSettings(settings)
	for _, problem := range problems {
		d.run.report.Checks = append(d.run.report.Checks, Check{
			Name: "settings", Connection: d.name, Expected: expectedSettings, Happened: problem.happened, Reason: problem.reason, Seconds: seconds,
		})
	}
	if len(problems) == 0 {
		d.run.report.Checks = append(d.run.report.Checks, Check{
			Name: "settings", Connection: d.name, Passed: true, Expected: expectedSettings, Happened: inWords(settings), Seconds: seconds,
		})
	}
	return nil
}

func (d *drilled) readSettings(ctx context.Context) ([]setting, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := d.first.begin(ctx); err != nil {
		return nil, err
	}
	rows, err := d.first.tx.Query(ctx, `SELECT name, setting, source FROM pg_catalog.pg_settings
		WHERE name IN ('default_transaction_isolation', 'fsync', 'session_replication_role', 'synchronous_commit') ORDER BY name`)
	if err != nil {
		return nil, err
	}
	settings, err := pgx.CollectRows(rows, pgx.RowToStructByPos[setting])
	if err != nil {
		return nil, err
	}
	return settings, d.first.rollback(ctx)
}

// judgeSettings names what is wrong. That fsync is off is only said with the settings: the
// whole server is then meant to be thrown away.
func judgeSettings(settings []setting) []violation {
	var problems []violation
	for _, s := range settings {
		switch {
		case s.Name == "synchronous_commit" && s.Value == "off":
			problems = append(problems, violation{ReasonAsynchronousCommit,
				s.String() + ": a crash of the server can lose the last commits, proofs and work alike, whose messages are acknowledged already. Set it to on, local or stricter"})
		case s.Name == "session_replication_role" && s.Value != "origin":
			problems = append(problems, violation{ReasonSessionReplicationRole,
				s.String() + ": ordinary triggers and foreign keys are off, and a deferrable key is not checked at all. Set it to origin"})
		case s.Name == "default_transaction_isolation" && s.Value != "read committed":
			problems = append(problems, violation{ReasonIsolation,
				s.String() + ": beside another worker a transaction can fail with a serialization failure (SQLSTATE 40001) in the place of a duplicate (23505), " +
					"which a consumer takes for an error of its handler. Set it to read committed"})
		}
	}
	return problems
}

func inWords(settings []setting) string {
	words := make([]string, 0, len(settings))
	for _, s := range settings {
		words = append(words, s.Name+"="+s.Value)
	}
	return strings.Join(words, ", ")
}
