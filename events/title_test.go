package events

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// AM-111: a title has 80 characters at most, ends at a word's end, and has no line breaks and
// nothing that does not show.
func TestTitleOf(t *testing.T) {
	eighty := strings.Repeat("abcd ", 16)[:79] + "x"
	for text, want := range map[string]string{
		"":                                  "",
		" \n\t\u2028 ":                      "",
		"\u202e\u200b\ufeff\u0000":          "",
		"hello":                             "hello",
		"  Where\r\nis\tmy \u2029 order? ":  "Where is my order?",
		"a\x00b\x1b[31mc\u202edc":           "a b [31mcdc",
		eighty:                              eighty,
		eighty + "y":                        strings.TrimRight(eighty[:74], " "),
		eighty + " more":                    eighty,
		strings.Repeat("x", 200):            strings.Repeat("x", 80),
		strings.Repeat("ü", 200):            strings.Repeat("ü", 80),
		strings.Repeat("x", 79) + "e\u0301": strings.Repeat("x", 79),
		"👩\u200d🚀 to space":                 "👩\u200d🚀 to space",
		"\u200d\u200d":                      "",
		"bad \xff byte":                     "bad byte",
	} {
		if got := TitleOf(text); got != want {
			t.Errorf("TitleOf(%q) is %q, want %q", text, got, want)
		}
	}
	hostile := strings.Repeat("\n\u202e \x07", 1<<20) + strings.Repeat("word ", 1<<20)
	if got := TitleOf(hostile); utf8.RuneCountInString(got) > MaxTitle || !strings.HasPrefix(got, "word word") || strings.ContainsAny(got, "\n\x07\u202e") {
		t.Errorf("of ten megabytes: %q", got)
	}
}

// AM-111: what a model wrote is a title as it is, or none.
func TestModelTitle(t *testing.T) {
	for text, want := range map[string]string{
		"Order 42": "Order 42", " \"Order 42\"\n": "Order 42", "": "", "  ": "", `""`: "", "a\nb": "", "a\tb": "", "a  b": "", "a\u202eb": "",
		strings.Repeat("ü", MaxTitle): strings.Repeat("ü", MaxTitle), strings.Repeat("ü", MaxTitle+1): "", strings.Repeat("x", 10<<10): "",
		"\xff": "", "\x00": "", `"Order" 42`: `"Order" 42`,
	} {
		if got := ModelTitle(text); got != want {
			t.Errorf("%.40q makes %q, want %q", text, got, want)
		}
	}
}
