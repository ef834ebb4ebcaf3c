package markdown

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func TestRender_GoldenFiles(t *testing.T) {
	pages, err := filepath.Glob("testdata/golden/*.md")
	if err != nil || len(pages) < 2 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		got := string(New().Render(string(text)))
		golden(t, strings.TrimSuffix(page, ".md")+".html", got)
	}
	golden(t, "testdata/golden/style.css", Stylesheet())
}

// A long text that is no Markdown to speak of is cut with a note, and what is shown is its
// beginning.
func TestRender_LongTextIsCut(t *testing.T) {
	got := string(New().Render("begin " + strings.Repeat("é", 5<<19)))
	if !strings.HasPrefix(got, `<pre class="plain">begin éé`) || !strings.Contains(got, "more bytes are not shown here") || strings.Contains(got, "\uFFFD") {
		t.Errorf("%.60s … %s", got, got[len(got)-80:])
	}
}

// Text within the limits is read as Markdown, however usual its length.
func TestRender_UsualTextIsMarkdown(t *testing.T) {
	for name, text := range map[string]string{
		"paragraphs": strings.Repeat("Some *text* with `code` and a [link](https://example.org).\n\n", 1500),
		"a table":    "|a|b|c|\n|-|-|-|\n" + strings.Repeat("|1|2|3|\n", 3000),
		"a rule":     "a\n\n" + strings.Repeat("-", 200) + "\n\nb\n\n" + strings.Repeat("* ", 100) + "\n\nc",
		"code":       "```\n" + strings.Repeat("line of code;\n", 2000) + "```\n",
		"code deep":  "```\n" + strings.Repeat(" ", 100) + "x\n```\n",
	} {
		if got := string(New().Render(text)); strings.HasPrefix(got, `<pre class="plain">`) {
			t.Errorf("%s is shown as it is", name)
		}
	}
}

func TestVisible_HiddenCharactersHaveNames(t *testing.T) {
	for text, want := range map[string]string{
		"plain é 漢 👩‍🚀 ❤️": "plain é 漢 👩‍🚀 ❤️",
		"a\u202eb":         "a⟨U+202E⟩b",
		"\u2066a\u2069":    "⟨U+2066⟩a⟨U+2069⟩",
		"a\x00b\x1b[1m":    "a⟨U+0000⟩b⟨U+001B⟩[1m",
		"a\xffb":           "a\uFFFDb",
		"a\tb\r\nc":        "a\tb\r\nc",
		"\U000E0041":       "⟨U+E0041⟩",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestCode_ColorsKnownLanguages(t *testing.T) {
	if got := string(New().Code("func f() {}", "go")); !strings.Contains(got, `<span class="hl-key">func</span>`) {
		t.Error(got)
	}
	if got := string(New().Code("<func>", "no such language")); got != "<pre class=\"code\" tabindex=\"0\"><code>&lt;func&gt;</code></pre>\n" {
		t.Error(got)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it):\n%s", name, got)
	}
}

func BenchmarkRender(b *testing.B) {
	text, err := os.ReadFile("testdata/golden/answer.md")
	if err != nil {
		b.Fatal(err)
	}
	r := New()
	for b.Loop() {
		r.Render(string(text))
	}
}
