package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is the width of prose in pages.
const columns = 100

func TestPages_ProseIsWrapped(t *testing.T) {
	root := top(t)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "docs/start/*.md", "examples/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			name, err := filepath.Rel(root, page)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range tooWide(string(text)) {
				t.Errorf("%s:%d: a line of prose has more than %d columns; break it", name, n, columns)
			}
		}
	}
}

// tooWide returns the numbers of the lines of prose that are too long and have a space at
// which they could be broken. Tables, code and comments are no prose.
func tooWide(text string) (lines []int) {
	inCode, number := false, 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		content := strings.TrimLeft(line, " ")
		if strings.HasPrefix(content, "```") {
			inCode = !inCode
			continue
		}
		if inCode || strings.HasPrefix(line, "    ") || strings.HasPrefix(content, "|") || strings.HasPrefix(content, "<") || strings.HasPrefix(content, "#") {
			continue
		}
		if _, rest, item := strings.Cut(content, ". "); item && strings.HasPrefix(rest, "`") { // a list of the forms of lines
			content = rest
		}
		if utf8.RuneCountInString(line) > columns && strings.Contains(content, " ") {
			lines = append(lines, number)
		}
	}
	return lines
}

func TestWrapRuleBites(t *testing.T) {
	words, word := strings.Repeat("word ", 21), strings.Repeat("x", 110)
	for text, want := range map[string]int{
		words:                              1,
		"short\n- " + words:                1,
		word:                               0,
		"1. `" + word + "`:":               0,
		"| " + words + " |":                0,
		"```sh\n" + words + "\n```":        0,
		"    " + words:                     0,
		"```\n```\n" + words:               1,
		strings.Repeat("ü ", 40) + "short": 0,
	} {
		if got := tooWide(text); len(got) != want {
			t.Errorf("%q: lines %v, want %d", text, got, want)
		}
	}
}
