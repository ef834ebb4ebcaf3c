package events

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// The scanner is an optimisation: decodeEvent and decodeAny are authoritative, and these tests
// compare the two.

// The scanner accepts what Append writes; otherwise it would have no effect.
func TestScanner_AcceptsCanonicalLayout(t *testing.T) {
	for _, s := range samples() {
		for name, e := range map[string]Event{"full": s.event(), "bare": bare(s.event())} {
			raw := body(t, &e)
			var got Event
			scan := scanner{b: raw, last: &Event{}}
			if !scan.event(&got) || scan.at != len(raw) {
				t.Errorf("%s, %s: not taken", s.of, name)
				continue
			}
			compareEvents(t, raw)
		}
	}
	c := commitOf(t, turn())
	if again := (&Commit{Tenant: tenant, Thread: thread, Version: 12, Body: c.Body}); !again.scan() {
		t.Error("a commit is not taken")
	}
}

// bare removes the optional attributes.
func bare(e Event) Event {
	return Event{ID: e.ID, Type: e.Type, Time: e.Time, Tenant: e.Tenant, ThreadID: e.ThreadID, Version: e.Version, Data: e.Data}
}

// Each byte of an event is changed, dropped and doubled: both decoders must agree each time.
func TestScanner_AgreesOnDamagedEvents(t *testing.T) {
	old := samples()[0].event()
	old.Type, old.Data = "acme.happened", Unknown{Schema: "urn:acme:1", Raw: raw(`{"a":["x\\",{}]}`)}
	for _, e := range []Event{samples()[0].event(), samples()[6].event(), old} {
		text := string(body(t, &e))
		for i := range len(text) {
			compareEvents(t, []byte(text[:i]+text[i+1:]))
			compareEvents(t, []byte(text[:i]+text[i:i+1]+text[i:]))
			compareEvents(t, []byte(text[:i]))
			for _, c := range "\"\\{}[],: 0-a\x00\xff" {
				compareEvents(t, []byte(text[:i]+string(c)+text[i+1:]))
			}
		}
	}
}

// The same for the separators between the events of a commit.
func TestScanner_AgreesOnDamagedSeparators(t *testing.T) {
	c := commitOf(t, stream(samples()[2], samples()[2], samples()[2]))
	text := string(c.Body)
	for i := range len(text) {
		if !strings.ContainsRune("{}[],", rune(text[i])) {
			continue
		}
		for _, s := range []string{"", "{", "}", "[", "]", ",", "{}", " ", "\"", ",,", "null", text[i:min(i+2, len(text))]} {
			compareCommits(t, []byte(text[:i]+s+text[i+1:]), c.Version)
		}
	}
}

// Values shared with the previous event must be equal to it.
func TestScanner_DistinguishesEvents(t *testing.T) {
	list := turn()
	for i := range list {
		e := &list[i]
		switch i % 4 {
		case 1:
			e.Actor, e.Correlation, e.CommandID = "user:zo", execID+"0", ""
		case 2:
			e.Actor, e.Causation, e.TraceParent, e.CommandIndex = "", "x", "", 3
			e.Time++
		case 3:
			e.Actor = `user:zoë","traceparent":"x`
		}
	}
	c := commitOf(t, list)
	got, err := reread(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if !same(got.Events[i], list[i]) {
			t.Errorf("event %d: %#v, want %#v", i, got.Events[i], list[i])
		}
	}
	compareCommits(t, c.Body, c.Version)
}

// A name in a subject that needs escapes cannot be found by comparing bytes.
func TestScanner_NamesThatNeedEscapes(t *testing.T) {
	e := samples()[9].event() // of an item, so that the thread's name stands where it is compared
	e.Version = 1
	text := string(body(t, &e))
	for _, odd := range []string{`a","x":"b`, "a\\", "a\"", "a\n", "\xff"} {
		forged := "[" + strings.ReplaceAll(text, thread, odd) + "]"
		got, err := DecodeCommit(tenant, odd, 1, 1, "", []byte(forged))
		general := &Commit{Tenant: tenant, Thread: odd, Version: 1, Body: []byte(forged)}
		if (err == nil) != (general.decodeAny() == nil) {
			t.Errorf("%q: %v, %v", odd, got, err)
		}
	}
}

// Deeply nested data is left to the general decoder, which has its own limit.
func TestScanner_LeavesDeepNesting(t *testing.T) {
	e := samples()[2].event()
	e.Type = "acme.happened"
	for _, depth := range []int{1, maxScanDepth - 1, maxScanDepth, maxScanDepth + 1, 9_997, 9_998, 9_999, 10_001} {
		text := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		e.Data = Unknown{Schema: "urn:acme:1", Raw: raw(`{}`)}
		compareEvents(t, bytes.Replace(body(t, &e), []byte(`"data":{}`), []byte(`"data":{"a":`+text+`}`), 1))
	}
}

// compareEvents decodes one event both ways.
func compareEvents(t testing.TB, b []byte) {
	t.Helper()
	want, wantErr := decodeEvent(b)
	got, err := DecodeEvent(b)
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s\nis read as  %#v, %v\nand must be %#v, %v", b, got, err, want, wantErr)
	}
	var scanned Event
	s := scanner{b: b, last: &Event{}}
	if s.event(&scanned) && s.at == len(b) && (wantErr != nil || !reflect.DeepEqual(scanned, want)) {
		t.Fatalf("%s\nis scanned as %#v\nand must be   %#v, %v", b, scanned, want, wantErr)
	}
}

// compareCommits decodes one commit both ways.
func compareCommits(t testing.TB, b []byte, version int64) {
	t.Helper()
	want := &Commit{Tenant: tenant, Thread: thread, Version: version, Body: b}
	wantErr := want.decodeAny()
	got := &Commit{Tenant: tenant, Thread: thread, Version: version, Body: b}
	if scanned := got.scan(); scanned && (wantErr != nil || !reflect.DeepEqual(got, want)) {
		t.Fatalf("%s\nis scanned as %#v\nand must be   %#v, %v", b, got.Events, want.Events, wantErr)
	}
	if _, err := DecodeCommit(tenant, thread, 0, version, "", b); (err == nil) != (wantErr == nil) {
		t.Fatalf("%s\ngives %v and must give %v", b, err, wantErr)
	}
}
