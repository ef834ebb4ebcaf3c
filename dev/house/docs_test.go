package house

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
)

var (
	testName = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`)
	link     = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	goBlock  = regexp.MustCompile("(?s)```(?:go|diff)\n.*?\n```")
)

// checkPage finds what a page names and is not there: tests, and files that it
// links to.
func checkPage(page, text string, tests map[string]bool, there func(path string) bool) (wrong []string) {
	text = goBlock.ReplaceAllString(text, "") // what Go code names is no promise of the page
	for _, name := range testName.FindAllString(text, -1) {
		if !tests[name] {
			wrong = append(wrong, page+": there is no "+name)
		}
	}
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if to := m[1]; !strings.Contains(to, "://") && !there(filepath.Join(filepath.Dir(page), to)) {
			wrong = append(wrong, page+": there is no "+to)
		}
	}
	return wrong
}

// Pages name only tests and files that are there, so that a promise cannot outlive
// the test that shows it.
func TestPagesNameWhatIsThere(t *testing.T) {
	files, tests := tree(t), map[string]bool{}
	for _, f := range files {
		if !f.inTest {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[fn.Name.Name] = true
			}
		}
	}
	top := repository.Root()
	pages, err := filepath.Glob(filepath.Join(top, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"docs/*.md", "docs/adr/*.md", "docs/start/*.md", "examples/*/*.md"} {
		more, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	if len(pages) < 20 {
		t.Fatalf("only %d pages were found", len(pages))
	}
	there := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range checkPage(page, string(text), tests, there) {
			t.Error(w)
		}
	}
}

func TestPageRulesBite(t *testing.T) {
	tests := map[string]bool{"TestThere": true}
	there := func(path string) bool { return path == filepath.Join("docs", "there.md") }
	text := "```go\nfunc TestNew() { c.m[f](t.x()) }\n```\n`TestThere`, `TestGone`; [a](there.md#part), [b](gone.md), [c](https://example.org/x)"
	if got := strings.Join(checkPage(filepath.Join("docs", "page.md"), text, tests, there), "; "); got != "docs/page.md: there is no TestGone; docs/page.md: there is no gone.md" {
		t.Error(got)
	}
}
