package drill

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func checks(passed, failed int, text string) []Check {
	var list []Check
	for i := range passed + failed {
		list = append(list, Check{Name: "two workers, first rolls back", Connection: fmt.Sprintf("handler %d", i), Passed: i >= failed, Expected: text, Happened: text, Seconds: 0.123456})
	}
	return list
}

func TestReportFitsInATerminationMessage(t *testing.T) {
	for name, test := range map[string]struct {
		report Report
		keeps  int // checks
	}{
		"a usual report as it is":          {Report{Result: ResultProven, Checks: checks(7, 0, "expected")}, 7},
		"32 connections":                   {Report{Result: ResultProven, Checks: checks(33*7, 0, strings.Repeat("x", 80))}, 30},
		"one failure among many":           {Report{Result: ResultBroken, Checks: checks(200, 1, strings.Repeat("x", 80))}, 20},
		"200 failures":                     {Report{Result: ResultBroken, Checks: checks(0, 200, strings.Repeat("x", 80))}, 8},
		"long texts of control characters": {Report{Result: ResultBroken, Message: strings.Repeat("\x01", 5000), Checks: checks(0, 7, strings.Repeat("\x01", 3000))}, 0},
		"long texts of two bytes":          {Report{Result: ResultBroken, Message: strings.Repeat("é", 5000), Checks: checks(0, 3, strings.Repeat("é", 3000))}, 3},
	} {
		t.Run(name, func(t *testing.T) { mustFit(t, test.report, test.keeps) })
	}
}

func mustFit(t *testing.T, report Report, keeps int) {
	t.Helper()
	before := len(report.Checks)
	encoded, err := report.JSON()
	if err != nil || len(encoded) >= 4096 {
		t.Fatalf("%d bytes, %v", len(encoded), err)
	}
	var back Report
	if err := json.Unmarshal(encoded, &back); err != nil {
		t.Fatal(err)
	}
	if back.Result != report.Result || len(back.Checks)+back.ChecksOmitted != before || len(back.Checks) < keeps {
		t.Errorf("%d checks and %d omitted: %s", len(back.Checks), back.ChecksOmitted, encoded)
	}
	if strings.ContainsRune(string(encoded), '\uFFFD') {
		t.Error("a text is cut within a character")
	}
	if report.Result == ResultBroken && len(back.Checks) > 0 && back.Checks[0].Passed {
		t.Error("the failed check is gone before the passed ones")
	}
	if len(report.Checks) != before || report.Checks[0].Happened == "" {
		t.Error("the report itself was changed")
	}
}

func TestConclusion(t *testing.T) {
	busy := hinder(ReasonAlreadyRunning, "another drill is under way")
	for name, test := range map[string]struct {
		report         Report
		err            error
		result, reason string
		says           string
	}{
		"all passed":                     {Report{Checks: checks(7, 0, "")}, nil, ResultProven, ReasonProven, "All 7 checks passed."},
		"leftovers are told":             {Report{Checks: checks(7, 0, ""), LeftoversRemoved: 2}, nil, ResultProven, ReasonProven, "2 records"},
		"an obstacle":                    {Report{}, busy, ResultNotTried, ReasonAlreadyRunning, "another drill is under way."},
		"a failed check before an error": {Report{Checks: []Check{{Name: "table", Connection: "inbox", Reason: ReasonKeyDeferrable, Expected: "a", Happened: "b"}}}, busy, ResultBroken, ReasonKeyDeferrable, "did not get to its end"},
		"an error that nobody expected":  {Report{Checks: checks(7, 0, "")}, errors.New("odd"), ResultFailed, "UnexpectedError", "odd"},
		"notes of the run":               {Report{Checks: checks(7, 0, ""), Message: "A note."}, nil, ResultProven, ReasonProven, "A note."},
	} {
		t.Run(name, func(t *testing.T) {
			report := test.report
			report.conclude(test.err)
			if report.Result != test.result || report.Reason != test.reason || !strings.Contains(report.Message, test.says) {
				t.Errorf("got %s (%s): %s", report.Result, report.Reason, report.Message)
			}
		})
	}
}

func TestSettingsAreJudgedWithTheirLevel(t *testing.T) {
	good := []setting{{"default_transaction_isolation", "read committed", "default"}, {"fsync", "off", "command line"}, {"session_replication_role", "origin", "default"}, {"synchronous_commit", "local", "user"}}
	if problems := judgeSettings(good); problems != nil {
		t.Errorf("got %+v", problems)
	}
	for _, test := range []struct {
		setting
		reason, says string
	}{
		{setting{"synchronous_commit", "off", "database user"}, ReasonAsynchronousCommit, "ALTER ROLE IN DATABASE"},
		{setting{"synchronous_commit", "off", "new in PostgreSQL 30"}, ReasonAsynchronousCommit, "source: new in PostgreSQL 30"},
		{setting{"session_replication_role", "replica", "session"}, ReasonSessionReplicationRole, "pooler"},
		{setting{"default_transaction_isolation", "serializable", "configuration file"}, ReasonIsolation, "whole server"},
	} {
		problems := judgeSettings([]setting{test.setting})
		if len(problems) != 1 || problems[0].reason != test.reason || !strings.Contains(problems[0].happened, test.says) {
			t.Errorf("%s: got %+v", test.setting, problems)
		}
	}
}
