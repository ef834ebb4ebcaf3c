package openresponses

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/skein-threads/skein/events"
)

// asItem returns the document of an item that item.create accepted.
func asItem(n events.NewItem) *events.Item {
	i := &events.Item{
		ID: n.ID, Type: n.Type, Role: n.Role, Status: n.Status, Channel: n.Channel, Content: n.Content, ParentItemID: n.ParentItemID,
		Silent: n.Silent, Metadata: n.Metadata, CreatedAt: n.CreatedAt, ThreadID: "T-1", ContextID: "ctx_1", Index: 7,
	}
	if n.Depth != nil {
		i.Depth = *n.Depth
	}
	return i
}

func sameJSON(t *testing.T, got, want events.JSON) {
	t.Helper()
	g, w := jsontext.Value(got).Clone(), jsontext.Value(want).Clone()
	if err := errors.Join(g.Canonicalize(), w.Canonicalize()); err != nil || string(g) != string(w) {
		t.Errorf("got  %s\nwant %s (%v)", got, want, err)
	}
}

// readOne reads one item of Open Responses.
func readOne(raw string) (events.NewItem, error) {
	var o Item
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		return events.NewItem{}, events.Invalid("", "not an item: %w", err)
	}
	list, err := Read([]Item{o})
	if err != nil {
		return events.NewItem{}, err
	}
	return list[0], nil
}

func writtenAs(t *testing.T, f Form, i *events.Item) []Item {
	t.Helper()
	list, err := f.Write(i)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// over returns the items after encoding and decoding, by encoding/json.
func over(t *testing.T, list []Item) []Item {
	t.Helper()
	raw, err := stdjson.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var got []Item
	if err := stdjson.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// The fixture of the specification, without a status, comes back as it was (EK-35, EK-50), also by
// encoding/json, which writes no field of its own.
func TestForm_ExactFixture(t *testing.T) {
	in := events.NewItem{ID: "itm_user_01", Type: events.Message, Role: events.User, CreatedAt: "2026-02-20T10:00:00.000Z", Content: events.JSON(`[{"type":"input_text","text":"Hi"}]`)}
	stored := asItem(in)
	stored.Status = events.ItemStored
	list := writtenAs(t, Form{Exact: true}, stored)
	raw, err := stdjson.Marshal(list[0])
	if err != nil || strings.Contains(string(raw), `"Rest"`) {
		t.Errorf("encoding/json writes %s, %v", raw, err)
	}
	got, err := Read(over(t, list))
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], in) {
		t.Errorf("comes back as %+v, %v", got, err)
	}
	stored.CreatedAtMicros = 1771581600123456
	if got, err := Read(writtenAs(t, Form{Exact: true}, stored)); err != nil || got[0].CreatedAt != "2026-02-20T10:00:00.123456Z" {
		t.Errorf("its microseconds come back as %+v, %v", got, err)
	}
}

