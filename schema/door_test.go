package schema

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/events"
)

func TestDoorRefusals(t *testing.T) {
	v := newValidator(t)
	const item = "item.create"
	deep := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	for _, c := range []struct {
		command, raw  string
		path, message string
	}{
		{item, ``, "/item", "is missing; it must be an object"},
		{item, `null`, "", "must be an object"},
		{item, `[]`, "", "must be an object"},
		{item, `{"item":null}`, "/item", "is null; it must be an object"},
		{item, `{"item":{"type":"msg"}}`, "/item/type", "must be one of message, action_execute, action_result, item_reference"},
		{item, `{"item":{"type":"message","role":"bot","content":[]}}`, "/item/role", "must be one of user, assistant, system, developer"},
		{item, `{"item":{"type":"message","content":[]}}`, "/item/role", "a message needs a role"},
		{item, `{"item":{"type":"message","role":"user"}}`, "/item/content", "a message's content is a list of parts"},
		{item, `{"item":{"type":"message","role":"user","content":[{}]}}`, "/item/content/0/type", "a part has a type of 1 to 128 letters"},
		{item, `{"item":{"type":"message","role":"user","content":[{"type":"reasoning"},{"type":"input_text"}]}}`, "/item/content/1/text", "input_text has a text"},
		{item, `{"item":{"type":"action_execute","role":"user","content":{}}}`, "/item/role", "only a message has a role"},
		{item, `{"item":{"type":"action_execute","content":{"callId":"c","name":"n"}}}`, "/item/content/arguments", "a call has arguments"},
		{item, `{"item":{"type":"item_reference","content":{"itemId":"i","x":1}}}`, "/item/content/x", "there is no such field"},
		{item, `{"item":{"type":"message","role":"user","content":[],"depth":1.5}}`, "/item/depth", "must be a whole number from 0 to 1000"},
		{item, `{"item":{"type":"message","role":"user","content":[],"depth":"1"}}`, "/item/depth", "must be a whole number from 0 to 1000"},
		{item, `{"item":{"type":"message","role":"user","content":[],"silent":1}}`, "/item/silent", "must be true or false"},
		{item, `{"item":{"type":"message","role":"user","content":[],"metadata":[]}}`, "/item/metadata", "must be an object"},
		{item, `{"item":{"type":"message","role":"user","content":[],"createdAt":"today"}}`, "/item/createdAt", "must be a UTC time such as 2026-02-20T10:00:00.000Z"},
		{item, `{"item":{"type":"message"},"contextId":"a b"}`, "/item/role", "a message needs a role"},
		{item, `{"contextId":"a b"}`, "/contextId", "must be an id: 1 to 64 letters, digits, _ and -, the first a letter or digit"},
		{"context.resolve", `{"a/b~c":1}`, "/a~1b~0c", "there is no such field; known are key"},
		{"context.set", `{}`, "", "exactly one of content and patch is needed"},
		{"context.set", `{"content":null,"patch":null}`, "", "exactly one of content and patch is needed"},
		{"thread.create", `{"key":"a\u0007"}`, "/key", "must be a key: 1 to 256 characters, none of them a control character"},
		{"thread.create", `{"userId":"` + strings.Repeat("é", 257) + `"}`, "/userId", "must be a text of at most 256 characters"},
		{"thread.create", `{"userId":7}`, "/userId", "must be a text of at most 256 characters"},
		{"thread.update", `{"maxTokens":0}`, "/maxTokens", "must be a whole number, at least 1"},
		{"thread.update", `{"maxTokens":9007199254740992}`, "/maxTokens", "must be a whole number, at least 1; 2^53-1 is the limit"},
		{"thread.update", `{"maxTokens":1e999999999}`, "/maxTokens", "must be a whole number, at least 1; 2^53-1 is the limit"},
		{"thread.commit", `{"commands":[]}`, "/commands", "must be a list of 1 to 200 elements"},
		{"thread.commit", `{"commands":{}}`, "/commands", "must be a list of 1 to 200 elements"},
		{"thread.commit", `{"commands":[` + strings.Repeat(`{"command":"thread.create"},`, 200) + `{"command":"thread.create"}]}`, "/commands", "must be a list of 1 to 200 elements"},
		{"thread.commit", `{"commands":[{"command":"thread.create"},null]}`, "/commands/1", "is null; it must be an object"},
		{"thread.commit", `{"commands":[{"command":"thread.create","data":[]}]}`, "/commands/0/data", "must be an object"},
		{"thread.commit", `{"commands":[{"data":{}}]}`, "/commands/0/command", "is missing; it must be a name: 1 to 128 letters, digits and _ . : / -, the first a letter or digit"},
		{"part.put", `{"stepId":"s","idx":100000}`, "/idx", "must be a whole number from 0 to 99999"},
		{"part.put", `{"stepId":"s","idx":null}`, "/idx", "is null; it must be a whole number from 0 to 99999"},
		{"part.put", `{"stepId":"","idx":0}`, "/stepId", "must be an id: 1 to 64 letters, digits, _ and -, the first a letter or digit"},
		{"no.such", `{}`, "", `there is no command "no.such"`},

		{item, `{"item":`, "/item", "not JSON: unexpected EOF at byte 8"},
		{item, `{"item":{}} x`, "", "something follows the JSON value, at byte 11"},
		{item, `{"item":{"type":"message","type":"message"}}`, "/item/type", "the name stands twice, again at byte 26"},
		{item, `{"contextId":"` + "\xff" + `"}`, "/contextId", "not JSON: invalid UTF-8 at byte 14"},
		{"context.create", `{"content":` + deep(MaxDepth) + `}`, "", "objects and lists lie more than 64 deep in one another"},
	} {
		_, err := v.DecodeCommand(c.command, []byte(c.raw))
		refused(t, err, c.raw, c.path, c.message)
	}
	for raw, want := range map[string][2]string{
		``:                         {"", "nothing was sent; send a JSON object"},
		`{"threadId":"x"}`:         {"/threadId", "must be a thread: T- and a UUID, thrd_ and 27 to 59 letters and digits, or key: and the thread's key"},
		`{"expectedVersion":-1}`:   {"/expectedVersion", "must be a whole number, at least 0"},
		`{"data":"{}"}`:            {"/data", "must be an object"},
		`{"commandId":"no space"}`: {"/commandId", "must be a command's id: 1 to 128 letters, digits and _ . : -, the first a letter or digit"},
		`{"Data":{}}`:              {"/Data", "there is no such field; known are commandId, threadId, writerToken, expectedVersion, actor, data, rights"},
	} {
		_, err := v.DecodeRequest([]byte(raw))
		refused(t, err, raw, want[0], want[1])
	}
	for raw, want := range map[string][2]string{
		``:                                     {"/threadId", "is missing; it must be a thread: T- and a UUID, thrd_ and 27 to 59 letters and digits, or key: and the thread's key"},
		`{"threadId":"key:a","limit":1001}`:    {"/limit", "must be a whole number from 1 to 1000"},
		`{"threadId":"key:a","minSeq":-1}`:     {"/minSeq", "must be a whole number, at least 0"},
		`{"threadId":"key:a","types":["a",1]}`: {"/types/1", "must be a text"},
	} {
		_, err := v.DecodeQuery("event.list", []byte(raw))
		refused(t, err, raw, want[0], want[1])
	}
	_, err := v.DecodeQuery("thread.get", []byte(`{"threadId":"key:a","at":{"version":1,"time":"2026-02-20T10:00:00Z"}}`))
	refused(t, err, "at", "/at", "exactly one of version and time is needed")
	_, err = v.DecodeQuery("no.such", nil)
	refused(t, err, "", "", `there is no query "no.such"`)
}

