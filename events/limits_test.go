package events

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// An integer is accepted in any notation, up to what every reader represents exactly; other
// and larger values are refused.
func TestParseInt(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-7": -7, "10": 10, "1234567890": 1234567890, "999999999999999": 999999999999999, "-99999999999999": -99999999999999,
		"1000000000000000": 1e15, "9007199254740991": maxInt, "-9007199254740991": -maxInt, "9007199254740991.0": maxInt,
		"1.0": 1, "-1.50e1": -15, "1e2": 100, "1E2": 100, "1e+2": 100, "100e-2": 1, "1.5e1": 15, "0e9999": 0, "0.0": 0, "0.000e-5": 0, "12.5e1": 125,
		"0.0000000000000000000000000000001e31": 1, "10000000000000000000000000000000e-31": 1, "9007199254740991e0": maxInt, "900719925474099.1e1": maxInt,
	} {
		if got, ok := ParseInt(raw(text)); !ok || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		`"1"`, `null`, `true`, `[]`, `{}`, ``, "1.5", "1e-1", "15e-1", "0.1", "9007199254740992", "-9007199254740992", "9007199254740991.5", "1e16", "1e17", "10e15",
		"1e99999999999999999999", "1e-99999999999999999999", "1e1000000", "-1e1000000", "99999999999999999999", "12345678901234567e-1",
	} {
		if got, ok := ParseInt(raw(text)); ok {
			t.Errorf("%s is %d", text, got)
		}
	}
}

// A value that an error quotes is cut at 80 bytes, and never within a character.
func TestClip(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("x", 80): strings.Repeat("x", 80), strings.Repeat("x", 81): strings.Repeat("x", 80) + "...",
		strings.Repeat("x", 79) + "éy": strings.Repeat("x", 79) + "...", "": "",
	} {
		if got := clip(text); got != want || !utf8.ValidString(got) {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
}

// Names and paths are limited to exactly their limits.
func TestLimits(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("/x", n) }
	long := func(n int) string { // a path of so many bytes, of names that are short enough
		var b strings.Builder
		for b.Len()+101 <= n {
			b.WriteString("/" + strings.Repeat("x", 100))
		}
		if rest := n - b.Len(); rest > 0 {
			b.WriteString("/" + strings.Repeat("y", rest-1))
		}
		return b.String()
	}
	live := func(name string) error {
		_, err := CheckLiveName(name)
		return err
	}
	path := func(p string) error {
		_, err := FilePath(p)
		return err
	}
	kind := func(k string) error {
		_, err := CheckChunk(k, nil)
		return err
	}
	chunk := func(data string) error {
		_, err := CheckChunk("acme", raw(data))
		return err
	}
	for name, c := range map[string]struct {
		fits, not error
	}{
		"the depth of a path":      {path(deep(MaxPathDepth)), path(deep(MaxPathDepth + 1))},
		"the bytes of a path":      {path(long(MaxPathBytes)), path(long(MaxPathBytes + 1))},
		"a name in a path":         {path("/" + strings.Repeat("x", MaxNameBytes)), path("/" + strings.Repeat("x", MaxNameBytes+1))},
		"the name of a live event": {live(strings.Repeat("é", liveNameMax)), live(strings.Repeat("x", liveNameMax+1))},
		"the type of a chunk":      {kind(strings.Repeat("x", 128)), kind(strings.Repeat("x", 129))},
		"the data of a chunk":      {chunk(`"` + strings.Repeat("x", MaxEventBytes-2) + `"`), chunk(`"` + strings.Repeat("x", MaxEventBytes-1) + `"`)},
	} {
		if c.fits != nil || c.not == nil {
			t.Errorf("%s: %v at the limit, %v above it", name, c.fits, c.not)
		}
	}
	if err := path(strings.Repeat("/", 2*MaxPathBytes)); err != nil { // all of it goes
		t.Error(err)
	}
	if err := path(strings.Repeat("/", 2*MaxPathBytes+1)); err == nil {
		t.Error("a path was read whatever its length")
	}
}

