package schema

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/skein-threads/skein/events"
)

// agree fails if the reader and the JSON Schema at path do not judge raw alike.
// Where both refuse, the path of the refusal must be one that the schema found
// wrong too, or lie in it.
func agree(t *testing.T, v *Validator, path string, raw []byte, err error) {
	t.Helper()
	if syntax := checkSyntax(raw); syntax != nil {
		if err == nil {
			t.Fatalf("%s: taken though %s: %s", path, syntax.Message, raw)
		}
		wellFormed(t, err, raw)
		return
	}
	instance, perr := parse(raw)
	if perr != nil {
		t.Fatalf("%s: valid JSON cannot be read: %v: %s", path, perr, raw)
	}
	compiled, cerr := v.schemas[path]()
	if cerr != nil {
		t.Fatal(cerr)
	}
	var mismatch *jsonschema.ValidationError
	refused := errors.As(compiled.Validate(instance), &mismatch)
	if refused != (err != nil) {
		t.Fatalf("%s: the reader says %v, the schema %v: %s", path, err, mismatch, raw)
	}
	if !refused {
		return
	}
	at := wellFormed(t, err, raw)
	parent := at[:max(strings.LastIndex(at, "/"), 0)]
	for _, leaf := range leavesOf(mismatch) {
		if found := unescape(leaf.InstanceLocation); found == at || found == parent {
			return
		}
	}
	t.Fatalf("%s: the reader refuses %q, the schema %#v: %s", path, at, mismatch, raw)
}

// wellFormed returns the path of a refusal, which must be one.
func wellFormed(t *testing.T, err error, raw []byte) string {
	t.Helper()
	var e *events.Error
	if !errors.As(err, &e) || e.Code != events.InvalidRequest || e.Details == nil || !strings.HasPrefix(e.Message, e.Details.Path) {
		t.Fatalf("not a refusal with a path: %v: %s", err, raw)
	}
	return e.Details.Path
}

// inventor makes documents up, mostly right ones, from a struct's shape.
type inventor struct {
	*rand.Rand
	wrong float64 // how often a value is drawn from all there are
}

func (g inventor) often(p float64) bool { return g.Float64() < p }

func pick[T any](g inventor, from []T) T { return from[g.IntN(len(from))] }

