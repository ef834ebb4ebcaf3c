package files

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// freely lets a search do what it wants to.
func freely(int) bool { return true }

// plainly searches as simply as can be.
func plainly(text []byte, pattern string) []events.GrepMatch {
	re := regexp.MustCompile(pattern)
	var out []events.GrepMatch
	lines := bytes.Split(text, []byte("\n"))
	if last := len(lines) - 1; len(lines[last]) == 0 {
		lines = lines[:last] // what ends in a line end has no line after it
	}
	for i, line := range lines {
		if line = bytes.TrimSuffix(line, []byte("\r")); re.Match(line) {
			out = append(out, events.GrepMatch{Line: int64(i + 1), Content: clip(line)})
		}
	}
	return out
}

// For any text, any pattern, and any pieces in which the text arrives, the finder returns the
// lines that a plain search returns. SA-120.
func TestFinder_FindsWhatAPlainSearchFinds(t *testing.T) {
	patterns := []string{
		"a", "ab+", "^a", "b$", "^$", `\s`, `\bab\b`, "[^a]", "[^b]b", "(?i)A", `a\nb`, `\Aab`, `b\z`, "a|^b", "(?s)a.b", "(?m)^b$", "", "a*", `\r`, "é", `\x{e9}|b.a`,
		`\Qa`, `[\s\S]`, `(?U)a+`, `$`, `^`, `a.?$`,
		"ab", "ab|bx", "(ab)+|xa", "(?i)AB", "(?i)éab|xb", "^ab$", "(ab){2,}", "ab|a", "(?i)xAb.?$", "a(b x|ab)", "(?i:ab)|xx", "ba?ab",
	}
	alphabet := []string{"a", "b", "ab", " ", "\n", "\n\n", "\r\n", "\r", "é", "x", "\xff"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		var text strings.Builder
		for range r.IntN(30) {
			text.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		pattern := patterns[r.IntN(len(patterns))]
		find, err := newFinder(pattern)
		if err != nil {
			t.Fatal(err)
		}
		s := scan{find: find, spend: freely, limit: 1000, line: 1}
		for rest := []byte(text.String()); len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			s.add(rest[:n])
			rest = rest[n:]
		}
		s.end()
		want := plainly([]byte(text.String()), pattern)
		if len(s.matches) != len(want) {
			t.Fatalf("%q in %q: %v, want %v", pattern, text.String(), s.matches, want)
		}
		for i := range want {
			if s.matches[i] != want[i] {
				t.Fatalf("%q in %q: %v, want %v", pattern, text.String(), s.matches, want)
			}
		}
	}
}

// A line longer than a buffer is one line, whichever of its parts match; and
// memory holds a part of it.
func TestLongLines(t *testing.T) {
	find, err := newFinder("needle")
	if err != nil {
		t.Fatal(err)
	}
	s := scan{find: find, spend: freely, limit: 10, line: 1}
	hay := bytes.Repeat([]byte("x"), events.FilePieceBytes)
	s.add([]byte("first\n"))
	for range 9 {
		s.add(append([]byte("needle"), hay[6:]...))
		if cap(s.rest) > 4*LongLine {
			t.Fatalf("%d bytes are kept", cap(s.rest))
		}
	}
	s.add([]byte("needle\nneedle\n"))
	s.end()
	if len(s.matches) != 2 || s.matches[0].Line != 2 || s.matches[1].Line != 3 || len(s.matches[0].Content) != LineBytes {
		t.Errorf("%d matches: %d, %d", len(s.matches), s.matches[0].Line, s.matches[len(s.matches)-1].Line)
	}
}

// BenchmarkGrep says how fast text is searched, once it is there.
func BenchmarkGrep(b *testing.B) {
	line := "2026-02-20T12:00:00Z level=info msg=\"the order was shipped\" id=0195e5d0 took=12ms\n"
	text := []byte(strings.Repeat(line, 64<<20/len(line)))
	for name, pattern := range map[string]string{"literal": "was lost", "class": `took=[0-9]{4}ms`, "any case": "(?i)was lost", "anchored": `^level=error`, "alternatives": "lost|stolen|broken"} {
		find, err := newFinder(pattern)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s := scan{find: find, spend: freely, limit: 1000, line: 1}
				for rest := text; len(rest) > 0; {
					n := min(len(rest), events.FilePieceBytes)
					s.add(rest[:n])
					rest = rest[n:]
				}
				s.end()
				if len(s.matches) > 0 {
					b.Fatal(s.matches[0])
				}
			}
		})
	}
}
