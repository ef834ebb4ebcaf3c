package schema

import (
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// What is plainly an event, its schemas take too, whatever is tried; and of each
// event some are plain, or the audit would be slow.
func TestEvent_PlainlyAgreesWithTheSchemas(t *testing.T) {
	v := newValidator(t)
	for _, row := range events.Catalog() {
		plain, odd := 0, 0
		for seed := uint64(0); seed < 50 || plain == 0 && seed < 1000; seed++ {
			for _, wrong := range []float64{0, 0.02, 0.2} {
				if held(t, v, []byte(writtenBy(newInventor(seed, wrong), v, row))) {
					plain++
				} else {
					odd++
				}
			}
		}
		if row.Type == events.LifecycleArchivedType { // its texts of one length are never hit upon
			plain, odd = 1, 1
			if !held(t, v, []byte(archived)) || held(t, v, []byte(strings.Replace(archived, `"digest":"`, `"digest":"b`, 1))) {
				t.Error("a record of an archive is not plainly right, or one with another digest is")
			}
		}
		if plain == 0 || odd == 0 {
			t.Errorf("%s: %d of the events were plain, and %d were not", row.Type, plain, odd)
		}
	}
}

const archived = `{"specversion":"1.0","id":"a","source":"/acme/threads/T-1","type":"lifecycle.archived","time":"2026-02-20T10:00:00.000001Z",` +
	`"datacontenttype":"application/json","dataschema":"urn:skein:event:lifecycle.archived:1","tenant":"acme","threadid":"T-1","threadversion":1,` +
	`"data":{"object":"a","digest":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","commits":1,"bytes":1,"firstSeq":1,"lastSeq":1,` +
	`"chain":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}`

// held reports whether an event is plainly right. If it is, its schemas say so too.
func held(t *testing.T, v *Validator, raw []byte) bool {
	t.Helper()
	e, err := events.DecodeEvent(raw)
	if err != nil || !v.fastValid(&e) {
		return false
	}
	if err := v.event(&e); err != nil {
		t.Fatalf("it is plainly an event, and its schema says %v: %s", err, raw)
	}
	return true
}

// writtenBy writes an event of a type, mostly a right one.
func writtenBy(g inventor, v *Validator, row events.Row) string {
	sh := v.storedEvents[row.Type]
	var members []string
	for i := range sh.fields {
		f := &sh.fields[i]
		if !f.required && !g.often(0.4) {
			continue
		}
		value := `"` + map[string]string{
			"specversion": "1.0", "datacontenttype": "application/json", "type": string(row.Type), "dataschema": row.Schema(), "source": "/acme/threads/T-1",
			"tenant": "acme", "threadid": "T-1", "time": "2026-02-20T10:00:00.000001Z",
		}[f.name] + `"`
		switch {
		case f.name == "data":
			value = g.document(f.shape)
		case g.often(g.wrong):
			value = pick(g, oddities())
		case value == `""`:
			value = g.value(&f.rule, f.name)
		}
		members = append(members, `"`+f.name+`":`+value)
	}
	if g.often(g.wrong) {
		members = append(members, `"acmewhy":{"a":[1]}`)
	}
	return "{" + strings.Join(members, ",") + "}"
}

func FuzzEventPlainly(f *testing.F) {
	v := newValidator(f)
	rows := events.Catalog()
	f.Add([]byte(written), uint64(0))
	f.Add([]byte(archived), uint64(0))
	for i, row := range rows {
		f.Add([]byte(writtenBy(newInventor(uint64(i), 0.02), v, row)), uint64(i))
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		held(t, v, raw)
		g := inventor{rand.New(rand.NewPCG(seed, 2)), 0.05}
		text := writtenBy(g, v, pick(g, rows))
		held(t, v, []byte(text))
		held(t, v, slices.Concat([]byte(text[:g.IntN(len(text))]), raw))
	})
}

// BenchmarkDoorAuditSchemas holds an event to both JSON Schemas, as the audit does
// with one that is not plainly right.
func BenchmarkDoorAuditSchemas(b *testing.B) {
	v := newValidator(b)
	e, err := events.DecodeEvent([]byte(written))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := v.event(&e); err != nil {
			b.Fatal(err)
		}
	}
}

// The source of an event by hand is what the envelope's expression takes.
func TestIsSource(t *testing.T) {
	expression := regexp.MustCompile(`^/[^/]+/threads/[^/]+$`)
	for _, tenant := range []string{"", "/", "a", "/a", "//", "/a/b", "a/", "/threads"} {
		for _, threads := range []string{"", "/", "/threads", "/threads/", "threads/", "/thread/", "/threads/threads/"} {
			for _, thread := range []string{"", "T-1", "/T-1", "T-1/", "T/1"} {
				if s := tenant + threads + thread; isSource(s) != expression.MatchString(s) {
					t.Errorf("%q is a source: %v", s, isSource(s))
				}
			}
		}
	}
}