// The edges of the alphabet of an id, and of the key of a definition.
func TestValidID_AlphabetEdges(t *testing.T) {
	for _, c := range []byte("azAZ09") {
		if !ValidID(string(c)) || keyToken(string(c)) != string(c) {
			t.Errorf("%q is no letter of an id, or of a key: %s", c, keyToken(string(c)))
		}
	}
	for _, c := range []byte("`{@[/:.") {
		if ValidID("a"+string(c)) || len(keyToken(string(c))) != 3 {
			t.Errorf("%q is a letter of an id, or of a key: %s", c, keyToken(string(c)))
		}
	}
	for _, name := range []string{"a", "a/b", "x.y:z", "/"} {
		ref := DefinitionRef{Kind: ToolKind, Name: name}
		if got, ok := ParseDefinitionKey(ref.Key()); !ok || got != ref {
			t.Errorf("%s comes back as %+v, %v", ref.Key(), got, ok)
		}
	}
	for _, bad := range []string{"tool", "tool.", "tool.=", "tool.=2", "tool.=2F=", "tool.=2f", "tool.=61", "tool.=zz", "tool.a.b"} {
		if got, ok := ParseDefinitionKey(bad); ok {
			t.Errorf("%s is the key of %+v", bad, got)
		}
	}
}

// A string that needs escapes in JSON decodes to itself.
func TestAppendQuote(t *testing.T) {
	for text, want := range map[string]string{
		"": `""`, "a b": `"a b"`, "\x1f": `"\u001f"`, " ": `" "`, "\x7f": "\"\x7f\"", "é": `"é"`, `"`: `"\""`, `\`: `"\\"`, "~!": `"~!"`,
	} {
		if got := string(appendQuote(nil, text)); got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
		if isPlain := strings.Trim(want, `"`) == text && !strings.ContainsAny(text, "é\"\\"); plain(text) != isPlain {
			t.Errorf("%q is plain: %v", text, plain(text))
		}
	}
}

// Each call of a list must be complete: an id, a function with its name, and arguments that
// are a string.
func TestParseToolCalls_Refusals(t *testing.T) {
	const whole = `{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}`
	for _, good := range []string{whole, strings.Replace(whole, `"type":"function",`, ``, 1)} {
		if calls, err := ParseToolCalls("[" + whole + "," + good + "]"); err != nil || len(calls) != 2 || calls[1].CallID != "c" || calls[1].Name != "n" {
			t.Errorf("%s: %+v, %v", good, calls, err)
		}
	}
	for _, bad := range []string{
		`{}`, strings.Replace(whole, `"id":"c",`, ``, 1), strings.Replace(whole, `"c"`, `""`, 1), `{"id":"c"}`, `{"id":"c","function":{}}`,
		strings.Replace(whole, `"name":"n",`, ``, 1), strings.Replace(whole, `"n"`, `""`, 1), strings.Replace(whole, `,"arguments":"{}"`, ``, 1),
		strings.Replace(whole, `"type":"function"`, `"type":"wish"`, 1), strings.Replace(whole, `"id"`, `"more":1,"id"`, 1),
	} {
		if calls, err := ParseToolCalls("[" + bad + "]"); err == nil || AsError(err).Code != InvalidRequest {
			t.Errorf("%s: %+v, %v", bad, calls, err)
		}
	}
}

// The advice of a refused move is the one for that move.
func TestMachine_Advice(t *testing.T) {
	m := ThreadMachine()
	for _, from := range m.States {
		for _, to := range m.States {
			err := m.Check("T-1", from, to)
			advised := err != nil && strings.Contains(err.Error(), "thread.update and archived")
			if want := to == ThreadClosed && (from == ThreadOpen || from == ThreadFailed); advised != want {
				t.Errorf("from %s to %s: %v", from, to, err)
			}
		}
	}
}
