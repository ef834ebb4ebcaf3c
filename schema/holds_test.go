package schema

import (
	"math/rand/v2"
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
		for seed := range uint64(50) {
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
	if err != nil || !v.plainly(&e) {
		return false
	}
	if err := v.event(&e); err != nil {
		t.Fatalf("it is plainly an event, and its schema says %v: %s", err, raw)
	}
	return true
}

// writtenBy writes an event of a type, mostly a right one.
func writtenBy(g inventor, v *Validator, row events.Row) string {
	sh := v.written[row.Type]
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