// What is plainly right, and what is left to the schemas, at each bound of each kind.
func TestShape_Holds(t *testing.T) {
	type inner struct {
		A string `json:"a" schema:"required"`
	}
	type every struct {
		Text   string          `json:"text,omitzero" schema:"minLength=2,maxLength=4"`
		Long   string          `json:"long,omitzero" schema:"minLength=2"`
		Short  string          `json:"short,omitzero" schema:"maxLength=2"`
		Free   string          `json:"free,omitzero"`
		Enum   events.ItemType `json:"enum,omitzero"`
		ID     string          `json:"id,omitzero" schema:"pattern=id"`
		Flag   bool            `json:"flag,omitzero"`
		Whole  *int64          `json:"whole,omitzero" schema:"minimum=1,maximum=9"`
		Wide   int64           `json:"wide,omitzero" schema:"minimum=0"`
		Most   int64           `json:"most,omitzero" schema:"maximum=3"`
		Real   float64         `json:"real,omitzero" schema:"minimum=-1,maximum=2"`
		Any    events.JSON     `json:"any,omitzero"`
		Object events.JSON     `json:"object,omitzero" schema:"object"`
		List   []string        `json:"list,omitzero" schema:"minItems=1,maxItems=3"`
		Inner  *inner          `json:"inner,omitzero"`
		Null   *string         `json:"null,omitzero" schema:"required,nullable"`
	}
	sh, err := shapes{}.of(reflect.TypeFor[every]())
	if err != nil {
		t.Fatal(err)
	}
	for member, c := range map[string]struct{ plain, not []string }{
		"text":   {[]string{`"ab"`, `"abcd"`, `"éééé"`, `"\u0061b"`}, []string{`"a"`, `"abcde"`, `""`, `null`, `1`, `"ééééé"`}},
		"long":   {[]string{`"ab"`}, []string{`"a"`}},
		"short":  {[]string{`"ab"`, `""`}, []string{`"abc"`}},
		"free":   {[]string{`""`, `"abc"`}, []string{`null`, `{}`}},
		"enum":   {[]string{`"message"`}, []string{`"massage"`, `""`, `null`}},
		"id":     {[]string{`"a-1"`}, []string{`"a 1"`, `""`}},
		"flag":   {[]string{`true`, `false`}, []string{`"true"`, `0`, `null`}},
		"whole":  {[]string{`1`, `9`, `9.0`, `0.1e1`}, []string{`0`, `10`, `1.5`, `"1"`, `null`}},
		"wide":   {[]string{`0`, `9007199254740991`}, []string{`-1`, `0.5`}},
		"most":   {[]string{`3`, `-3`}, []string{`4`}},
		"real":   {[]string{`-1`, `2`, `0`, `9e-1`, `0.1234567890123`, `1.999`}, []string{`-1.5`, `2.5`, `0.12345678901234`, `"1"`, `null`, `true`}},
		"any":    {[]string{`null`, `[]`, `"a"`, `{}`}, nil},
		"object": {[]string{`{}`, `{"a":[1]}`}, []string{`null`, `[]`, `"a"`}},
		"list":   {[]string{`["a"]`, `["a","b","c"]`}, []string{`[]`, `["a","b","c","d"]`, `["a",1]`, `[1,"a"]`, `[null]`, `{}`, `null`}},
		"inner":  {[]string{`{"a":""}`, `{"b":1,"a":"x"}`}, []string{`{}`, `{"a":1}`, `[]`, `null`}},
		"other":  {[]string{`1`, `{"text":1}`, `[[]]`}, nil},
	} {
		for want, values := range map[bool][]string{true: c.plain, false: c.not} {
			for _, value := range values {
				for _, raw := range []string{
					`{"null":null,"` + member + `":` + value + `}`, `{"` + member + `":` + value + ` , "null" : "x" }`,
				} {
					if got := sh.fastValid(&scanner{raw: []byte(raw)}); got != want {
						t.Errorf("%s is plainly right: %v", raw, got)
					}
				}
				if raw := `{"` + member + `":` + value + `}`; sh.fastValid(&scanner{raw: []byte(raw)}) {
					t.Errorf("%s is plainly right, and a member is missing", raw)
				}
			}
		}
	}
	for _, raw := range []string{`[]`, `null`, `"null"`, ``} {
		if sh.fastValid(&scanner{raw: []byte(raw)}) {
			t.Errorf("%s is plainly an object", raw)
		}
	}
}
