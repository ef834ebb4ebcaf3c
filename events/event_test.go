package events

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// body returns an event's bytes on the wire, over which the chain is computed.
func body(t testing.TB, e *Event) []byte {
	t.Helper()
	b, err := e.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// same compares events by their values, regardless of the bytes they were decoded from.
func same(a, b Event) bool {
	if a.Schema() != b.Schema() {
		return false
	}
	a.raw, b.raw, a.schema, b.schema = nil, nil, "", ""
	return reflect.DeepEqual(a, b)
}

// Each event as it is in the log, byte for byte: a change of one of these files changes the
// stored format. EK-177: the part of an extension is stored unchanged (part.created).
func TestGoldenEvents(t *testing.T) {
	var names []string
	for _, s := range samples() {
		e := s.event()
		got := append(body(t, &e), '\n')
		name := filepath.Join("testdata", "golden", string(s.of)+".json")
		names = append(names, name)
		if *update {
			if err := os.WriteFile(name, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%v; -update writes it", err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
		raw := bytes.TrimSuffix(want, []byte("\n"))
		back, err := DecodeEvent(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !same(back, e) {
			t.Errorf("%s returns\n%#v\nwant\n%#v", name, back, e)
		}
		if !bytes.Equal(back.Raw(), raw) {
			t.Errorf("%s: its bytes were not kept", name)
		}
	}
	there, err := filepath.Glob("testdata/golden/*.json")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	if !slices.Equal(there, names) {
		t.Errorf("golden files %q, want %q", there, names)
	}
}

// The same event has the same bytes, even from another value of the same data.
func TestAppend_IsCanonical(t *testing.T) {
	for _, s := range samples() {
		e := s.event()
		once := body(t, &e)
		spaced := e
		back, err := DecodeEvent(indent(t, once))
		if err != nil {
			t.Errorf("%s with spaces: %v", s.of, err)
			continue
		}
		spaced.Data = back.Data
		if again := body(t, &spaced); !bytes.Equal(once, again) {
			t.Errorf("%s:\n%s\nthen\n%s", s.of, once, again)
		}
	}
}

func TestAppend_ZeroDataRoundTrips(t *testing.T) {
	for _, r := range Catalog() {
		e := sample{r.Type, "x", r.New()}.event()
		back, err := DecodeEvent(body(t, &e))
		if err != nil {
			t.Errorf("%s: %v", r.Type, err)
			continue
		}
		// A required value is null where it was empty.
		again, err := DecodeEvent(body(t, &back))
		if err != nil || !same(back, again) {
			t.Errorf("%s: %v\n%#v\nthen\n%#v", r.Type, err, back, again)
		}
		if !reflect.DeepEqual(withoutNull(back.Data), withoutNull(r.New())) {
			t.Errorf("%s: the zero value became %#v", r.Type, back.Data)
		}
	}
}

// withoutNull returns a copy in which null and empty lists are absent.
func withoutNull(data any) any {
	v := reflect.New(reflect.TypeOf(data)).Elem()
	v.Set(reflect.ValueOf(data))
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice && (f.Len() == 0 || f.Type().Elem().Kind() == reflect.Uint8 && string(f.Bytes()) == "null") {
			f.SetZero()
		}
	}
	return v.Interface()
}

func TestDecodeEvent_RefusesMalformed(t *testing.T) {
	e := samples()[0].event()
	good := string(body(t, &e))
	for name, bad := range map[string]string{
		"nothing":            "",
		"not JSON":           "{",
		"an array":           "[]",
		"null":               "null",
		"more after it":      good + "{}",
		"another spec":       strings.Replace(good, `"1.0"`, `"0.3"`, 1),
		"no id":              strings.Replace(good, e.ID, "", 1),
		"no type":            strings.Replace(good, `"type":"thread.created",`, "", 1),
		"an empty type":      strings.NewReplacer(`"type":"thread.created"`, `"type":""`, "thread.created", "").Replace(good),
		"a bad time":         strings.Replace(good, "2026-02-20T", "2026-02-30T", 1),
		"an empty time":      strings.Replace(good, start.String(), "", 1),
		"version 0":          strings.Replace(good, `"threadversion":7`, `"threadversion":0`, 1),
		"version -1":         strings.Replace(good, `"threadversion":7`, `"threadversion":-1`, 1),
		"half a version":     strings.Replace(good, `"threadversion":7`, `"threadversion":7.5`, 1),
		"version 07":         strings.Replace(good, `"threadversion":7`, `"threadversion":07`, 1),
		"a huge version":     strings.Replace(good, `"threadversion":7`, `"threadversion":99999999999999999999`, 1),
		"index -1":           strings.Replace(good, `"commandindex":2`, `"commandindex":-1`, 1),
		"index 201":          strings.Replace(good, `"commandindex":2`, `"commandindex":201`, 1),
		"another source":     strings.Replace(good, `"source":"/acme`, `"source":"/acme2`, 1),
		"another tenant":     strings.Replace(good, `"tenant":"acme"`, `"tenant":"other"`, 1),
		"data of wrong type": strings.Replace(good, `"data":{"id":"`+thread+`"`, `"data":{"id":5`, 1),
		"data missing":       good[:strings.Index(good, `,"data":`)] + "}",
		"data cut":           good[:len(good)-2],
		"a name twice":       strings.Replace(good, `"data":{`, `"data":{"id":"a",`, 1),
		"brackets crossed":   strings.Replace(good, `[true,null]`, `[true,null}`, 1),
		"a bare word":        strings.Replace(good, `[true,null]`, `[true,nil]`, 1),
		"bad UTF-8":          strings.Replace(good, "user:zoë", "user:\xff", 1),
		"a line feed":        strings.Replace(good, "user:zoë", "user:\n", 1),
		"an attribute more":  strings.Replace(good, `"tenant":`, `"tenant":"x","tenant":`, 1),
	} {
		if bad == good {
			t.Fatalf("%s: nothing was changed", name)
		}
		if got, err := DecodeEvent([]byte(bad)); err == nil {
			t.Errorf("%s: taken as %#v", name, got)
		}
	}
	_, err := DecodeEvent([]byte(`{}`))
	if !errors.Is(err, errEnvelope) {
		t.Errorf("%v", err)
	}
}

// Layouts that JSON allows but Append does not write are decoded too.
func TestDecodeEvent_AnyLayout(t *testing.T) {
	e := samples()[0].event()
	canonical := string(body(t, &e))
	var fields map[string]any
	if err := json.Unmarshal([]byte(canonical), &fields); err != nil {
		t.Fatal(err)
	}
	reordered, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"another order":        string(reordered),
		"spaces":               string(indent(t, []byte(canonical))),
		"an extension":         strings.Replace(canonical, `"tenant":`, `"acmeextension":{"a":[1]},"tenant":`, 1),
		"escapes":              strings.Replace(canonical, "zoë", `zo\u00eb`, 1),
		"an escaped name":      strings.Replace(canonical, `"actor"`, `"act\u006fr"`, 1),
		"a field more in data": strings.Replace(canonical, `"data":{`, `"data":{"later":"}{",`, 1),
		"a space in data":      strings.Replace(canonical, `"data":{`, `"data":{ `, 1),
	} {
		if raw == canonical {
			t.Fatalf("%s: nothing was changed", name)
		}
		got, err := DecodeEvent([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d, ok := got.Data.(ThreadCreated); ok { // numbers went through float64 in one case
			d.Metadata = e.Data.(ThreadCreated).Metadata
			got.Data = d
		}
		if again := string(body(t, &got)); again != canonical {
			t.Errorf("%s:\n%s\nwant\n%s", name, again, canonical)
		}
	}
}

// Attributes that need escapes are escaped.
func TestAppend_EscapesAttributes(t *testing.T) {
	const odd = "a\"b\\c\nd\u2028é"
	e := Event{
		ID: odd, Type: odd, Time: start, Subject: odd, Tenant: odd, ThreadID: odd, Version: 1, CommandID: odd,
		Correlation: odd, Causation: odd, Actor: odd, TraceParent: odd, Data: Unknown{Schema: odd, Raw: raw(`{}`), Reason: "unknown event type"},
	}
	got, err := DecodeEvent(body(t, &e))
	if err != nil {
		t.Fatal(err)
	}
	if got.Schema() != odd {
		t.Errorf("schema %q", got.Schema())
	}
	got.raw, got.schema = nil, "" // e was never read, and its type is in no catalog
	if !same(got, e) {
		t.Errorf("%#v, want %#v", got, e)
	}
}

func TestAppend_RefusesInvalidData(t *testing.T) {
	e := samples()[0].event()
	e.Data = ThreadCreated{Metadata: raw(`{`)}
	if got, err := e.Append([]byte("x")); err == nil || string(got) != "x" || !strings.Contains(err.Error(), "thread.created") {
		t.Errorf("%q, %v", got, err)
	}
}

func indent(t testing.TB, b []byte) []byte {
	t.Helper()
	v := raw(string(b))
	if err := (*jsontext.Value)(&v).Indent(); err != nil {
		t.Fatal(err)
	}
	return v
}
