//go:build integration

package waiting

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/internal/probe"
	"github.com/messaginginbox/operator/internal/redelivery"
)

func TestAStreamThatMayNotBeReadSaysWhichRightIsMissing(t *testing.T) {
	_, client := stream(t)
	if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "failed", Values: []any{"message_id", "a"}}).Err(); err != nil {
		t.Fatal(err)
	}
	for name, tested := range map[string]struct {
		rights           string
		password, reason string
		says             string
	}{
		"a wrong password":      {"~* +@all", "hunter2-wrong", probe.ReasonAuthenticationFailed, "refused the user or the password"},
		"no right to a command": {"~* +@all -zrevrange", "hunter2", probe.ReasonPermissionDenied, "may not run ZREVRANGE on failed: grant it with ACL SETUSER (+zrevrange)"},
		"no right to a key":     {"~failed +@all", "hunter2", probe.ReasonPermissionDenied, "ACL SETUSER (~failed ~failed__queue)"},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := []any{"ACL", "SETUSER", "reader", "reset", "on", ">hunter2"}
			for right := range strings.FieldsSeq(tested.rights) {
				arguments = append(arguments, right)
			}
			if err := client.Do(t.Context(), arguments...).Err(); err != nil {
				t.Fatal(err)
			}
			target, err := probe.NewTarget("failed", redelivery.Redis, "redis://reader:"+tested.password+"@"+client.Options().Addr+"/failed", probe.Place{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Read(t.Context(), []probe.Target{target}, 10)
			var failure *probe.Failure
			if !errors.As(err, &failure) || failure.Reason != tested.reason || !strings.Contains(err.Error(), tested.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v, want one of reason %s that says %q", err, tested.reason, tested.says)
			}
		})
	}
}
