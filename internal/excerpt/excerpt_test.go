package excerpt

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// nilError is an error whose text cannot be read: it is a nil pointer.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func TestOfError(t *testing.T) {
	var broken *nilError
	const says = "an error of the type *excerpt.nilError, whose text cannot be read"
	if got := OfError(broken, 100); got != says {
		t.Errorf("got %q", got)
	}
	if got := Readable(broken); got == nil || got.Error() != says {
		t.Errorf("got %v", got)
	}
	whole := &nilError{"no such customer"}
	if got := OfError(whole, 7); got != "no such..." {
		t.Errorf("got %q", got)
	}
	if got := Readable(whole); got != error(whole) {
		t.Errorf("got %v", got)
	}
	if got := Readable(nil); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc..."},
		{"abé", 3, "ab..."},
		{"ab\xff", 8, "ab\uFFFD"},
		{"日本", 0, "..."},
	} {
		if got := Of(c.text, c.most); got != c.want {
			t.Errorf("Of(%q, %d) is %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func FuzzHead(f *testing.F) {
	f.Add("a\xffé", 2)
	f.Add(strings.Repeat("\xff", 20), 7)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most = max(most, 0); most > 1<<16 {
			return
		}
		head := Head(text, most)
		if len(head) > most || !utf8.ValidString(head) {
			t.Errorf("Head(%q, %d) is %q", text, most, head)
		}
		if utf8.ValidString(text) && (!strings.HasPrefix(text, head) || len(text)-len(head) >= utf8.UTFMax && len(head)+utf8.UTFMax <= most) {
			t.Errorf("Head(%q, %d) is %q, which is not as much as fits", text, most, head)
		}
	})
}
