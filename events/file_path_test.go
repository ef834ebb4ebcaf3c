package events

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Every rule of docs/files.md: SA-95, SA-96.
func TestFilePath(t *testing.T) {
	long := strings.Repeat("n", 255)
	for given, want := range map[string]string{
		"/a": "/a", "a": "/a", "a/b": "/a/b", "/a/b/": "/a/b", "//a///b//": "/a/b", "": "/", "/": "/", "///": "/",
		"/A": "/A", "/ ": "/ ", "/a b.txt": "/a b.txt", "/...": "/...", "/..a": "/..a", "/.hidden": "/.hidden", "/a:b*?<>|\"": "/a:b*?<>|\"",
		"/caf\u00e9": "/caf\u00e9", "/cafe\u0301": "/caf\u00e9", "/\u212b": "/\u00c5", "/日本/語": "/日本/語", "/key:x": "/key:x", "/%2e%2e": "/%2e%2e",
		"/" + long: "/" + long,
	} {
		got, err := FilePath(given)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", given, got, err, want)
		}
	}
	for _, given := range []string{
		"..", "/..", "../a", "/a/../b", "/a/..", "/./a", ".", "/a/.", `/a\b`, `\`, "/a\x00b", "/a\nb", "/a\x7f", "/a\u0085", "/a\u202eb", "/a\u2028b", "/\xff",
		"/\xc0\xae\xc0\xae/a", "/" + long + "n", strings.Repeat("n", 10_000), strings.Repeat("/nnn", 1025), strings.Repeat("/n", 65),
		"/" + strings.Repeat("é", 128),
	} {
		got, err := FilePath(given)
		e := AsError(err)
		if err == nil || e.Code != InvalidRequest || e.Details == nil || e.Details.Path != "/path" {
			t.Errorf("%.40q was taken as %.40q: %v", given, got, err)
		}
	}
}

func TestSplitPath(t *testing.T) {
	for path, want := range map[string][2]string{"/": {"", ""}, "/a": {"/", "a"}, "/a/b": {"/a", "b"}, "/a/b/c.d": {"/a/b", "c.d"}} {
		if dir, name := SplitPath(path); dir != want[0] || name != want[1] {
			t.Errorf("%s: %q %q", path, dir, name)
		}
	}
}

// For any input, an accepted path is in its canonical form, stays below the root and within
// the bounds.
func FuzzFilePath(f *testing.F) {
	for _, seed := range []string{"/a/b", "..", "a//b", "cafe\u0301/x", "\u0344", "/a\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		path, err := FilePath(given)
		if err != nil {
			return
		}
		again, err := FilePath(path)
		if err != nil || again != path {
			t.Fatalf("%q became %q and then %q: %v", given, path, again, err)
		}
		if path[0] != '/' || len(path) > MaxPathBytes || !utf8.ValidString(path) || strings.Contains(path, "//") || strings.ContainsAny(path, "\x00\\") {
			t.Fatalf("%q became %q", given, path)
		}
		for name := range strings.SplitSeq(path[1:], "/") {
			if name == "." || name == ".." || len(name) > MaxNameBytes || name == "" && path != "/" {
				t.Fatalf("%q became %q", given, path)
			}
		}
	})
}