// Each type of item converts to Open Responses and back without a loss, and without the
// thread's own fields: EK-3, EK-4, EK-6, EK-8, EK-10, EK-11, EK-13, EK-30, EK-165,
// EK-166..EK-171.
func TestRead_RoundTrip(t *testing.T) {
	tests := []struct{ name, open, item string }{
		{"message", `{"type":"message","id":"itm_1","role":"user","content":[{"type":"input_text","text":"hi"}]}`,
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`},
		{"pending message with an extension part", `{"type":"message","id":"itm_2","role":"assistant","status":"in_progress","content":[{"type":"output_text","text":"a"},{"type":"codex-event","output":{"n":1.50}}]}`,
			`{"type":"message","role":"assistant","status":"pending","content":[{"type":"output_text","text":"a"},{"type":"codex-event","output":{"n":1.50}}]}`},
		{"reasoning stays a part", `{"type":"message","id":"itm_3","role":"assistant","status":"completed","content":[{"type":"reasoning","summary":[]}]}`,
			`{"type":"message","role":"assistant","status":"completed","content":[{"type":"reasoning","summary":[]}]}`},
		{"images, files, refusals and annotations", `{"type":"message","id":"itm_3","role":"assistant","content":[{"type":"input_image","image_url":"https://x/y","detail":"low"},{"type":"input_file","file_data":"data:,"},{"type":"refusal","refusal":"no"},{"type":"output_text","text":"a","annotations":[{"type":"url_citation","url":"x"}],"logprobs":[]}]}`,
			`{"type":"message","role":"assistant","content":[{"type":"input_image","image_url":"https://x/y","detail":"low"},{"type":"input_file","file_data":"data:,"},{"type":"refusal","refusal":"no"},{"type":"output_text","text":"a","annotations":[{"type":"url_citation","url":"x"}],"logprobs":[]}]}`},
		{"call", `{"type":"function_call","id":"itm_4","call_id":"c1","name":"find","arguments":"{\"q\":[1,2]}","status":"completed"}`,
			`{"type":"action_execute","status":"completed","content":{"callId":"c1","name":"find","arguments":{"q":[1,2]}}}`},
		{"call with text that is not quite JSON", `{"type":"function_call","id":"itm_5","call_id":"c1","name":"find","arguments":"{ \"q\": 1 }"}`,
			`{"type":"action_execute","content":{"callId":"c1","name":"find","arguments":"{ \"q\": 1 }"}}`},
		{"call without arguments", `{"type":"function_call","id":"itm_6","call_id":"c1","name":"now","arguments":""}`,
			`{"type":"action_execute","content":{"callId":"c1","name":"now","arguments":""}}`},
		{"result", `{"type":"function_call_output","id":"itm_7","call_id":"c1","output":"{\"ok\":true}","status":"completed"}`,
			`{"type":"action_result","status":"completed","content":{"callId":"c1","output":{"ok":true}}}`},
		{"result that is text", `{"type":"function_call_output","id":"itm_8","call_id":"c1","output":"42 degrees"}`,
			`{"type":"action_result","content":{"callId":"c1","output":"42 degrees"}}`},
		{"failed result", `{"type":"function_call_output","id":"itm_9","call_id":"c1","output":"no such city","status":"incomplete"}`,
			`{"type":"action_result","status":"completed","content":{"callId":"c1","output":"no such city","isError":true}}`},
		{"reference", `{"type":"item_reference","id":"itm_1"}`, `{"type":"item_reference","content":{"itemId":"itm_1"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			item, err := readOne(tt.open)
			if err != nil {
				t.Fatal(err)
			}
			var want events.NewItem
			if err := json.Unmarshal([]byte(tt.item), &want); err != nil {
				t.Fatal(err)
			}
			if item.Type != want.Type || item.Role != want.Role || item.Status != want.Status || item.Metadata != nil {
				t.Errorf("got %+v, want %+v", item, want)
			}
			sameJSON(t, item.Content, want.Content)
			back := valueOf(writtenAs(t, Form{}, asItem(item))[0])
			sameJSON(t, back, events.JSON(tt.open))
			for _, own := range []string{"threadId", "contextId", "index", "T-1", "ctx_1", "skein"} {
				if strings.Contains(string(back), own) {
					t.Errorf("%s goes out: %s", own, back)
				}
			}
		})
	}
}

// Reasoning items become parts of a message (EK-172); a string alone is a message's content;
// an item without a type is a message; one of a type that a thread does not have is kept whole
// in a part.
func TestRead_Normalises(t *testing.T) {
	tests := []struct{ name, open, content string }{
		{"reasoning item", `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"thinking"}],"encrypted_content":"x"}`,
			`[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"thinking"}],"encrypted_content":"x"}]`},
		{"text of a user", `{"role":"user","content":"hi"}`, `[{"type":"input_text","text":"hi"}]`},
		{"text of an assistant", `{"role":"assistant","content":"hi"}`, `[{"type":"output_text","text":"hi"}]`},
		{"another kind", `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"q":"x"}}`,
			`[{"type":"open.web_search_call","item":{"type":"web_search_call","id":"ws_1","status":"completed","action":{"q":"x"}}}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			item, err := readOne(tt.open)
			if err != nil {
				t.Fatal(err)
			}
			if item.Type != events.Message {
				t.Errorf("type %s", item.Type)
			}
			sameJSON(t, item.Content, events.JSON(tt.content))
		})
	}
}

// What a thread has no field for is returned to Open Responses unchanged, until the item
// changes.
func TestRead_KeepsUnknownFields(t *testing.T) {
	for _, open := range []string{
		`{"type":"message","id":"msg 1","role":"assistant","status":"incomplete","phase":"final","content":[{"type":"output_text","text":"a"}]}`,
		`{"role":"user","content":"hi"}`,
		`{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}","status":"incomplete","namespace":"n"}`,
		`{"type":"function_call","call_id":"c1","name":"f"}`,
		`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","image_url":"https://x/y"}]}`,
		`{"type":"function_call_output","call_id":"c1","output":"x","status":"in_progress"}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"t"}],"status":"in_progress"}`,
		`{"type":"mcp_call","id":"mcp_1","arguments":"{ }","output":null,"error":{"code":1}}`,
		`{"type":"acme:thing","content":{"a":1.0}}`,
		`{"type":"item_reference","id":"itm_1","more":true}`,
	} {
		item, err := readOne(open)
		if err != nil {
			t.Errorf("%s: %v", open, err)
			continue
		}
		for _, f := range []Form{{Split: true}, {Split: true, Exact: true}} {
			list := writtenAs(t, f, asItem(item))
			if len(list) != 1 {
				t.Errorf("%s: %d items", open, len(list))
				continue
			}
			list[0].Origin = nil
			sameJSON(t, valueOf(list[0]), events.JSON(open))
		}
	}
	item, err := readOne(`{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}","namespace":"n"}`)
	if err != nil {
		t.Fatal(err)
	}
	item.Content = events.JSON(`{"callId":"c1","name":"g","arguments":{}}`)
	sameJSON(t, valueOf(writtenAs(t, Form{}, asItem(item))[0]), events.JSON(`{"type":"function_call","id":"fc_1","call_id":"c1","name":"g","arguments":"{}"}`))
}

// An invalid item is refused (EK-9), and the error names it.
func TestRead_NamesInvalidItem(t *testing.T) {
	for _, raw := range []string{`{"type":"message"}`, `{"type":"message","role":"user","content":{}}`,
		`{"type":"function_call","name":"x","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c"}`, `{"type":"item_reference"}`, `[]`, `{`, `"hi"`} {
		item, err := readOne(raw)
		if err == nil || events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("%s returns %+v, %v", raw, item, err)
		}
	}
	_, err := Read([]Item{{Role: events.User, Content: events.JSON(`"hi"`)}, {Type: "item_reference"}})
	if e := events.AsError(err); err == nil || e.Details == nil || !strings.HasPrefix(e.Details.Path, "/1/") {
		t.Errorf("the second: %v", err)
	}
}

// Split for a model's endpoint, a message's reasoning and calls are items of their own, in
// their place, and what such a reader cannot have is omitted.
func TestForm_Split(t *testing.T) {
	i := &events.Item{ID: "itm_1", Type: events.Message, Role: events.Assistant, Status: events.ItemCompleted, Content: events.JSON(`[{"type":"output_text","text":"a","x":1,"annotations":[]},
		{"type":"acme.mood"},{"type":"reasoning","id":"rs_1","summary":[]},{"type":"tool-f","toolCallId":"c1","state":"output-error","input":{"a":1},"errorText":"broke"},
		{"type":"tool-f","toolCallId":"c2","input":"{"},{"type":"text","text":"b"},{"type":"open.web_search_call","item":{"type":"web_search_call","id":"ws_1"}}]`)}
	got, err := json.Marshal(writtenAs(t, Form{Split: true}, i))
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, got, events.JSON(`[{"type":"message","id":"itm_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]},
		{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"},
		{"type":"function_call_output","call_id":"c1","output":"Error: broke"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{"},
		{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"b"}]},{"type":"web_search_call","id":"ws_1"}]`))
}

