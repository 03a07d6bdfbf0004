package assessment

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// reasonsIn are the values of the constants of a file whose names begin with Reason.
func reasonsIn(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, isValue := node.(*ast.ValueSpec)
		if !isValue || !strings.HasPrefix(strings.ToLower(spec.Names[0].Name), "reason") || len(spec.Values) != 1 {
			return true
		}
		if literal, isLiteral := spec.Values[0].(*ast.BasicLit); isLiteral {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			reasons[value] = spec.Names[0].Name
		}
		return true
	})
	if len(reasons) == 0 {
		t.Fatalf("%s has no reasons", file)
	}
	return reasons
}

func TestTheRunbookHasAnEntryForEveryReason(t *testing.T) {
	runbook, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	known := reasonsIn(t, "../../api/v1alpha1/conditions.go")
	for reason := range known {
		if !strings.Contains(string(runbook), "| `"+reason+"` |") {
			t.Errorf("docs/runbook.md has no entry for %s", reason)
		}
	}
	for _, line := range strings.Split(string(runbook), "\n") {
		if reason, found := strings.CutPrefix(line, "| `"); found {
			reason, _, _ = strings.Cut(reason, "`")
			if _, exists := known[reason]; !exists {
				t.Errorf("docs/runbook.md has an entry for %s, which is no reason", reason)
			}
		}
	}
}

// The packages below do not import the API, and so repeat the reasons that they need.
func TestEveryReasonOfAFailureIsOneOfTheAPI(t *testing.T) {
	known := reasonsIn(t, "../../api/v1alpha1/conditions.go")
	for _, file := range []string{"../database/reasons.go", "../dbschema/verdict.go", "../dbschema/errors.go", "../schedule/schedule.go"} {
		for reason, name := range reasonsIn(t, file) {
			if _, exists := known[reason]; !exists {
				t.Errorf("%s: %s is %q, which the API does not have", file, name, reason)
			}
		}
	}
}
