package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// What a text says does not depend on its length, on where its escapes stand, or on what
// follows it; one without an escape is not copied.
func TestScanner_Texts(t *testing.T) {
	for n := range 60 {
		for _, end := range []string{"", `\\`, `\"`, `\\\"`, `\\\\`, `\u00e9`, "é", "]"} {
			for at := 0; at <= n; at += 7 {
				quoted := `"` + strings.Repeat("a", at) + end + strings.Repeat("b", n-at) + `"`
				want, err := jsontext.AppendUnquote(nil, quoted)
				if err != nil {
					t.Fatal(err)
				}
				raw := []byte(` : ` + quoted + ` , "x"`)
				s := scanner{raw: raw}
				var buf [8]byte
				got := s.readString(buf[:])
				if string(got) != string(want) || s.at != 3+len(quoted) {
					t.Fatalf("%s says %q and ends at %d", quoted, got, s.at-3)
				}
				if copied := len(got) > 0 && &got[0] != &raw[4]; copied != strings.Contains(quoted, `\`) && len(got) > 0 {
					t.Fatalf("%s is copied: %v", quoted, copied)
				}
				s = scanner{raw: raw}
				if got := s.value(); string(got) != quoted || s.at != 3+len(quoted) || cap(got) != len(got) {
					t.Fatalf("%s is read as %s, %d bytes of %d", quoted, got, s.at-3, cap(got))
				}
			}
		}
	}
	for _, other := range []string{`1`, `{"a":"b"}`, `["a"]`, `null`, ``, `"`} {
		s := scanner{raw: []byte(other)}
		if got := s.readString(nil); got != nil || s.at != len(other) {
			t.Errorf("%s says %q, and ends at %d", other, got, s.at)
		}
	}
}

// Values, lists and objects are told apart in any form of the same JSON, and a text that
// is cut short ends.
func TestScanner_Values(t *testing.T) {
	const compact = `{"a":[1,-2.5e3,"x\"]}",{"b":{}},[],[[null]]],"c":true,"d":false,"e":{"f":["}"]}}`
	spaced := jsontext.Value(compact)
	if err := spaced.Indent(); err != nil {
		t.Fatal(err)
	}
	var walk func(s *scanner) string
	walk = func(s *scanner) string {
		var out []string
		switch s.kind() {
		case '{':
			for s.begin(); s.next('}'); {
				name := string(s.readString(nil))
				out = append(out, fmt.Sprintf("%q:", name)+walk(s))
			}
			return "{" + strings.Join(out, ",") + "}"
		case '[':
			for s.begin(); s.next(']'); {
				out = append(out, walk(s))
			}
			return "[" + strings.Join(out, ",") + "]"
		default:
			return string(s.value())
		}
	}
	for _, raw := range []string{compact, string(spaced), "\t" + compact + "\r\n"} {
		s := scanner{raw: []byte(raw)}
		if got := walk(&s); got != compact {
			t.Errorf("%s\nis walked as %s", raw, got)
		}
		if s.kind() != 0 || s.next('}') {
			t.Errorf("%q follows", s.raw[s.at:])
		}
		s = scanner{raw: []byte(raw)}
		if got := s.value(); string(got) != strings.TrimSpace(raw) {
			t.Errorf("%s\nis the value %s", raw, got)
		}
		for n := range raw {
			s := scanner{raw: []byte(raw[:n])}
			s.value()
			if s.at > n {
				t.Fatalf("%d of %d bytes are read", s.at, n)
			}
			s = scanner{raw: []byte(raw[:n])}
			walk(&s)
			if member([]byte(raw[:n]), "z") != nil {
				t.Fatalf("%s has a z", raw[:n])
			}
		}
	}
	for name, want := range map[string]string{"a": `[1,-2.5e3,"x\"]}",{"b":{}},[],[[null]]]`, "c": "true", "e": `{"f":["}"]}`, "f": "", "b": ""} {
		if got := string(member([]byte(compact), name)); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
}

// Depth is counted outside texts, and up to the limit.
func TestDeeper(t *testing.T) {
	for raw, want := range map[string]int{
		`1`: 0, `{}`: 1, `[[]]`: 2, `[{"a":[]}]`: 3, `[[],[],[]]`: 2, `["[[[[",{"[[":"{{{"}]`: 2, `["\"[[["]`: 1, `[[[]],[[[]]],[]]`: 4,
	} {
		for most := range 8 {
			if got := nestsDeeper([]byte(raw), most); got != (want > most) {
				t.Errorf("%s is more than %d deep: %v", raw, most, got)
			}
		}
	}
}
