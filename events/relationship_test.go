package events

import (
	"strings"
	"testing"
)

// AM-55, AM-56, AM-114: the titles of forks, as JavaScript makes them.
func TestForkTitle(t *testing.T) {
	for title, want := range map[string]string{
		"X": "Forked: X", "Forked: X": "Forked(2): X", "Forked(2): X": "Forked(3): X", "": "Forked: Untitled",
		"Forked(9): Forked: X": "Forked(10): Forked: X", "forked: X": "Forked: forked: X", " Forked: X": "Forked:  Forked: X",
		"Forked: ": "Forked: Forked: ", "Forked:X": "Forked: Forked:X", "Forked(): X": "Forked: Forked(): X", "Forked(-1): X": "Forked: Forked(-1): X",
		"Forked(2) : X": "Forked: Forked(2) : X", "Forked(2): a\nb": "Forked: Forked(2): a\nb", "Forked: a\u2028b": "Forked: Forked: a\u2028b",
		"Forked: a\rb": "Forked: Forked: a\rb", "Forked(02): X": "Forked(3): X", "Forked(0): X": "Forked(1): X", "Forked(٢): X": "Forked: Forked(٢): X",
		"Forked(9007199254740993): X": "Forked(9007199254740992): X", "Forked(999999999999999999999): X": "Forked(1e+21): X",
		"Forked(12345678901234567890): X": "Forked(12345678901234567000): X", "Forked(" + strings.Repeat("9", 400) + "): X": "Forked(Infinity): X",
		"Forked: Zoë's 日本": "Forked(2): Zoë's 日本",
	} {
		if got := ForkTitle(title); got != want {
			t.Errorf("%.80q: %.80q, want %.80q", title, got, want)
		}
	}
	for _, bomb := range []string{strings.Repeat("Forked: ", 128), "Forked(" + strings.Repeat("1", 1017), strings.Repeat("日", 1024)} {
		if got := ForkTitle(bomb); len([]rune(got)) > maxTitleLength || !strings.HasPrefix(got, "Forked") {
			t.Errorf("%.40q: %d characters", got, len([]rune(got)))
		}
	}
}