func refused(t *testing.T, err error, raw, path, message string) {
	t.Helper()
	if len(raw) > 200 {
		raw = raw[:200]
	}
	var e *events.Error
	if !errors.As(err, &e) || e.Code != events.InvalidRequest {
		t.Errorf("%s: %v", raw, err)
		return
	}
	if path != "" {
		message = path + ": " + message
	}
	if e.Details.Path != path || e.Message != message {
		t.Errorf("%s:\n got %s | %s\nwant %s | %s", raw, e.Details.Path, e.Message, path, message)
	}
}

// A name that a caller made up does not come back whole, however long it is.
func TestRefusalsStayShort(t *testing.T) {
	v := newValidator(t)
	long := strings.Repeat("é", 1<<19)
	for _, raw := range []string{`{"` + long + `":1}`, `{"data":{"` + long + `":1,"` + long + `":2}}`, `{"threadId":"` + long + `"}`, `{"data":` + long + `}`} {
		if _, err := v.DecodeRequest([]byte(raw)); err == nil || len(events.EncodeError(events.AsError(err))) > 1000 {
			t.Errorf("%d bytes of refusal", len(events.EncodeError(events.AsError(err))))
		}
	}
}

// A name of 128 bytes comes back whole, and a longer one up to there.
func TestRefusals_ClipNames(t *testing.T) {
	v := newValidator(t)
	for _, n := range []int{1, 127, 128, 129, 1000} {
		name := strings.Repeat("a", n)
		_, err := v.DecodeRequest([]byte(`{"` + name + `":1}`))
		want := "/" + name
		if n > 128 {
			want = "/" + name[:128] + "..."
		}
		refused(t, err, name, want, "there is no such field; known are commandId, threadId, writerToken, expectedVersion, actor, data, rights")
	}
}

