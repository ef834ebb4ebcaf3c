package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/skein-threads/skein/console/markdown"
)

// mostRendered is above what the renderer makes of any text.
const mostRendered = 4<<20 + 1024

// The pages whose renderings are known are safe, too.
func TestMarkdown_GoldenPagesAreSafe(t *testing.T) {
	t.Parallel()
	for _, text := range markdownPages(t) {
		checkSafe(t, string(markdown.New().Render(text)))
	}
}

// markdownPages returns the texts of the renderer's golden files.
func markdownPages(t testing.TB) (texts []string) {
	t.Helper()
	pages, err := filepath.Glob("../../console/markdown/testdata/golden/*.md")
	if err != nil || len(pages) < 2 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// checkSafe refuses all that a text must not bring into a page.
func checkSafe(t *testing.T, rendered string) {
	t.Helper()
	roots, err := html.ParseFragment(strings.NewReader(rendered), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
	if err != nil {
		t.Fatal(err)
	}
	var check func(n *html.Node, depth int)
	check = func(n *html.Node, depth int) {
		if n.Data == "a" && n.Parent != nil && n.Parent.Data == "a" {
			t.Error("a link in a link")
		}
		if n.Type == html.CommentNode || n.Type == html.DoctypeNode {
			t.Errorf("a comment: %q", n.Data)
		}
		if n.Type == html.ElementNode {
			checkElement(t, n)
		}
		for c := n.FirstChild; c != nil && depth < 400; c = c.NextSibling {
			check(c, depth+1)
		}
	}
	for _, n := range roots {
		check(n, 0)
	}
}

func checkElement(t *testing.T, n *html.Node) {
	t.Helper()
	const elements = " a p h1 h2 h3 h4 h5 h6 ul ol li blockquote table thead tbody tr th td pre code span em strong del hr br input "
	if !strings.Contains(elements, " "+n.Data+" ") {
		t.Errorf("an element <%s>", n.Data)
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "class", "data-language", "align", "start", "rel", "target":
		case "type", "checked", "disabled":
			if n.Data != "input" {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		case "href":
			scheme, _, _ := strings.Cut(strings.ToLower(a.Val), ":")
			if n.Data != "a" || scheme != "http" && scheme != "https" && scheme != "mailto" {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		default:
			t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
		}
	}
}

// Each text would cost an unguarded parser time or space far beyond its own length.
func TestMarkdown_HostileTextIsBounded(t *testing.T) {
	long := strings.Repeat
	for name, text := range map[string]string{
		"one line of 5 MB":       long("a", 5<<20),
		"words on one line":      long("a *b* ", 5<<20/6),
		"nested lists":           long("- ", 10_000) + "x",
		"nested numbers":         long("1. ", 10_000) + "x",
		"nested quotes":          long("> ", 10_000) + "x",
		"nested and empty":       long("> ", 10_000),
		"nested pluses":          long("+ ", 10_000),
		"quotes without a space": long(">", 5<<20) + "x",
		"stairs":                 stairs(10_000),
		"brackets":               long("[", 10_000) + long("]", 10_000),
		"many brackets":          long("[", 100_000),
		"links in links":         long("[a](", 20_000),
		"images":                 long("![", 20_000),
		"stars":                  long("*a ", 20_000),
		"stars and lines":        long("*a _b **c __d ", 5_000),
		"tildes":                 long("~~a ", 20_000),
		"ticks":                  ticks(500),
		"comments":               long("<!-- ", 20_000),
		"tags":                   long("<a ", 30_000),
		"addresses":              long("www.", 30_000),
		"schemes":                long("http://a", 15_000),
		"mail":                   long("a@", 50_000),
		"a wide table":           "|" + long("a|", 10_000) + "\n|" + long("-|", 10_000) + "\n" + long("|\n", 10_000),
		"a long table":           "|a|b|\n|-|-|\n" + long("|1|2|\n", 500_000),
		"a wide table in quotes": "> |" + long("a|", 10_000) + "\n> |" + long("-|", 10_000) + "\n" + long("> |\n", 10_000),
		"references":             "[a]: https://example.org/" + long("x", 60_000) + "\n\n" + long("[a]", 20_000),
		"short references":       "[a]: https://example.org/" + long("x", 2_000) + "\n\n" + long("[a]\n\n", 20_000),
		"definitions":            long("[a]: b\n", 15_000),
		"entities":               long("&amp", 30_000),
		"code blocks":            long("```x\n```\n", 14_000),
		"code":                   "```js\n" + long("`${", 5_000) + "\n```",
		"regular expressions":    "```js\n" + long("a = /(((((", 1_500) + "\n```",
		"escapes":                long("\\\n", 60_000),
		"headings":               long("# a\n", 30_000),
		"lines under text":       long("a\n=\n", 30_000),
		"invalid":                long("\xff", 5<<20),
		"overrides":              long("\u202e", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			got := string(markdown.New().Render(text))
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %s", took)
			} else if took > 300*time.Millisecond {
				t.Logf("took %s", took)
			}
			if len(got) > mostRendered {
				t.Errorf("%d bytes", len(got))
			}
			checkSafe(t, got)
		})
	}
}

// stairs is a list of which each line is deeper than the one before.
func stairs(depth int) string {
	var b strings.Builder
	for i := range depth {
		if b.Len() > 5<<20 {
			break
		}
		b.WriteString(strings.Repeat(" ", 2*i) + "- a\n")
	}
	return b.String()
}

// ticks is code spans that are opened and never closed.
func ticks(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("`", i+1) + "a")
	}
	return b.String()
}

func FuzzMarkdown(f *testing.F) {
	for _, text := range markdownPages(f) {
		f.Add(text)
	}
	f.Add("> - 1. [a](b) ![c](d \"e\") <f> `g` **h** |i|\n|-|")
	f.Fuzz(func(t *testing.T, text string) {
		got := string(markdown.New().Render(text))
		if len(got) > mostRendered {
			t.Errorf("%d bytes", len(got))
		}
		checkSafe(t, got)
	})
}
