//go:build integration

package drill_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/drill"
	"github.com/messaginginbox/operator/test/postgres"
)

// victimURL makes the test binary a process that only drills, to be killed.
const victimURL = "DRILL_VICTIM_URL"

func beVictim(url string) int {
	config, err := database.Parse(url)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started")
	report := drill.Run(context.Background(), drill.Options{Contract: contract, Inbox: config})
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return 1
	}
	return 0
}

// killAfter starts a drill in a process of its own and kills it.
func killAfter(t *testing.T, url string, wait time.Duration) {
	t.Helper()
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Env = append(os.Environ(), victimURL+"="+url)
	output, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("the victim says %q, %v", line, err)
	}
	time.Sleep(wait)
	_ = victim.Process.Kill() // it may have ended
	_ = victim.Wait()
}

func TestKilledDrillLeavesNothingAfterTheNext(t *testing.T) {
	inbox := newInbox(t, table)
	usual := run(t, inbox)
	wantResult(t, usual, drill.ResultProven, drill.ReasonProven)
	var removed int64
	// 50 kills, and more until one hits the few milliseconds in which a record is committed.
	for kills := 0; kills < 50 || removed == 0 && kills < 500; kills++ {
		killAfter(t, inbox, time.Duration(rand.Float64()*usual.DurationSeconds*float64(time.Second)))
		var next drill.Report
		eventually(t, "the killed drill's lock is free", func() bool {
			next = run(t, inbox)
			return next.Reason != drill.ReasonAlreadyRunning
		})
		wantResult(t, next, drill.ResultProven, drill.ReasonProven)
		removed += next.LeftoversRemoved
		wantNothingLeft(t, inbox)
	}
	if removed == 0 {
		t.Error("no kill left a record behind, so nothing was tried")
	}
	t.Logf("%d records were left behind and removed", removed)
}

func TestTableLockedByAnotherSessionBoundsTheWaitAndNamesIt(t *testing.T) {
	inbox := newInbox(t, table)
	holder := connect(t, inbox+"&application_name=migration")
	tx, err := holder.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE messenger_inbox`); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	report := run(t, inbox)
	wantResult(t, report, drill.ResultNotTried, database.ReasonLockTimeout)
	if !strings.Contains(report.Message, "application migration, AccessExclusiveLock") {
		t.Errorf("the message does not name the holder: %s", report.Message)
	}
	if waited := time.Since(started); waited > 30*time.Second {
		t.Errorf("it waited %s", waited)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantResult(t, run(t, inbox), drill.ResultProven, drill.ReasonProven)
}

func TestTableLockedInTheMiddleOfADrill(t *testing.T) {
	inbox := newInbox(t, table)
	holder := connect(t, inbox)
	for range 5 {
		reports := make(chan drill.Report, 1)
		go func() { reports <- run(t, inbox) }()
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		tx, err := holder.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `SET LOCAL lock_timeout = '20s'; LOCK TABLE messenger_inbox`); err != nil {
			t.Fatal(err)
		}
		report := <-reports
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if report.Result != drill.ResultProven {
			wantResult(t, report, drill.ResultNotTried, database.ReasonLockTimeout)
		}
		wantResult(t, run(t, inbox), drill.ResultProven, drill.ReasonProven)
		wantNothingLeft(t, inbox)
	}
}

func TestOnlyOneOfManyDrillsAtOnceRuns(t *testing.T) {
	inbox := newInbox(t, table)
	var group sync.WaitGroup
	reports := make([]drill.Report, 6)
	for i := range reports {
		group.Go(func() { reports[i] = run(t, inbox) })
	}
	group.Wait()
	results := map[string]int{}
	for _, report := range reports {
		results[report.Result+" "+report.Reason]++
	}
	if results["Proven Proven"] == 0 || results["Proven Proven"]+results["NotTried AlreadyRunning"] != len(reports) {
		t.Errorf("the results are %v", results)
	}
	wantNothingLeft(t, inbox)
}

// Without its lock a drill may meet another one at its records, and must not take that for
// a broken contract.
func TestDrillThatLosesItsLockIsNotTried(t *testing.T) {
	inbox := newInbox(t, table)
	admin := connect(t, inbox)
	for range 5 {
		reports := make(chan drill.Report, 1)
		go func() { reports <- run(t, inbox) }()
		eventually(t, "the drill's lock is taken, and its session ended", func() bool {
			tag, err := admin.Exec(t.Context(), `WITH holder AS MATERIALIZED (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = x'6472696c'::int
				AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) SELECT pg_terminate_backend(pid) FROM holder`)
			if err != nil {
				t.Error(err)
			}
			return err != nil || tag.RowsAffected() == 1
		})
		rival := run(t, inbox)
		if report := <-reports; report.Result == drill.ResultBroken {
			t.Errorf("the report is %+v", report)
		}
		if rival.Result == drill.ResultBroken {
			t.Errorf("the rival's report is %+v", rival)
		}
		wantResult(t, run(t, inbox), drill.ResultProven, drill.ReasonProven)
		wantNothingLeft(t, inbox)
	}
}

func TestServerThatRestartsInTheMiddleOfADrill(t *testing.T) {
	s := postgres.Run(t, postgres.Options{})
	inbox := s.URL("postgres")
	execute(t, inbox, table)
	usual := run(t, inbox)
	wantResult(t, usual, drill.ResultProven, drill.ReasonProven)
	interrupted := 0
	for range 5 {
		reports := make(chan drill.Report, 1)
		go func() { reports <- run(t, inbox) }()
		time.Sleep(time.Duration(rand.Float64() * usual.DurationSeconds * float64(time.Second)))
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if report := <-reports; report.Result != drill.ResultProven {
			wantResult(t, report, drill.ResultNotTried, database.ReasonUnreachable)
			interrupted++
		}
		wantResult(t, run(t, inbox), drill.ResultProven, drill.ReasonProven)
		wantNothingLeft(t, inbox)
	}
	t.Logf("%d of 5 drills were interrupted", interrupted)
}

func TestDrillThatIsAskedToStopRemovesItsRecords(t *testing.T) {
	inbox := newInbox(t, table)
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200))*time.Millisecond)
		report := drill.Run(ctx, drill.Options{Contract: contract, Inbox: parse(t, inbox)})
		cancel()
		if report.Result != drill.ResultProven {
			wantResult(t, report, drill.ResultNotTried, drill.ReasonInterrupted)
		}
		wantNothingLeft(t, inbox)
	}
}
