package events

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// called returns the events of a call that a client imports: the part, the item of the result,
// the whole message, and the outcome of the step.
func called(output JSON) []Event {
	part := raw(`{"type":"tool-find","toolCallId":"c1","state":"output-available","input":{"n":1},"output":` + string(output) + `}`)
	list := []any{
		ItemCreated{ID: "itm_r", ContextID: "ctx_1", Index: 3, Type: ActionResult, Status: ItemCompleted, Content: raw(`{"callId":"c1","output":` + string(output) + `,"name":"find"}`)},
		PartUpdated{Key: "stp_1:0", StepID: "stp_1", Idx: 0, Type: "tool-find", Part: part},
		MessageEdited{Content: raw(`[{"type":"output_text","text":"x"},` + string(part) + `]`)},
		StepStatusChanged{ExecutionID: "exe_1", From: StepRunning, To: StepCompleted, ToolExecutionResults: raw(`[{"callId":"c1","output":` + string(output) + `}]`)},
	}
	types := []Type{ItemCreatedType, PartUpdatedType, MessageEditedType, StepStatusChangedType}
	out := make([]Event, len(list))
	for i, data := range list {
		out[i] = Event{
			ID: EventID("acme", "T-1", "cmd", i), Type: types[i], Time: 1771581600123456, Subject: "x",
			Tenant: "acme", ThreadID: "T-1", Version: int64(i + 1), CommandID: "cmd", CommandIndex: i + 1, Data: data,
		}
	}
	return out
}

