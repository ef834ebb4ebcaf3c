package events

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// named returns the events at the end of a call as an older log has them: the part, the item
// of its result and the message that shows it, which name the part if it is large.
func named(output JSON) []Event {
	key := ""
	if len(output) >= ShareBytes {
		key = "stp_1:0"
	}
	part := raw(`{"type":"tool-find","toolCallId":"c1","state":"output-available","input":{"n":1},"output":` + string(output) + `}`)
	content := raw(`{"callId":"c1","output":` + string(output) + `,"name":"find"}`)
	list := []any{
		PartUpdated{Key: "stp_1:0", StepID: "stp_1", Idx: 0, Type: "tool-find", Part: part},
		ItemCreated{ID: "itm_r", ContextID: "ctx_1", Index: 3, Type: ActionResult, Status: ItemCompleted, Content: content, OutputOf: key},
		MessageEdited{Parts: []PlacedPart{{Place: 1, Part: raw(`{"type":"x"}`)}, {Place: 2, Part: part, Key: key}}},
	}
	out := make([]Event, len(list))
	for i, data := range list {
		out[i] = Event{
			ID: EventID("acme", "T-1", "cmd", i), Type: []Type{PartUpdatedType, ItemCreatedType, MessageEditedType}[i], Time: 1771581600123456, Subject: "x",
			Tenant: "acme", ThreadID: "T-1", Version: int64(i + 1), CommandID: "cmd", Data: data,
		}
	}
	return out
}

func sharedCommit(t *testing.T, list []Event) *Commit {
	t.Helper()
	c, err := NewCommit("", list)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A commit whose events name a part holds it once, and decoding it returns complete events: the
// data, and the bytes that the timeline has.
func TestCommit_NamedPartIsStoredOnce(t *testing.T) {
	for name, output := range map[string]JSON{
		"large": raw(`"` + strings.Repeat("x", 5000) + `"`), "small": raw(`{"ok":true}`),
	} {
		t.Run(name, func(t *testing.T) {
			list := named(output)
			c := sharedCommit(t, list)
			want := 1
			if name == "small" {
				want = 3
			}
			if n := strings.Count(string(c.Body), string(output)); n != want {
				t.Errorf("the body holds the output %d times, not %d", n, want)
			}
			back, err := DecodeCommit("acme", "T-1", 1, 3, c.Chain, c.Body)
			if err != nil {
				t.Fatal(err)
			}
			for i := range back.Events {
				whole, err := list[i].Append(nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := &back.Events[i]; !bytes.Equal(got.Raw(), whole) || !bytes.Equal(c.Events[i].Raw(), whole) || !bytes.Equal(got.Stored(), c.Events[i].Stored()) {
					t.Errorf("event %d is read as\n%s\nand made as\n%s", i, got.Raw(), c.Events[i].Raw())
				}
				again, err := DecodeEvent(back.Events[i].Raw()) // as a subscriber of the timeline decodes it
				if err != nil || !reflect.DeepEqual(again.Data, back.Events[i].Data) {
					t.Errorf("event %d: %v, %+v", i, err, again.Data)
				}
				if stored, err := back.Events[i].AppendStored(nil); err != nil || !bytes.Equal(stored, back.Events[i].Stored()) {
					t.Errorf("event %d would be stored as %s (%v)", i, stored, err)
				}
			}
			twice := sharedCommit(t, back.Events)
			if !bytes.Equal(twice.Body, c.Body) {
				t.Error("what was read is not written as it was")
			}
		})
	}
}

// A body that names a part that it lacks, or both names and holds it, is malformed.
func TestCommit_RefusesWrongNames(t *testing.T) {
	c := sharedCommit(t, named(raw(`"`+strings.Repeat("x", 5000)+`"`)))
	body := string(c.Body)
	for name, forged := range map[string]string{
		"a part of nowhere":        strings.Replace(body, `"key":"stp_1:0"}]`, `"key":"stp_1:9"}]`, 1),
		"an output of nowhere":     strings.Replace(body, `"outputOf":"stp_1:0"`, `"outputOf":"stp_2:0"`, 1),
		"a part named and held":    strings.Replace(body, `,"key":"stp_1:0"}]`, `,"part":{"type":"y"},"key":"stp_1:0"}]`, 1),
		"an output named and held": strings.Replace(body, `"content":{"callId":"c1"`, `"content":{"callId":"c1","output":1`, 1),
		"a part without an output": strings.Replace(body, `"output":"xxx`, `"outpux":"xxx`, 1),
	} {
		if forged == body {
			t.Fatalf("%s: nothing was forged in %s", name, body)
		}
		if got, err := DecodeCommit("acme", "T-1", 1, 3, Chain("", []byte(forged)), []byte(forged)); err == nil {
			t.Errorf("%s: read as %+v", name, got.Events)
		}
	}
	list := named(raw(`"` + strings.Repeat("x", 5000) + `"`))
	if _, err := NewCommit("", slices.Clone(list[1:])); err == nil {
		t.Error("a commit was made whose events name a part that it does not hold")
	}
	edit := list[2].Data.(MessageEdited)
	edit.Parts[1].Part = raw(`{"type":"another"}`)
	if _, err := NewCommit("", list); err == nil {
		t.Error("a commit was made whose event names another part than it says")
	}
}

// A body cannot name one part so often that the completed events exhaust memory.
func TestCommit_BoundsEventsOfNamedParts(t *testing.T) {
	output := raw(`"` + strings.Repeat("x", 400<<10) + `"`)
	list := named(output)
	item := list[1]
	for i := range 60 {
		e := item
		d := e.Data.(ItemCreated)
		d.ID = "itm_" + string(rune('A'+i))
		e.ID, e.Data, e.Version = EventID("acme", "T-1", "more", i), d, int64(4+i)
		list = append(list, e)
	}
	body := []byte("[")
	for i := range list {
		if i > 0 {
			body = append(body, ',')
		}
		var err error
		if body, err = list[i].AppendStored(body); err != nil {
			t.Fatal(err)
		}
	}
	body = append(body, ']')
	if _, err := DecodeCommit("acme", "T-1", 1, int64(len(list)), "", body); err == nil {
		t.Error("a commit of one output and sixty names of it was read")
	}
}
