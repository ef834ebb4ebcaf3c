package events

import (
	"testing"
	"time"
)

func TestItemCounts(t *testing.T) {
	sum := ItemCounts{Message: 1, ActionExecute: 2, ActionResult: 3, ItemReference: 4}
	sum.Add(ItemCounts{Message: 10, ActionExecute: 20, ActionResult: 30, ItemReference: 40})
	if sum != (ItemCounts{Message: 11, ActionExecute: 22, ActionResult: 33, ItemReference: 44}) || sum.Total() != 110 {
		t.Errorf("%+v, %d in all", sum, sum.Total())
	}
}

// An effect is late that does not run a minute after its time.
func TestScheduledEffect_Late(t *testing.T) {
	now := time.UnixMicro(100_000_000)
	for name, c := range map[string]struct {
		behind  time.Duration
		running bool
		want    bool
	}{
		"a minute": {EffectLate, false, false}, "more": {EffectLate + time.Microsecond, false, true}, "running": {time.Hour, true, false}, "early": {-time.Hour, false, false},
	} {
		e := &ScheduledEffect{ScheduledAt: now.Add(-c.behind).UnixMicro(), Running: c.running}
		if e.Late(now) != c.want {
			t.Errorf("%s: late: %v", name, !c.want)
		}
	}
}

// A life's context is named by a number from 1 on, in one form.
func TestParseLifeKey(t *testing.T) {
	for key, want := range map[string]int64{LifeKey(1): 1, LifeKey(12): 12, LifeKey(0): 0, LifeKey(-1): 0, LifeKeyPrefix + "01": 0, LifeKeyPrefix + "x": 0, LifeKeyPrefix: 0, "1": 0} {
		if life, ok := ParseLifeKey(key); ok != (want > 0) || ok && life != want {
			t.Errorf("%q is of life %d: %v", key, life, ok)
		}
	}
	for idle, want := range map[time.Duration]time.Duration{100 * time.Second: 10 * time.Second, time.Hour: time.Minute} {
		if got := RenewEvery(idle); got != want {
			t.Errorf("a life of %v is renewed every %v", idle, got)
		}
	}
}