// What stands for nothing: null, and "" where the Go field is no pointer.
func TestDoorTakesNothingForAbsent(t *testing.T) {
	v := newValidator(t)
	for _, c := range []struct {
		command, raw string
		want         any
	}{
		{"thread.create", ``, events.CreateThread{}},
		{"thread.create", ` { } `, events.CreateThread{}},
		{"thread.create", `{"key":null,"title":"","metadata":null,"mainThreadId":""}`, events.CreateThread{}},
		{"thread.create", `{"context":null}`, events.CreateThread{Context: events.JSON("null")}},
		{"context.set", `{"content":null}`, events.SetContext{Content: events.JSON("null")}},
		{"thread.update", `{"title":"","draft":null,"archived":false}`, events.UpdateThread{Title: new(string), Archived: new(bool)}},
		{"item.status", `{"itemId":"\u0061\u002d1","to":"pending"}`, events.SetItemStatus{ItemID: "a-1", To: events.ItemPending}},
		{"part.put", `{"stepId":"s","idx":1e2,"key":"","part":[ 1.50, 1e2 ]}`, events.PutPart{StepID: "s", Idx: number100(), Part: events.JSON(`[ 1.50, 1e2 ]`)}},
		{"item.create", `{"item":{"type":"action_result","role":"","status":null,"content":{"callId":"c","output":null}}}`,
			events.CreateItem{Item: events.NewItem{Type: events.ActionResult, Content: events.JSON(`{"callId":"c","output":null}`)}}},
	} {
		got, err := v.DecodeCommand(c.command, []byte(c.raw))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, not %+v (%v)", c.raw, got, c.want, err)
		}
	}
	got, err := v.DecodeQuery("thread.get", []byte(`{"threadId":"key:a","at":{"version":null,"time":"2026-02-20T10:00:00Z"},"minSeq":null,"minVersion":3}`))
	three := int64(3)
	want := events.GetThread{ThreadID: "key:a", At: &events.At{Time: "2026-02-20T10:00:00Z"}, Fresh: events.Fresh{MinVersion: &three}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v (%v)", got, err)
	}
}

func number100() *int64 { n := int64(100); return &n }