// document writes a struct.
func (g inventor) document(sh *shape) string {
	var members []string
	for i := range sh.fields {
		f := &sh.fields[i]
		if f.required && !g.often(g.wrong) || g.often(0.4) {
			members = append(members, quote(f.name)+":"+g.value(&f.rule, f.name))
		}
	}
	if g.often(g.wrong / 2) {
		members = append(members, pick(g, []string{`"unknown":1`, `"":null`, `"a/b~c%":[]`, `"Item":{}`}))
	}
	if len(members) > 0 && g.often(g.wrong/2) {
		members = append(members, members[0])
	}
	if g.often(0.2) {
		g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	return "{" + strings.Join(members, pick(g, []string{",", ", ", "\n,\t"})) + "}"
}

func quote(s string) string {
	b, _ := jsontext.AppendQuote(nil, s)
	return string(b)
}

// value writes a value that may fit.
func (g inventor) value(r *rule, name string) string {
	if g.often(g.wrong) {
		return pick(g, oddities())
	}
	switch r.kind {
	case text:
		if r.enum != nil {
			return quote(pick(g, r.enum))
		}
		return g.text(r)
	case flag:
		return pick(g, []string{"true", "false"})
	case whole, wide:
		if n := pick(g, []string{"0", "1", "7", "1.0", "1e1"}); g.often(0.8) {
			return n
		}
		return pick(g, []string{"2", "1e2", "10e-1", "1E+1", "-0", "999", "1000", "100000", "9007199254740991", "9007199254740992", "1.5", "-1", "0.1e1", "12e-1", "0e999999999", "1e999999999", "1e-999999999"})
	case record:
		return g.document(r.shape)
	case list:
		var items []string
		for range g.IntN(4) {
			items = append(items, g.value(r.items, name))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	if name == "content" {
		return pick(g, contents())
	}
	return pick(g, []string{"{}", `{"a":1}`, `{"a":{"b":[null,1.5,"x"]}}`, `{"":{"":{}}}`})
}

// text writes a text that mostly has the form that is asked for.
func (g inventor) text(r *rule) string {
	if r.match == nil || g.often(0.1) {
		return pick(g, texts())
	}
	var fit []string
	for _, s := range texts() {
		if plain, err := jsontext.AppendUnquote(nil, s); err == nil && r.match(string(plain)) {
			fit = append(fit, s)
		}
	}
	return pick(g, fit)
}

func texts() []string {
	return []string{
		`""`, `"a"`, `"itm_1"`, `"thread.create"`, `"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162"`, `"key:a b"`, `"key:"`, `"thrd_abcdefghijklmnopqrstuvwxyz1"`,
		`"sess_0a"`, `"sess_0A"`, `"stp_1:0"`, `"stp_1:007"`, `"2026-02-20T10:00:00.000Z"`, `"2026-99-99T99:99:99Z"`, `"2026-02-20T10:00:00+01:00"`,
		`"` + strings.Repeat("a", 64) + `"`, `"` + strings.Repeat("a", 65) + `"`, `"` + strings.Repeat("é", 256) + `"`, `"` + strings.Repeat("😀", 257) + `"`,
		`"\u0061"`, `"a\u0000"`, `"a\n"`, `"\ud83d\ude00"`, "\"\x7f\"", `"T-0195E5D0-3C1A-7B2E-9F44-1D2E3F405162"`, `"item.*"`,
		`"0195e5d0-3c1a-4b2e-9f44-1d2e3f405168"`, `"0195E5D0-3c1a-4b2e-9f44-1d2e3f40516"`,
		`"` + strings.Repeat("word ", 205) + `"`,
	}
}

func contents() []string {
	return []string{
		`[]`, `[{"type":"input_text","text":"hi"}]`, `[{"type":"input_text"}]`, `[{"type":"output_text","text":1}]`, `[{"type":"refusal","refusal":"no"}]`,
		`[{"type":"refusal","refusal":null}]`, `[{"type":"codex-event","state":"x","output":{}}]`, `[{"type":""}]`, `[{}]`, `[null]`, `[[]]`, `{}`, `"text"`,
		`[{"type":"reasoning"},{"type":"` + strings.Repeat("é", 128) + `"}]`, `[{"type":"` + strings.Repeat("é", 129) + `"}]`, `[{"t\u0079pe":"refus\u0061l"}]`, `[{"type":{"type":"x"}}]`,
		`{"callId":"c","name":"n","arguments":null}`, `{"callId":"c","name":"n","arguments":{}}`, `{"callId":"c","name":"n"}`, `{"callId":"","name":"n","arguments":1}`,
		`{"callId":"c","output":null}`, `{"callId":"c","output":1,"isError":true}`, `{"callId":"c","output":1,"isError":null}`, `{"callId":"c","output":1,"more":1}`,
		`{"itemId":"itm_1"}`, `{"itemId":1}`, `{"itemId":"` + strings.Repeat("é", 257) + `"}`,
	}
}

// oddities are values that fit some field and not most.
func oddities() []string {
	return append(texts(), `null`, `true`, `false`, `0`, `-1`, `1.5`, `1e400`, `-1e400`, `[]`, `{}`, `[null]`, `{"a":null}`, `"a`, `nul`, `01`, "\"\xff\"", `"\ud83d"`,
		strings.Repeat("[", 70)+strings.Repeat("]", 70), strings.Repeat(`{"a":`, 62)+"1"+strings.Repeat("}", 62), `{"a":1,"a":2}`, `{"version":1,"time":""}`, `{"version":null,"time":null}`)
}
