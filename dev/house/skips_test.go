package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// What is skipped is listed at the end of make test: each says why.
func TestSkipsSayWhy(t *testing.T) {
	for _, f := range tree(t) {
		report(t, checkSkips(f))
	}
}

// runsIt is how a reason names the target that runs the test: one of those that CI
// calls, or test-faults, which takes too long for it. dev/gotest fails where that
// target skips it too.
var runsIt = regexp.MustCompile(`make (test|test-long|test-race|test-faults|test-clients|test-console|test-release) runs it`)

func checkSkips(f sourceFile) []finding {
	if !f.inTest {
		return nil
	}
	var found []finding
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		of, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch of.Sel.Name {
		case "SkipNow":
			found = append(found, f.at(call, "a test is skipped without a reason", "say it with Skip"))
		case "Skip", "Skipf":
			if x, ok := of.X.(*ast.Ident); !ok || x.Obj == nil { // not a test, such as a method of a decoder
				return true
			}
			if len(call.Args) == 0 {
				found = append(found, f.at(call, "a test is skipped without a reason", "give one"))
			} else if text, ok := call.Args[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
				if len(strings.TrimSpace(text.Value)) < len(`"a word"`) {
					found = append(found, f.at(call, "a test is skipped without a reason that says something", "say what is missing, or what it would cost"))
				}
				if strings.Contains(text.Value, "make ") && !runsIt.MatchString(text.Value) {
					found = append(found, f.at(call, "a test is left to a target that .ci/run does not call", "end the reason with \"make test runs it\", or test-long, or test-race"))
				}
			}
		}
		return true
	})
	return found
}

func TestSkipRulesBite(t *testing.T) {
	for body, want := range map[string]int{
		`t.Skip("there is no python3")`: 0, `t.Skipf("there is no %s", "node")`: 0, `t.Skip(name)`: 0,
		`t.Skip("it is long: make test-long runs it")`: 0, `t.Skip("it is long: make soak runs it")`: 1, `t.Skip("run by make test-long")`: 1,
		`t.Skip()`: 1, `t.Skip("")`: 1, `t.Skip("  no")`: 1, `t.SkipNow()`: 1,
	} {
		f := parseSource(t, "events/a_test.go", []byte("package events\n\nfunc TestA(t *testing.T) { name := \"x\"; _ = name; "+body+" }\n"))
		if got := checkSkips(f); len(got) != want {
			t.Errorf("%s: %d findings, want %d: %v", body, len(got), want, got)
		}
	}
}
