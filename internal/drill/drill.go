// Package drill proves the inbox's contract on the real table: what happens when a message
// is redelivered, when its work fails, and when two workers have it at once.
//
// It writes under a reserved transport name, a handful of fixed message ids, with the
// database's clock as the time. What it commits it deletes at once, and every run first
// deletes what a killed one left. It makes no object in the database: the business effect
// of a drill is a second record of its own in the same table.
package drill

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
)

// TransportName is the reserved name under which drills write. It is that of
// v1alpha1.ReservedTransportName; the resource refuses a transport with this name.
const TransportName = "messaginginbox.drill"

// Limits of a drill.
const (
	// MaxDuration bounds a whole drill.
	MaxDuration = 2 * time.Minute
	// cleanupDuration bounds the removal of what a drill committed.
	cleanupDuration = 10 * time.Second
	// answerTimeout bounds one exchange with the server, beside the server's own limits:
	// a pooler with no server connection left says nothing for minutes.
	answerTimeout = 15 * time.Second
)

// limits of each transaction of a drill. Nobody waits for a drill longer than the lock
// timeout, and a drill waits for nobody longer.
func limits() database.Limits {
	return database.Limits{LockTimeout: 3 * time.Second, StatementTimeout: 10 * time.Second, ApplicationName: "messaging-inbox-drill"}
}

// Options say what is drilled.
type Options struct {
	// Contract names the table.
	Contract dbschema.Contract
	// Inbox is the inbox's own connection. Its role needs SELECT, INSERT and DELETE.
	Inbox *database.Config
	// Handlers are the connections that handlers write through. Their roles need SELECT
	// and INSERT.
	Handlers []*database.Config
}

// Run drills the contract. What is wrong is in the report; Report.Result sums it up. When
// ctx ends the drill stops, and still removes what it committed.
func Run(ctx context.Context, o Options) Report {
	started := time.Now()
	r := &run{options: o}
	bounded, cancel := context.WithTimeout(ctx, MaxDuration)
	defer cancel()
	r.report.conclude(r.run(bounded))
	r.report.DurationSeconds = time.Since(started).Seconds()
	r.report.round()
	return r.report
}

// run is one drill under way.
type run struct {
	options  Options
	report   Report
	guard    pgx.Tx    // holds the drill's lock, and watches the others
	cleaner  *pgx.Conn // the inbox's connection that looks from outside and deletes
	table    table
	observed dbschema.Observed
	dirty    bool // a record may be committed that was not removed
}

func (r *run) run(ctx context.Context) (err error) {
	r.cleaner, err = r.options.Inbox.Connect(ctx, limits())
	if err != nil {
		return r.explain(ctx, inboxName, err)
	}
	defer func() { closeQuietly(ctx, r.cleaner) }()
	if goOn, err := r.preflight(ctx); err != nil || !goOn {
		return r.explain(ctx, inboxName, err)
	}
	return r.explain(ctx, inboxName, r.runAlone(ctx))
}

// runAlone drills under the drill's lock, and leaves no record.
func (r *run) runAlone(ctx context.Context) error {
	holder, err := r.options.Inbox.Connect(ctx, limits())
	if err != nil {
		return err
	}
	defer closeQuietly(ctx, holder) // and with it the lock
	if r.guard, err = takeLock(ctx, holder, r.table); err != nil {
		return err
	}
	if r.report.LeftoversRemoved, err = r.cleanUp(ctx); err != nil {
		return err
	}
	err = r.drillAll(ctx)
	cleanupErr := r.cleanUpAtLast(ctx)
	if cleanupErr == nil {
		return err
	}
	r.report.note("Records of the drill may be left in %s under the transport name %s: the next drill removes them. The clean-up failed: %s.",
		r.table.name, TransportName, describe(cleanupErr))
	if err == nil {
		return cleanupErr
	}
	return err
}

// drillAll drills the inbox's connection and then each of the handlers'.
func (r *run) drillAll(ctx context.Context) error {
	inbox := &drilled{run: r, name: inboxName, config: r.options.Inbox, mayDelete: true}
	if err := inbox.drill(ctx); err != nil {
		return err
	}
	for i, config := range r.options.Handlers {
		handler := &drilled{run: r, name: fmt.Sprintf("handler %d", i), config: config}
		if shared, err := handler.sharesDatabase(ctx); err != nil {
			return r.explain(ctx, handler.name, err)
		} else if !shared {
			continue // nothing is written to a database where nobody would clean up
		}
		if err := handler.drill(ctx); err != nil {
			return r.explain(ctx, handler.name, err)
		}
	}
	return nil
}

// preflight finds out what can be known without writing. An obstacle means that the drill
// cannot be tried; a failed check, that the table breaks the contract.
func (r *run) preflight(ctx context.Context) (goOn bool, err error) {
	facts, err := database.ReadFacts(ctx, r.cleaner)
	if err == nil {
		err = facts.Check()
	}
	if err != nil {
		return false, err
	}
	r.observed, err = dbschema.Inspect(ctx, r.cleaner, r.options.Contract)
	if err != nil {
		return false, err
	}
	r.table = newTable(r.options.Contract, r.observed)
	if goOn, err = r.checkTable(ctx); err != nil || !goOn {
		return false, err
	}
	missing, err := database.MissingPrivileges(ctx, r.cleaner, r.options.Contract.Schema, r.options.Contract.Table, "SELECT", "INSERT", "DELETE")
	if err != nil {
		return false, err
	}
	return true, lacks(facts.User, r.table, missing)
}

// lacks is an obstacle when privileges are missing.
func lacks(role string, t table, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	grant := fmt.Sprintf("GRANT %s ON %s TO %s", strings.Join(missing, ", "), t.name, quote(role))
	if missing[0] == "USAGE" {
		grant = "GRANT USAGE ON the schema, and " + strings.Join(missing[1:], ", ") + " ON the table"
	}
	return hinder(database.ReasonPermissionDenied, "role %s lacks %s on %s, which a drill needs: %s", quote(role), strings.Join(missing, " and "), t.name, grant)
}

func closeQuietly(ctx context.Context, connection *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = connection.Close(ctx) // what matters was committed or rolled back before
}