// value returns random JSON.
func value(rnd *rand.Rand, depth int) string {
	switch n := rnd.IntN(9); {
	case n == 0 && depth > 0:
		return `{"a":` + value(rnd, depth-1) + `,"type":` + value(rnd, depth-1) + `}`
	case n == 1 && depth > 0:
		return `[` + value(rnd, depth-1) + `, ` + value(rnd, depth-1) + `]`
	default:
		return []string{`null`, `true`, `1.50`, `""`, `"{\"a\":1}"`, `"[1,2]"`, `"{ }"`, `"é\u2028"`, `{}`, `[]`, `{ "x" : 1 }`, `-0`, `12345678901234567890`, `"Error: x"`}[rnd.IntN(14)]
	}
}

// randomItem returns a random item of any type, with parts of every kind, many of them
// unusual.
func randomItem(rnd *rand.Rand, n int) events.NewItem {
	i := events.NewItem{ID: fmt.Sprintf("itm_%d", n), Status: []events.ItemStatus{"", events.ItemStored, events.ItemPending, events.ItemCompleted}[rnd.IntN(4)], Silent: rnd.IntN(4) == 0}
	if rnd.IntN(2) == 0 {
		i.CreatedAt = "2026-02-20T10:00:00.000Z"
	}
	if rnd.IntN(3) == 0 {
		i.Channel, i.ParentItemID = events.Web, "itm_0"
		i.Depth = new(int64(1 + rnd.IntN(3)))
	}
	if rnd.IntN(3) == 0 {
		i.Metadata = events.JSON(`{"own":` + value(rnd, 2) + `}`)
	}
	switch rnd.IntN(6) {
	case 0:
		i.Type, i.Content = events.ActionExecute, events.JSON(`{"callId":"c","name":"f","arguments":`+value(rnd, 2)+`}`)
	case 1:
		i.Type, i.Content = events.ActionResult, events.JSON(`{"callId":"c","output":`+value(rnd, 2)+[]string{``, `,"isError":true`, `,"isError":false`, `,"name":"f"`}[rnd.IntN(4)]+`}`)
	case 2:
		i.Type, i.Content = events.ItemReference, events.JSON(`{"itemId":"itm_9"}`)
	default:
		i.Type, i.Role = events.Message, []events.Role{events.User, events.Assistant, events.System, events.Developer}[rnd.IntN(4)]
		var parts []string
		for range rnd.IntN(6) {
			more := []string{``, `,"x":` + value(rnd, 2), `,"id":` + value(rnd, 1), `,"status":` + value(rnd, 1), `,"skein:item":` + value(rnd, 1)}[rnd.IntN(5)]
			parts = append(parts, []string{
				`{"type":"input_text","text":"a"` + more + `}`, `{"type":"output_text","text":"","annotations":` + value(rnd, 2) + `}`, `{"type":"refusal","refusal":"no"` + more + `}`,
				`{"type":"input_image","image_url":` + value(rnd, 1) + more + `}`, `{"type":"input_file","file_id":` + value(rnd, 1) + `}`,
				`{"type":"reasoning","summary":` + value(rnd, 2) + more + `}`, `{"type":"reasoning"` + more + `,"encrypted_content":` + value(rnd, 1) + `}`,
				`{"type":"tool-f","toolCallId":"c","input":` + value(rnd, 2) + more + `}`, `{"type":"tool-","toolCallId":"c"` + more + `}`,
				`{"type":"tool-f","toolCallId":"c","state":"output-available","input":` + value(rnd, 2) + `,"output":` + value(rnd, 2) + more + `}`,
				`{"type":"tool-g","toolCallId":` + value(rnd, 1) + `,"errorText":` + value(rnd, 1) + more + `}`, `{"type":"acme.mood"` + more + `}`,
				`{"type":"open.web_search_call","item":` + value(rnd, 2) + more + `}`, `{"type":"open.x_call","item":{"type":"x_call"` + more + `}}`,
				`{"type":"message","content":[]` + more + `}`, `{"type":"item_reference"` + more + `}`,
			}[rnd.IntN(16)])
		}
		i.Content = events.JSON("[" + strings.Join(parts, ",") + "]")
	}
	return i
}

