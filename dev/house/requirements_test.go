package house

import (
	"go/ast"
	"regexp"
	"testing"
)

var requirementID = regexp.MustCompile(`\b(EK|SA|AG|AM|C)-[0-9]+`)

// surprises are the files whose comments may cite the id of a requirement, with the
// rule that would surprise a reader there. Ids belong in tests and in
// dev/generate/requirements.txt.
func surprises() map[string]string {
	return map[string]string{
		"events/subject.go": "a state that is too large is refused whole, where the source truncates it",
	}
}

func TestComments_CiteNoRequirement(t *testing.T) {
	for _, f := range tree(t) {
		if surprises()[f.path] == "" {
			report(t, checkCitations(f))
		}
	}
}

// checkCitations finds ids in the comments of product code, and in its texts, which
// become docs.
func checkCitations(f sourceFile) []finding {
	if f.inTest {
		return nil
	}
	const fix = "say the rule in words and cite the id in the test that shows it, or list the file in surprises with the reason"
	var found []finding
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if id := requirementID.FindString(c.Text); id != "" {
				found = append(found, f.at(c, "a comment cites "+id, fix))
			}
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if text, is := n.(*ast.BasicLit); is {
			if id := requirementID.FindString(text.Value); id != "" {
				found = append(found, f.at(text, "a text cites "+id, fix))
			}
		}
		return true
	})
	return found
}

func TestCitationRulesBite(t *testing.T) {
	id := "EK" + "-1"
	for text, want := range map[string]int{
		"package p // " + id: 1, "package p\nvar a = \"" + id + "\"": 1, "/* as\n" + id + " says */\npackage p": 1,
		"package p // EK 4.1": 0, "package p // UTC-10": 0,
	} {
		if got := checkCitations(parseSource(t, "events/a.go", []byte(text))); len(got) != want {
			t.Errorf("%q: %v", text, got)
		}
		if got := checkCitations(parseSource(t, "events/a_test.go", []byte(text))); len(got) != 0 {
			t.Errorf("%q in a test: %v", text, got)
		}
	}
}
