package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// The documents of the specification (EK), as they stand there.

// takeItem decodes an item of a request and returns it as JSON.
func takeItem(t *testing.T, v *Validator, item string) (events.NewItem, string) {
	t.Helper()
	got, err := v.DecodeCommand("item.create", events.JSON(`{"item":`+item+`}`))
	if err != nil {
		t.Fatalf("%s: %v", item, err)
	}
	taken := got.(events.CreateItem).Item
	again, err := json.Marshal(taken)
	if err != nil {
		t.Fatal(err)
	}
	return taken, string(again)
}

func refuseItem(t *testing.T, v *Validator, item string) {
	t.Helper()
	if _, err := v.DecodeCommand("item.create", events.JSON(`{"item":`+item+`}`)); err == nil {
		t.Errorf("taken: %s", item)
	}
}

// same fails if two documents do not say the same.
func same(t *testing.T, got, want string) {
	t.Helper()
	a, b := events.JSON(got), events.JSON(want)
	if (*jsontext.Value)(&a).Canonicalize() != nil || (*jsontext.Value)(&b).Canonicalize() != nil || string(a) != string(b) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// links are the fields of a stored item in addition to its EK fields (EK-161).
const links = `"threadId":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","contextId":"ctx_1","index":0,"version":1,"seq":1`

// stored adds members to a document.
func stored(document, members string) string {
	return strings.TrimSuffix(document, "}") + "," + members + "}"
}

const userItem = `{"id":"itm_user_01","type":"message","role":"user","createdAt":"2026-02-20T10:00:00.000Z",` +
	`"content":[{"type":"input_text","text":"Summarize this repo."}]}`

// EK-50: the user message without a status validates and comes back unchanged,
// as a command's item and as a document. EK-8, EK-33..EK-36, EK-43.
func TestFixtureUserMessage(t *testing.T) {
	v := newValidator(t)
	taken, again := takeItem(t, v, userItem)
	same(t, again, userItem)
	if taken.Status != "" || string(taken.Content) != `[{"type":"input_text","text":"Summarize this repo."}]` {
		t.Errorf("%+v", taken)
	}
	keepDocument(t, v, "item", stored(userItem, links), &events.Item{})
}

// keepDocument holds a document to its schema and reads and writes it by its
// Go type: nothing may be lost.
func keepDocument(t *testing.T, v *Validator, name, document string, into any) {
	t.Helper()
	if err := v.Resource(name, []byte(document)); err != nil {
		t.Errorf("%s: %v", document, err)
	}
	if err := json.Unmarshal([]byte(document), into); err != nil {
		t.Errorf("%s: %v", document, err)
	}
	again, err := json.Marshal(into)
	if err != nil {
		t.Error(err)
	}
	same(t, string(again), document)
}

// EK-187, EK-188, EK-189, EK-190, EK-191: the documents of the canonical turn.
func TestFixtureCanonicalTurn(t *testing.T) {
	v := newValidator(t)
	const (
		trigger = `{"id":"itm_u1","type":"message","role":"user","createdAt":"2026-02-20T12:00:00.000Z","content":[{"type":"input_text","text":"Create a project plan."}]}`
		begun   = `{"id":"exe_1","status":"executing","triggerItemId":"itm_u1","reactionItemId":"itm_a1"}`
		pending = `{"id":"itm_a1","type":"message","role":"assistant","status":"pending","content":[{"type":"output_text","text":"I will build the plan in phases."},{"type":"tool-plan_writer","toolCallId":"tc_1","input":{"scope":"full"}}]}`
		merged  = `[{"type":"output_text","text":"I will build the plan in phases."},{"type":"tool-plan_writer","toolCallId":"tc_1","state":"output-available","output":{"ok":true}}]`
		created = `"createdAt":"2026-02-20T12:00:00.000Z"`
		where   = `"threadId":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","contextId":"ctx_1","version":1,"seq":1,` + created
	)
	_, again := takeItem(t, v, trigger)
	same(t, again, trigger)
	keepDocument(t, v, "item", stored(trigger, links), &events.Item{})

	keepDocument(t, v, "execution", stored(begun, where), &events.Execution{})
	got, err := v.DecodeCommand("execution.create", events.JSON(`{"id":"exe_1","triggerItemId":"itm_u1","reactionItemId":"itm_a1"}`))
	if want := (events.CreateExecution{ID: "exe_1", TriggerItemID: "itm_u1", ReactionItemID: "itm_a1"}); err != nil || got != want {
		t.Errorf("%+v (%v)", got, err)
	}

	_, again = takeItem(t, v, pending)
	same(t, again, pending)
	keepDocument(t, v, "item", stored(stored(pending, created), links), &events.Item{})

	got, err = v.DecodeCommand("message.edit", events.JSON(`{"itemId":"itm_a1","content":`+merged+`}`))
	if err != nil || string(got.(events.EditMessage).Content) != merged {
		t.Errorf("%+v (%v)", got, err)
	}
	completed := `{"id":"itm_a1","type":"message","role":"assistant","status":"completed",` + created + `,"content":` + merged + `}`
	keepDocument(t, v, "item", stored(completed, links), &events.Item{})

	keepDocument(t, v, "execution", stored(strings.Replace(begun, "executing", "completed", 1), where), &events.Execution{})
	keepDocument(t, v, "thread", `{"id":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","key":null,"status":"open","version":9,"seq":9,`+created+`}`, &events.Thread{})
	keepDocument(t, v, "context", `{"id":"ctx_1","threadId":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","key":null,"status":"open","content":null,"version":9,"seq":9,`+created+`}`, &events.Context{})
}

const codexPart = `{"type":"codex-event","state":"output-available","output":{"threadId":"t1","turnId":"turn1"}}`

// EK-177, EK-77: the extension part comes through the door with the bytes that
// it had, as a part and inside a message (EK-80).
func TestFixtureExtensionPart(t *testing.T) {
	v := newValidator(t)
	got, err := v.DecodeCommand("part.put", events.JSON(`{"stepId":"stp_1","idx":0,"type":"codex-event","part":`+codexPart+`}`))
	if err != nil || string(got.(events.PutPart).Part) != codexPart {
		t.Errorf("%+v (%v)", got, err)
	}
	taken, _ := takeItem(t, v, `{"type":"message","role":"assistant","content":[`+codexPart+`]}`)
	if string(taken.Content) != "["+codexPart+"]" {
		t.Errorf("%s", taken.Content)
	}
	keepDocument(t, v, "part", `{"key":"stp_1:0","threadId":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","stepId":"stp_1","idx":0,"type":"codex-event","part":`+codexPart+`,"version":1,"seq":1}`, &events.Part{})
}

// EK-42..EK-49: the required and the recommended parts are taken, and come back
// as they were. Those whose form EK fixes need it.
func TestMessageParts(t *testing.T) {
	v := newValidator(t)
	for _, part := range []string{
		`{"type":"input_text","text":""}`,
		`{"type":"output_text","text":"hi","annotations":[]}`,
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"why"}]}`,
		`{"type":"input_image","image_url":"https://example.com/a.png","detail":"auto"}`,
		`{"type":"input_file","file_id":"f_1"}`,
		`{"type":"refusal","refusal":"no"}`,
		`{"type":"tool-plan_writer","toolCallId":"tc_1","input":{"scope":"full"}}`,
	} {
		taken, _ := takeItem(t, v, `{"type":"message","role":"assistant","content":[`+part+`]}`)
		if string(taken.Content) != "["+part+"]" {
			t.Errorf("%s became %s", part, taken.Content)
		}
	}
	for _, part := range []string{`{"type":"input_text"}`, `{"type":"output_text","text":null}`, `{"type":"refusal"}`, `{"text":"no type"}`, `"text"`, `null`} {
		refuseItem(t, v, `{"type":"message","role":"assistant","content":[`+part+`]}`)
	}
}

// EK-9, EK-31, EK-34, EK-38, EK-39, EK-41: four kinds of items and no other,
// each with content of its own form.
func TestItemKinds(t *testing.T) {
	v := newValidator(t)
	for _, item := range []string{
		`{"type":"message","role":"user","content":[]}`,
		`{"type":"action_execute","content":{"callId":"c","name":"n","arguments":{"a":[1,null]}}}`,
		`{"type":"action_result","content":{"callId":"c","output":[1.50],"isError":true}}`,
		`{"type":"item_reference","content":{"itemId":"itm_1"}}`,
	} {
		_, again := takeItem(t, v, item)
		same(t, again, item)
		keepDocument(t, v, "item", stored(stored(item, `"id":"itm_1","createdAt":"2026-02-20T10:00:00.000Z"`), links), &events.Item{})
	}
	for _, item := range []string{
		`{"role":"user","content":[]}`,
		`{"type":"function_call","content":{}}`,
		`{"type":"reasoning","content":[]}`,
		`{"type":"Message","role":"user","content":[]}`,
		`{"type":"message","role":"user"}`,
		`{"type":"message","role":"user","content":"hi"}`,
		`{"type":"message","role":"user","content":{"itemId":"itm_1"}}`,
		`{"type":"action_execute"}`,
		`{"type":"action_result","content":[]}`,
		`{"type":"item_reference","content":{"itemId":"itm_1","callId":"c"}}`,
	} {
		refuseItem(t, v, item)
	}
	if got, want := events.ItemType("").Enum(), []string{"message", "action_execute", "action_result", "item_reference"}; !slices.Equal(got, want) {
		t.Error(got)
	}
}

// EK-7, EK-32, EK-40: a message has one of four roles, and nothing else has one.
// EK-36, EK-37: status and channel are of closed sets.
func TestRolesAndOtherSets(t *testing.T) {
	v := newValidator(t)
	for field, values := range map[string][]string{
		"role":    {"user", "assistant", "system", "developer"},
		"status":  {"stored", "pending", "completed"},
		"channel": {"web", "whatsapp", "email"},
	} {
		base := `{"type":"message","role":"user","content":[]}`
		if field == "role" {
			base = `{"type":"message","content":[]}`
		}
		for _, value := range values {
			item := stored(base, fmt.Sprintf(`%q:%q`, field, value))
			_, again := takeItem(t, v, item)
			same(t, again, item)
		}
		refuseItem(t, v, stored(base, fmt.Sprintf(`%q:"other"`, field)))
	}
	refuseItem(t, v, `{"type":"message","content":[]}`)
	refuseItem(t, v, `{"type":"message","role":null,"content":[]}`)
	refuseItem(t, v, `{"type":"message","role":"tool","content":[]}`)
	refuseItem(t, v, `{"type":"item_reference","role":"user","content":{"itemId":"itm_1"}}`)
	refuseItem(t, v, `{"type":"action_result","role":"assistant","content":{"callId":"c","output":1}}`)
}

// EK-173..EK-176: extensions are additive. A document or an event may have more
// fields than are known; metadata is the caller's own; what is canonical stays
// what it is, and a request's unknown field is refused, not ignored.
func TestExtensionsAreAdditive(t *testing.T) {
	v := newValidator(t)
	item := stored(stored(userItem, links), `"acme:rating":{"stars":5},"metadata":{"acme:tag":[1,{"a":null}]}`)
	if err := v.Resource("item", []byte(item)); err != nil {
		t.Error(err)
	}
	if err := v.Resource("item", []byte(strings.Replace(item, `"role":"user"`, `"role":"acme:bot"`, 1))); err == nil {
		t.Error("an extension changed what a role is")
	}
	taken, _ := takeItem(t, v, `{"type":"message","role":"user","content":[{"type":"acme:poll","votes":[1,2]}],"metadata":{"acme:tag":[1,{"a":null}]}}`)
	if string(taken.Metadata) != `{"acme:tag":[1,{"a":null}]}` || string(taken.Content) != `[{"type":"acme:poll","votes":[1,2]}]` {
		t.Errorf("%+v", taken)
	}
	refuseItem(t, v, stored(userItem, `"acme:rating":5`))
}