// complete returns the bytes of an event on the timeline.
func complete(t *testing.T, e Event) []byte {
	t.Helper()
	b, err := e.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A commit holds a large value once, in the first event that has it, and decoding it returns
// complete events: the data, and the bytes that the timeline has.
func TestCommit_StoresLargeValueOnce(t *testing.T) {
	for name, test := range map[string]struct {
		output JSON
		want   int // how often the body holds it
	}{
		"text":         {raw(`"` + strings.Repeat("x", 5000) + `"`), 1},
		"object":       {raw(`{"rows":[` + strings.Repeat(`{"n":1},`, 500) + `0]}`), 1},
		"with escapes": {raw(`{"a":"` + strings.Repeat(`\u00e4\n\/<>`, 500) + `"}`), 1},
		"at the limit": {raw(`"` + strings.Repeat("x", ShareBytes-2) + `"`), 1},
		"below it":     {raw(`"` + strings.Repeat("x", ShareBytes-3) + `"`), 3}, // the whole part is larger, and the message names it
		"small":        {raw(`{"ok":true}`), 4},
	} {
		t.Run(name, func(t *testing.T) {
			list := called(test.output)
			c, err := NewCommit("", list)
			if err != nil {
				t.Fatal(err)
			}
			if name == "with escapes" { // events are written without those that are not needed
				test.output = raw(`{"a":"` + strings.Repeat(`ä\n/<>`, 500) + `"}`)
			}
			if n := bytes.Count(c.Body, test.output); n != test.want {
				t.Errorf("the body holds the value %d times, not %d", n, test.want)
			}
			back, err := DecodeCommit("acme", "T-1", 1, 4, c.Chain, c.Body)
			if err != nil {
				t.Fatal(err)
			}
			for i := range back.Events {
				whole := complete(t, list[i])
				got := &back.Events[i]
				if !bytes.Equal(got.Raw(), whole) || !bytes.Equal(c.Events[i].Raw(), whole) || !bytes.Equal(got.Stored(), c.Events[i].Stored()) {
					t.Errorf("event %d is read as\n%s\nand made as\n%s", i, got.Raw(), c.Events[i].Raw())
				}
				again, err := DecodeEvent(got.Raw()) // as a subscriber of the timeline decodes it
				if err != nil || !reflect.DeepEqual(again.Data, got.Data) {
					t.Errorf("event %d: %v, %+v", i, err, again.Data)
				}
				if stored, err := got.AppendStored(nil); err != nil || !bytes.Equal(stored, got.Stored()) {
					t.Errorf("event %d would be stored as %s (%v)", i, stored, err)
				}
			}
			if twice, err := NewCommit("", back.Events); err != nil || !bytes.Equal(twice.Body, c.Body) {
				t.Errorf("what was read is not written as it was: %v", err)
			}
			one, err := NewCommit("", []Event{called(test.output)[0]}) // a value that no other event has
			if err != nil || !bytes.Contains(one.Body, test.output) {
				t.Errorf("%v, %s", err, one.Body)
			}
		})
	}
}

// A log in which every event holds the output itself decodes to the same, and so does a body in
// another layout.
func TestCommit_DecodesOtherLayouts(t *testing.T) {
	list := called(raw(`"` + strings.Repeat("x", 5000) + `"`))
	c, err := NewCommit("", list)
	if err != nil {
		t.Fatal(err)
	}
	var older []byte
	for i, e := range list {
		older = append(append(older, "[,"[min(i, 1)]), complete(t, e)...)
	}
	older = append(older, ']')
	for name, body := range map[string][]byte{"older": older, "indented": indent(t, c.Body)} {
		back, err := DecodeCommit("acme", "T-1", 1, 4, "", body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range back.Events {
			if got := &back.Events[i]; !bytes.Equal(complete(t, *got), complete(t, list[i])) {
				t.Errorf("%s: event %d is %+v", name, i, got.Data)
			}
		}
	}
	if n := bytes.Count(older, []byte(`xxxx"`)); n != 4 || len(c.Body) > len(older)-3*4900 {
		t.Errorf("%d times, %d bytes and %d", n, len(older), len(c.Body))
	}
}

// A body that names a value that no earlier event has, or that both names and holds one, is
// malformed.
func TestCommit_RefusesWrongReferences(t *testing.T) {
	c, err := NewCommit("", called(raw(`"`+strings.Repeat("x", 5000)+`"`)))
	if err != nil {
		t.Fatal(err)
	}
	body := string(c.Body)
	for name, forged := range map[string]string{
		"an unknown event":      strings.Replace(body, `/content/1=1/part"`, `/content/1=9/part"`, 1),
		"a later event":         strings.Replace(body, `/part/output=0/content/output`, `/part/output=3/toolExecutionResults/0/output`, 1),
		"the event itself":      strings.Replace(body, `/content/1=1/part"`, `/content/1=2/content/1"`, 1),
		"an unknown value":      strings.Replace(body, `/content/1=1/part"`, `/content/1=1/parts"`, 1),
		"an unknown place":      strings.Replace(body, `/content/1=1/part"`, `/content/7=1/part"`, 1),
		"a value that is there": strings.Replace(body, `/content/1=1/part"`, `/content/0=1/part"`, 1),
		"a place twice":         strings.Replace(body, `"/content/1=1/part"`, `"/content/1=1/part /content/1=1/part"`, 1),
		"no reference":          strings.Replace(body, `"/content/1=1/part"`, `""`, 1),
		"no text":               strings.Replace(body, `"/content/1=1/part"`, `7`, 1),
		"the attribute first": strings.Replace(strings.Replace(body, `"shared":"/content/1=1/part",`, ``, 1),
			`{"specversion":"1.0","id":"`+called(nil)[2].ID, `{"shared":"/content/1=1/part","specversion":"1.0","id":"`+called(nil)[2].ID, 1),
	} {
		if forged == body {
			t.Fatalf("%s: nothing was forged in %s", name, body)
		}
		if got, err := DecodeCommit("acme", "T-1", 1, 4, Chain("", []byte(forged)), []byte(forged)); err == nil {
			t.Errorf("%s: read as %+v", name, got.Events)
		}
	}
}

// A body cannot name one value so often that the complete events exhaust memory, and a commit
// whose events are so large is too large to be stored.
func TestCommit_BoundsCompleteEvents(t *testing.T) {
	list := called(raw(`"` + strings.Repeat("x", 400<<10) + `"`))
	for i := range 60 {
		e := list[0]
		e.ID, e.Version = EventID("acme", "T-1", "more", i), int64(5+i)
		list = append(list, e)
	}
	c, err := NewCommit("", list)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Body) > MaxCommitBytes || c.Largest() <= MaxCommitBytes {
		t.Errorf("a body of %d bytes counts as %d", len(c.Body), c.Largest())
	}
	if _, err := DecodeCommit("acme", "T-1", 1, int64(len(list)), c.Chain, c.Body); err == nil {
		t.Error("a commit of one output and sixty names of it was read")
	}
}

// A reference takes less than the value that it replaces, whatever the names in it.
func TestCommit_ReferencesAreShort(t *testing.T) {
	for _, length := range []int{64, 65} {
		list := called(nil)[:2]
		for i := range list {
			v := `{"` + strings.Repeat("n", length) + `":"` + strings.Repeat("x", ShareBytes) + `","own":` + fmt.Sprint(i) + `}`
			list[i].Type, list[i].Data = PartUpdatedType, PartUpdated{Key: "stp_1:0", StepID: "stp_1", Type: "x", Part: raw(v)}
		}
		c, err := NewCommit("", list)
		if err != nil {
			t.Fatal(err)
		}
		if once := bytes.Count(c.Body, []byte(`xxxx"`)) == 1; once != (length == 64) {
			t.Errorf("a value under a name of %d bytes is stored once: %v", length, once)
		}
	}
}

// Whatever values events have in common, in whatever places, decoding returns them.
func TestCommit_RandomValues(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		pool := []string{`1`, `"shared"`, `{"shared":"/a=0/b"}`, `null`}
		var value func(depth int) string
		value = func(depth int) string {
			switch n := r.IntN(7); {
			case n < 2 || depth == 0:
				return pool[r.IntN(len(pool))]
			case n < 4:
				return `"` + strings.Repeat(string(rune('a'+r.IntN(3))), 1+r.IntN(3)*ShareBytes) + `"`
			case n == 4:
				return `[` + value(depth-1) + `,` + value(depth-1) + `]`
			default:
				names := []string{"a", "shared", "data", "ä b", "a/b", "x=y"}
				r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
				return fmt.Sprintf(`{%q:%s,%q:%s}`, names[0], value(depth-1), names[1], value(depth-1))
			}
		}
		list := called(raw(`1`))
		for i := range list {
			v := value(6)
			pool = append(pool, v)
			list[i].Type, list[i].Data = PartUpdatedType, PartUpdated{Key: "stp_1:0", StepID: "stp_1", Type: "x", Part: raw(v)}
		}
		c, err := NewCommit("", list)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeCommit("acme", "T-1", 1, 4, c.Chain, c.Body)
		if err != nil {
			t.Fatalf("seed %d: %v in %s", seed, err, c.Body)
		}
		for i := range back.Events {
			if !bytes.Equal(back.Events[i].Raw(), complete(t, list[i])) || !bytes.Equal(back.Events[i].Stored(), c.Events[i].Stored()) {
				t.Fatalf("seed %d, event %d: %s", seed, i, back.Events[i].Raw())
			}
		}
		if slices.ContainsFunc(c.Events, func(e Event) bool { return e.stored != nil }) != (len(c.Body) < c.Whole()) {
			t.Fatalf("seed %d: %d bytes for %d", seed, len(c.Body), c.Whole())
		}
	}
}

