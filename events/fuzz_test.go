package events

import (
	"bytes"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// seedEvents adds every golden file, and events in other layouts.
func seedEvents(f *testing.F) {
	for _, pattern := range []string{"testdata/golden/*.json", "testdata/old/*.json"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(bytes.TrimSuffix(b, []byte("\n")))
		}
	}
	e := samples()[0].event()
	f.Add(indent(f, body(f, &e)))
	f.Add([]byte(`{"specversion":"1.0","id":"1","source":"//threads/","type":"x","time":"2026-02-20T10:00:00Z","threadversion":1}`))
}

// For any input: no panic; both decoders agree; a decoded event can be encoded, and decodes to
// the same event again.
func FuzzDecodeEvent(f *testing.F) {
	seedEvents(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		compareEvents(t, b)
		e, err := DecodeEvent(b)
		if err != nil {
			return
		}
		once := body(t, &e)
		again, err := DecodeEvent(once)
		if err != nil {
			t.Fatalf("%s\nwas written as\n%s\nwhich cannot be read: %v", b, once, err)
		}
		if twice := body(t, &again); !bytes.Equal(once, twice) {
			t.Fatalf("%s\nthen\n%s", once, twice)
		}
	})
}

func FuzzDecodeCommit(f *testing.F) {
	c := commitOf(f, turn())
	f.Add(c.Body, int64(12))
	f.Add([]byte("[]"), int64(0))
	f.Add(indent(f, c.Body), int64(12))
	for _, s := range samples()[:8] {
		e := s.event()
		f.Add([]byte("["+string(body(f, &e))+"]"), int64(7))
	}
	f.Fuzz(func(t *testing.T, b []byte, version int64) {
		compareCommits(t, b, version)
		c, err := DecodeCommit(tenant, thread, 1, version, "", b)
		if err != nil {
			return
		}
		ReplyOf(c, cmdID)
		_ = ValidateTimeline(c.Events)
		for i := range c.Events {
			if r, ok := Lookup(c.Events[i].Type); ok && r.Transient {
				return
			}
		}
		once := commitOf(t, c.Events)
		again, err := reread(once)
		if err != nil {
			t.Fatalf("%s\nwas written as\n%s\nwhich cannot be read: %v", b, once.Body, err)
		}
		if twice := commitOf(t, again.Events); !bytes.Equal(once.Body, twice.Body) || once.Chain != twice.Chain {
			t.Fatalf("%s\nthen\n%s", once.Body, twice.Body)
		}
	})
}

// ParseTime against a regular expression and the standard library.
func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"2026-02-20T10:00:00.000Z", "2024-02-29T23:59:59.999999999Z", "1969-12-31T00:00:00Z", "2026-02-30T00:00:00Z", "9999-12-31T23:59:60Z", "x"} {
		f.Add(s)
	}
	pattern := regexp.MustCompile(`^` + timeExpr + `$`)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTime(s)
		want, wantErr := time.Parse(time.RFC3339Nano, s)
		valid := pattern.MatchString(s) && wantErr == nil && want.Year() >= 1970
		if (err == nil) != valid || valid && got != TimeOf(want) {
			t.Fatalf("%q is %s, %v; want %s, %v", s, got, err, want, valid)
		}
		if !valid {
			return
		}
		if back, err := ParseTime(got.String()); err != nil || back != got {
			t.Fatalf("%q, written as %s, is %s: %v", s, got, back, err)
		}
		if back, err := ParseTime(got.ISO()); err != nil || back != got-got%1000 {
			t.Fatalf("%q, written as %s, is %s: %v", s, got.ISO(), back, err)
		}
	})
}

// Parsing a subject and building it again returns the same subject.
func FuzzParseSubjects(f *testing.F) {
	n := DefaultNames()
	for _, s := range []string{
		n.Log(tenant, thread), n.Log(tenant, KeyAggregate("k")), n.Timeline(tenant, thread, ItemCreatedType), n.Command(tenant, "thread.create"),
		n.Submit(tenant, "item.create"), n.Query(tenant, "item.list"), "skein.log..x", "skein.timeline...", "skein....", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if tenant, aggregate, ok := n.ParseLog(s); ok && (n.Log(tenant, aggregate) != s || tenant == "" || aggregate == "") {
			t.Fatalf("%q: %q, %q", s, tenant, aggregate)
		}
		if tenant, thread, kind, ok := n.ParseTimeline(s); ok && (n.Timeline(tenant, thread, kind) != s || tenant == "" || thread == "" || kind == "") {
			t.Fatalf("%q: %q, %q, %q", s, tenant, thread, kind)
		}
		kind, tenant, name, ok := n.ParseRequest(s)
		if ok && (n.Prefix+"."+kind+"."+tenant+"."+name != s || kind == "" || tenant == "" || name == ".") {
			t.Fatalf("%q: %q, %q, %q", s, kind, tenant, name)
		}
	})
}

// An integer in any notation, against exact arithmetic.
func FuzzInt(f *testing.F) {
	for _, s := range []string{"0", "-0", "7", "1.0", "1e2", "12e-1", "120e-1", "9007199254740991", "9007199254740992", "-9007199254740991",
		"1e400", "1E-400", "0e999999999", "1e999999999", "1.5", `"1"`, "null", "true", "[1]", "01", "+1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !jsontext.Value(s).IsValid() {
			return
		}
		n, read := ParseInt(JSON(strings.TrimSpace(s)))
		if want, ok := exact(s); ok != read && want != nil || ok && want.Int64() != n {
			t.Fatalf("%q is read as %d, %v; want %v, %v", s, n, read, want, ok)
		}
		if n > maxInt || n < -maxInt {
			t.Fatalf("%q is read as %d", s, n)
		}
	})
}

// exact returns a number of modest length by arithmetic, and whether ParseInt should accept
// it; nil if it is too long to compute or not a number.
func exact(s string) (*big.Int, bool) {
	raw := JSON(strings.TrimSpace(s))
	_, exponent, _ := strings.Cut(strings.ToLower(string(raw)), "e")
	if jsontext.Value(raw).Kind() != '0' || !jsontext.Value(s).IsValid() || len(raw) > 100 || len(exponent) > 4 {
		return nil, false
	}
	r, ok := new(big.Rat).SetString(string(raw))
	if !ok {
		return nil, false
	}
	return r.Num(), r.IsInt() && new(big.Int).Abs(r.Num()).Cmp(big.NewInt(maxInt)) <= 0
}