// What is no JSON is refused or read as nonsense, wherever it ends.
func TestDecodeTrusted_CutShort(t *testing.T) {
	v := newValidator(t)
	for command, raw := range map[string]string{
		"thread.create": `{"key":"","title":"a\u00e9","metadata":{"a":[1]},"userId":null,"mainThreadId":""}`,
		"thread.commit": `{"commands":[{"command":"item.status","data":{"itemId":"i","to":"pending"}},{"command":"thread.close","data":null}]}`,
		"item.create":   `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}],"depth":1e0,"silent":true},"contextId":"c"}`,
	} {
		if _, err := v.DecodeTrusted(command, events.JSON(raw)); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		for n := range raw {
			_, _ = v.DecodeTrusted(command, events.JSON(raw[:n]))
		}
	}
}

func TestDoorDepth(t *testing.T) {
	v := newValidator(t)
	nest := func(levels int) []byte {
		inside := levels - 2 // the request and its data
		return []byte(`{"data":{"a":` + strings.Repeat("[", inside) + strings.Repeat("]", inside) + `}}`)
	}
	if _, err := v.DecodeRequest(nest(MaxDepth)); err != nil {
		t.Error(err)
	}
	if _, err := v.DecodeRequest(nest(MaxDepth + 1)); err == nil {
		t.Error("one deeper is taken")
	}
	if _, err := v.DecodeRequest([]byte(`{"actor":"` + strings.Repeat("[", 200) + `"}`)); err != nil {
		t.Errorf("brackets in a text count: %v", err)
	}
	if _, err := v.DecodeRequest(nest(1 << 20)); err == nil {
		t.Error("a million levels are taken")
	}
}

func TestUnder(t *testing.T) {
	v := newValidator(t)
	_, err := v.DecodeCommand("item.status", []byte(`{"itemId":"a b"}`))
	moved := Under("/data/commands/3/data", err)
	refused(t, moved, "", "/data/commands/3/data/itemId", "must be an id: 1 to 64 letters, digits, _ and -, the first a letter or digit")
	refused(t, err, "", "/itemId", "must be an id: 1 to 64 letters, digits, _ and -, the first a letter or digit")
	refused(t, Under("/data", events.Invalid("", "all of it")), "", "/data", "all of it")
	if other := events.Missing("item", "x"); Under("/data", other) != error(other) || Under("/data", nil) != nil {
		t.Error("another error is changed")
	}
}

// Any JSON is bytes of the request; what is appended to it does not run into
// what follows.
func TestDoorAliases(t *testing.T) {
	v := newValidator(t)
	raw := []byte(`{"data":{"a":1},"actor":"ada"}`)
	r, err := v.DecodeRequest(raw)
	if err != nil || &r.Data[0] != &raw[8] {
		t.Fatalf("data is a copy (%v)", err)
	}
	_ = append(r.Data, "xxxx"...)
	if string(raw) != `{"data":{"a":1},"actor":"ada"}` {
		t.Error("the request was overwritten")
	}
}

func TestDoorIsForAllGoroutines(t *testing.T) {
	v := newValidator(t)
	raw := commitRequest()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				r, err := v.DecodeRequest(raw)
				if err != nil {
					t.Error(err)
				}
				if _, err := v.DecodeTrusted("thread.commit", r.Data); err != nil {
					t.Error(err)
				}
				if err := v.Resource("request", raw); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// The commit of the benchmark passes whole, each of its commands too.
func TestDoorTakesACommit(t *testing.T) {
	v := newValidator(t)
	raw := commitRequest()
	r, err := v.DecodeRequest(raw)
	if err != nil {
		t.Fatal(err)
	}
	commit, err := v.DecodeTrusted("thread.commit", r.Data)
	if err != nil {
		t.Fatal(err)
	}
	commands := commit.(events.CommitThread).Commands
	if len(commands) != 12 || len(raw) < 4<<10 {
		t.Errorf("%d commands in %d bytes", len(commands), len(raw))
	}
	for _, c := range commands {
		trusted, err := v.DecodeTrusted(c.Command, c.Data)
		if err != nil {
			t.Errorf("%s: %v", c.Command, err)
		}
		if checked, err := v.DecodeCommand(c.Command, c.Data); err != nil || !reflect.DeepEqual(checked, trusted) {
			t.Errorf("%s: %+v, not %+v (%v)", c.Command, checked, trusted, err)
		}
	}
}
