//go:build integration

package drill_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/messaginginbox/operator/internal/drill"
)

func TestTimeIsThatOfTheContractsZoneWhateverTheRoleHas(t *testing.T) {
	for _, zone := range []string{"", "UTC", "Europe/Paris", "Asia/Kolkata", "America/St_Johns"} {
		for _, column := range []string{"timestamp(0)", "timestamp", "timestamptz(0)"} {
			t.Run(zone+" "+column, func(t *testing.T) {
				inbox := newInbox(t, strings.Replace(table, "timestamp(0)", column, 1))
				execute(t, inbox, fmt.Sprintf(`ALTER ROLE postgres IN DATABASE %q SET timezone = 'Asia/Tokyo'`, nameOf(t, inbox)),
					fmt.Sprintf(`ALTER ROLE postgres IN DATABASE %q SET datestyle = 'German'`, nameOf(t, inbox)))
				c := contract
				c.TimeZone = zone
				wantResult(t, drill.Run(t.Context(), drill.Options{Contract: c, Inbox: parse(t, inbox)}), drill.ResultProven, drill.ReasonProven)
			})
		}
	}
}

// The other checks would write what is pruned at the wrong time, and are not made.
func TestTriggerThatChangesTheTimeIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		column, time string // what the trigger writes into it
		says         string
	}{
		"older":            {"timestamp(0)", "NEW.processed_at - interval '30 days'", `trigger "changes"`},
		"a little younger": {"timestamptz(0)", "NEW.processed_at + interval '1 minute'", `trigger "changes"`},
		"eternal":          {"timestamp", "'infinity'", "has the time infinity"},
		"in another zone":  {"timestamp(0)", "clock_timestamp() AT TIME ZONE 'Asia/Kolkata'", `trigger "changes"`},
		"a fixed one":      {"timestamptz", "'epoch'", "has the time 1970-01-01 00:00:00+00 where"},
	} {
		for _, deferred := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deferred %t", name, deferred), func(t *testing.T) {
				body, trigger := "NEW.processed_at := "+test.time+"; RETURN NEW;", "TRIGGER changes BEFORE INSERT ON messenger_inbox"
				if deferred {
					body = "UPDATE messenger_inbox SET processed_at = " + test.time + " WHERE message_id = NEW.message_id; RETURN NULL;"
					trigger = "CONSTRAINT TRIGGER changes AFTER INSERT ON messenger_inbox DEFERRABLE INITIALLY DEFERRED"
				}
				inbox := newInbox(t, strings.Replace(table, "timestamp(0)", test.column, 1),
					"CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "+body+" END$$",
					"CREATE "+trigger+" FOR EACH ROW EXECUTE FUNCTION change()")
				report := run(t, inbox)
				wantResult(t, report, drill.ResultBroken, drill.ReasonTimeChanged)
				if reasons := failedReasons(report); !slices.Equal(reasons, []string{drill.ReasonTimeChanged}) || !strings.Contains(report.Message, test.says) {
					t.Errorf("the failed checks are %v: %s", reasons, report.Message)
				}
				wantNothingLeft(t, inbox)
			})
		}
	}
}