// Changes of a state apply to what it was, and say which of them cannot.
func TestStateChanged_After(t *testing.T) {
	for name, c := range map[string]struct {
		change StateChanged
		want   string
	}{
		"content":    {StateChanged{Content: JSON(`{"c":1}`)}, `{"c":1}`},
		"a patch":    {StateChanged{Patch: JSON(`{"a":null,"c":1}`)}, `{"b":[2],"c":1}`},
		"operations": {StateChanged{Operations: []StateOperation{{Op: DeleteOp, Key: "a"}, {Op: PushOp, Key: "b", Value: JSON(`3`)}}}, `{"b":[2,3]}`},
		"cleared":    {StateChanged{Operations: []StateOperation{{Op: ClearOp}, {Op: SetOp, Key: "z", Value: JSON(`0`)}}}, `{"z":0}`},
		"no list":    {StateChanged{Operations: []StateOperation{{Op: ClearOp}, {Op: SetOp, Key: "z", Value: JSON(`0`)}, {Op: PushOp, Key: "z", Value: JSON(`1`)}}}, "/operations/2!"},
		"unknown":    {StateChanged{Operations: []StateOperation{{Op: "swap"}}}, "/operations/0!"},
	} {
		got, err := c.change.After(JSON(`{"a":1,"b":[2]}`))
		if err != nil {
			got = JSON(refusedAt(err))
		}
		if string(got) != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
	if _, _, err := ApplyOperations(JSON(`[`), nil); err == nil {
		t.Error("operations applied to what is no object")
	}
	if got, err := PickKeys(JSON(`{"a":1,"b":2,"c":3}`), []string{"c", "a", "d"}); err != nil || string(got) != `{"a":1,"c":3}` {
		t.Errorf("picked %s, %v", got, err)
	}
	if _, err := PickKeys(JSON(`[`), nil); err == nil {
		t.Error("picked of what is no object")
	}
}

// What waits for an agent is a message, or a call of a tool, which is none.
func TestQueued(t *testing.T) {
	message, call := JSON(`{"id":"itm_1","type":"message","role":"user","createdAt":"2026-02-20T10:00:00.123Z","content":[{"type":"input_text","text":"hi"}]}`), JSON(`{"type":"action_execute"}`)
	for item, want := range map[string]bool{string(message): false, string(call): true, `{"type":`: false} {
		if got := (QueuePushed{Item: JSON(item)}).IsCall(); got != want {
			t.Errorf("%s is a call: %v", item, got)
		}
	}
	shown, id := DocumentQueuedOf(Queued{ID: "q1", Item: message, MessageID: 7})
	if shown == nil || id != "itm_1" || shown.ID != "q1" || *shown.QueuedMessage.MessageID != 7 || shown.QueuedMessage.CreatedAt != 1771581600123 {
		t.Errorf("%+v, %q", shown, id)
	}
	for _, item := range []JSON{call, JSON(`{"type":"message"`)} {
		if shown, _ := DocumentQueuedOf(Queued{Item: item}); shown != nil {
			t.Errorf("%s is shown as %+v", item, shown)
		}
	}
}

// A command changes one thread, what a tenant has defined, or all of a tenant, and its example
// names a thread where it needs one.
func TestCommand_Scope(t *testing.T) {
	for name, want := range map[string]struct {
		scope  Scope
		thread bool
	}{
		"item.create": {OneThread, true}, "thread.create": {OneThread, false}, "definition.apply": {OfDefinitions, false},
	} {
		c, ok := LookupCommand(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		r, err := c.ExampleRequest()
		if err != nil || c.Scope() != want.scope || (r.ThreadID != "") != want.thread {
			t.Errorf("%s: scope %v, thread %q, %v", name, c.Scope(), r.ThreadID, err)
		}
		if of, ok := CommandOf(c.Example); !ok || of.Name != name {
			t.Errorf("%T is of %s", c.Example, of.Name)
		}
	}
	if c, ok := CommandOf(nil); ok {
		t.Errorf("nothing is of %s", c.Name)
	}
	if q, ok := QueryOf(ListItems{}); !ok || q.Name != "item.list" {
		t.Errorf("ListItems is of %q", q.Name)
	}
	n := Names{Prefix: "skein"}
	if n.GatewayKeys("") == n.GatewayKeys("acme") || n.GatewayKeys("acme") != "skein.gateway.keys.acme" {
		t.Errorf("%s, %s", n.GatewayKeys(""), n.GatewayKeys("acme"))
	}
	if got := TextOfParts(JSON(`[{"type":"input_text","text":"a"},{"type":"output_text","text":"b"}]`)); got != "a\nb" || TextOfParts(JSON(`[]`)) != "" {
		t.Errorf("%q", got)
	}
}

// An item was made when it says so, or else when it was stored.
func TestItemCreated_Item(t *testing.T) {
	at := TimeOf(time.UnixMicro(5_000_000).UTC())
	for own, want := range map[string]Time{"": at, "1970-01-01T00:00:01Z": 1_000_000, "yesterday": at} {
		if i := (ItemCreated{CreatedAt: own}).Item("T-1", at); i.CreatedAtMicros != int64(want) || i.CreatedAt != want.ISO() {
			t.Errorf("%q: made at %s", own, i.CreatedAt)
		}
	}
}

// A text is JSON if it is a compact object or list, and otherwise a string.
func TestFromText(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, `[1]`: `[1]`, `{"a": 1}`: `"{\"a\": 1}"`, `[1`: `"[1"`, `{"a":1}x`: `"{\"a\":1}x"`, `1`: `"1"`, `null`: `"null"`, "": `""`, "a\xff": `""`,
	} {
		if got := FromText(text); string(got) != want {
			t.Errorf("%q is %s, not %s", text, got, want)
		}
		if want != `""` && TextOf(FromText(text)) != text {
			t.Errorf("%q comes back as %q", text, TextOf(FromText(text)))
		}
	}
	said := "hi"
	for role, want := range map[MessageRole]string{FromUser: InputText, FromAssistant: OutputText} {
		item, _, err := AddMessage{Role: role, Content: &said}.Items()
		if err != nil || string(item.Content) != `[{"type":"`+want+`","text":"hi"}]` {
			t.Errorf("%s: %s, %v", role, item.Content, err)
		}
	}
}

// A prefix of names is 1 to 32 lower-case letters and digits.
func TestNames_ValidateBounds(t *testing.T) {
	for prefix, want := range map[string]bool{
		"": false, "a": true, "z": true, "0": true, "9": true, "{": false, "`": false, "/": false, ":": false, "A": false,
		"a2345678901234567890123456789012": true, "a23456789012345678901234567890123": false,
	} {
		if err := (Names{Prefix: prefix}).Validate(); (err == nil) != want {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

// A reply names what its command made.
func TestReplyWithout_Result(t *testing.T) {
	event := func(d any) Event { return Event{Data: d} }
	for name, c := range map[string]struct {
		made []Event
		of   func(r *Result) bool
	}{
		"nothing":              {nil, func(r *Result) bool { return r == nil }},
		"a state without life": {[]Event{event(StateChanged{Size: 3})}, func(r *Result) bool { return r == nil }},
		"a life":               {[]Event{event(StateChanged{Life: 1, Size: 3})}, func(r *Result) bool { return r.Life == 1 && *r.Size == 3 }},
		"a message that waits": {[]Event{event(QueuePushed{ID: "q1", ExecutionID: "exe_1"})}, func(r *Result) bool { return r.QueuedID == "q1" && r.ExecutionID == "exe_1" }},
		"one that waits no more": {[]Event{event(QueuePushed{ID: "q1", ExecutionID: "exe_1"}), event(QueueDrained{IDs: []string{"q1"}})},
			func(r *Result) bool { return r.QueuedID == "" && r.ExecutionID == "exe_1" }},
		"another that waits no more": {[]Event{event(QueuePushed{ID: "q1", ExecutionID: "exe_1"}), event(QueueDrained{IDs: []string{"q2"}})},
			func(r *Result) bool { return r.QueuedID == "q1" }},
		"a call that waits no more": {[]Event{event(QueuePushed{ID: "q1"}), event(QueueDrained{IDs: []string{"q1"}})},
			func(r *Result) bool { return r.QueuedID == "q1" }},
		"a fork":    {[]Event{event(RelationshipAdded{Type: ForkRelation, Role: ParentRole, ThreadID: "T-2"})}, func(r *Result) bool { return r.ChildID == "T-2" }},
		"of a fork": {[]Event{event(RelationshipAdded{Type: ForkRelation, Role: ChildRole, ThreadID: "T-2"})}, func(r *Result) bool { return r == nil }},
		"a mention": {[]Event{event(RelationshipAdded{Type: MentionRelation, Role: ParentRole, ThreadID: "T-2"})}, func(r *Result) bool { return r == nil }},
	} {
		if r := ReplyWithout("T-1", 1, 1, c.made); !c.of(r.Result) {
			t.Errorf("%s: %+v", name, r.Result)
		}
	}
}