// Any thread converts to Open Responses and back in both forms that lose nothing: EK-170.
func TestForm_ExactRoundTripsAnyThread(t *testing.T) {
	made := map[events.ItemType]int{}
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		f := Form{Exact: true, Split: rnd.IntN(2) == 0}
		var items []events.NewItem
		var list []Item
		for n := range 1 + rnd.IntN(5) {
			item := randomItem(rnd, n)
			if item.Check() != nil {
				t.Fatalf("seed %d: %s is no item", seed, item.Content)
			}
			made[item.Type]++
			items = append(items, item)
			list = append(list, writtenAs(t, f, asItem(item))...)
		}
		got, err := Read(over(t, list))
		if err != nil || len(got) != len(items) {
			t.Fatalf("seed %d: %d of %d items: %v", seed, len(got), len(items), err)
		}
		for n := range items {
			want, have := items[n], got[n]
			if want.Status == events.ItemStored { // what an item without a status has
				want.Status = ""
			}
			same := sameValue(have.Content, want.Content) && (want.Metadata == nil) == (have.Metadata == nil) && (want.Metadata == nil || sameValue(have.Metadata, want.Metadata)) &&
				(want.Depth == nil) == (have.Depth == nil) && (want.Depth == nil || *want.Depth == *have.Depth)
			want.Content, have.Content, want.Metadata, have.Metadata, want.Depth, have.Depth = nil, nil, nil, nil, nil, nil
			a, _ := json.Marshal(want)
			b, _ := json.Marshal(have)
			if !same || string(a) != string(b) {
				t.Fatalf("seed %d, %+v:\n%s %s\n%s %s", seed, f, a, items[n].Content, b, got[n].Content)
			}
		}
	}
	if len(made) != 4 || slices.Min([]int{made[events.Message], made[events.ActionExecute], made[events.ActionResult], made[events.ItemReference]}) < 100 {
		t.Errorf("too few of a kind: %v", made)
	}
}