// The largest message of a commit is its body or, where one value stands in many events, a fourth
// of all of them.
func TestCommit_Largest(t *testing.T) {
	for name, c := range map[string]struct {
		events, size int
		largest      func(c *Commit) int
	}{
		"a body":          {4, 10, func(c *Commit) int { return len(c.Body) }},
		"all of them":     {40, 5000, func(c *Commit) int { return (c.Whole() + 3) / 4 }},
		"all, rounded":    {40, 5001, func(c *Commit) int { return (c.Whole() + 3) / 4 }},
		"all, one larger": {40, 5002, func(c *Commit) int { return (c.Whole() + 3) / 4 }},
		"all, two larger": {40, 5003, func(c *Commit) int { return (c.Whole() + 3) / 4 }},
	} {
		list := make([]Event, c.events)
		for i := range list {
			list[i] = called(raw(`"` + strings.Repeat("x", c.size) + `"`))[0]
			list[i].ID, list[i].Version, list[i].CommandIndex = EventID("acme", "T-1", "cmd", i), int64(i+1), i+1
			if i > 0 {
				list[i].Subject = strings.Repeat("s", 100)
			}
		}
		made, err := NewCommit("", list)
		if err != nil {
			t.Fatal(err)
		}
		if got := made.Largest(); got != c.largest(made) {
			t.Errorf("%s: %d, not %d; the body has %d, all events %d", name, got, c.largest(made), len(made.Body), made.Whole())
		}
	}
}

// A text that is not UTF-8 makes a commit unreadable, also if no letter of it is ASCII.
func TestDecodeCommit_InvalidText(t *testing.T) {
	made, err := NewCommit("", called(raw(`1`))[:1])
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"x": true, "日本": true, "x\xff": false, "\xff\xfe": false, "\xe6\x97": false} {
		body := strings.Replace(string(made.Body), `"subject":"x"`, `"subject":"`+text+`"`, 1)
		got, err := DecodeCommit("acme", "T-1", 1, 1, "", []byte(body))
		if (err == nil) != want || want && got.Events[0].Subject != text {
			t.Errorf("%q: %v", text, err)
		}
	}
}