// Any JSON object that is accepted as an item of Open Responses is returned unchanged, and
// writing loses nothing.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`, `{"role":"user","content":"hi","phase":1}`,
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{ }"}`, `{"type":"function_call_output","call_id":"c","output":[1]}`,
		`{"type":"reasoning","summary":[],"id":"x"}`, `{"type":"x","a":{}}`, `{"type":"item_reference","id":"itm_1"}`,
		`{"type":"message","id":"itm_1","skein:item":{"id":"itm_1","item":{"type":"message","role":"user"}},"content":[]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var in Item
		if json.Unmarshal([]byte(text), &in) != nil {
			return
		}
		list, err := Read([]Item{in})
		if err != nil {
			return
		}
		item := asItem(list[0])
		if in.Origin == nil {
			back := writtenAs(t, Form{Split: true, Exact: true}, item)
			for i := range back {
				back[i].Origin = nil
			}
			if len(back) != 1 || !sameValue(valueOf(back[0]), valueOf(in)) {
				t.Errorf("%s\ncomes back as %v", text, back)
			}
		}
		for _, form := range []Form{{Exact: true}, {Exact: true, Split: true}} {
			again, err := Read(over(t, writtenAs(t, form, item)))
			if err != nil || len(again) != 1 || !sameValue(again[0].Content, list[0].Content) {
				t.Errorf("%s\nbecomes %+v\nand then %+v: %v", text, list, again, err)
			}
		}
	})
}

// An item without a status is stored as such, and is still written as it was read.
func TestWrite_StoredItemWithoutStatus(t *testing.T) {
	for _, in := range []string{
		`{"role":"user","content":"hello"}`, `{"type":"compaction","id":"cmp_1","encrypted_content":"skein.summary.SGVsbG8"}`,
		`{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"x","annotations":[]}]}`,
	} {
		var item Item
		if err := json.Unmarshal([]byte(in), &item); err != nil {
			t.Fatal(err)
		}
		list, err := Read([]Item{item})
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v", in, err)
		}
		i := list[0]
		out, err := Form{Split: true}.Write(&events.Item{ID: i.ID, Type: i.Type, Role: i.Role, Status: events.ItemStored, Content: i.Content, Metadata: i.Metadata})
		if err != nil || len(out) != 1 || !sameValue(valueOf(out[0]), events.JSON(in)) {
			t.Errorf("%s becomes %s: %v", in, valueOf(out[0]), err)
		}
	}
}
