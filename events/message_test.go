package events

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// stored returns the items that a message becomes, as documents.
func stored(t *testing.T, m AddMessage) (*Item, []*Item) {
	t.Helper()
	item, calls, err := m.Items()
	if err != nil {
		t.Fatal(err)
	}
	if err := item.Check(); err != nil {
		t.Fatalf("%s: %v", item.Content, err)
	}
	doc := func(n NewItem, of *int64) *Item {
		i := &Item{
			ID: "itm_1", Type: n.Type, Role: n.Role, Status: n.Status, Content: n.Content, CreatedAt: start.ISO(), CreatedAtMicros: int64(start),
			ParentItemID: n.ParentItemID, Silent: n.Silent, Metadata: n.Metadata, CallOf: of, Failed: m.Status == MessageFailed,
		}
		if n.Depth != nil {
			i.Depth = *n.Depth
		}
		return i
	}
	var list []*Item
	for _, c := range calls {
		if err := c.Check(); err != nil {
			t.Fatalf("%s: %v", c.Content, err)
		}
		list = append(list, doc(c, to(int64(0))))
	}
	return doc(item, nil), list
}

// SA-23..SA-37: a message as the two seeds have it, byte by byte: the tool's columns, the
// microseconds, null where a value is unknown (C-37).
func TestMessageGolden(t *testing.T) {
	for name, m := range map[string]AddMessage{
		"assistant": {
			Role: FromAssistant, Content: to("One moment."), ParentID: "itm_0", Depth: to(int64(1)), Silent: true, Metadata: raw(`{"edited":true}`),
			ToolCalls: `[{"id":"call_1","type":"function","function":{"name":"find","arguments":"{\"order\":42}"}}]`, Status: MessagePending,
		},
		"tool": {Role: FromTool, Content: to("shipped"), Name: "find", ToolCallID: "call_1", ToolStatus: ToolError, Status: MessageFailed},
		"user": {Role: FromUser, Content: to("Where is it?")},
	} {
		item, calls := stored(t, m)
		got, err := json.Marshal(MessageOf(item, calls, 0))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", "messages", name+".json")
		if *update {
			if err := os.WriteFile(file, append(got, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v; -update writes it", err)
		}
		if string(got)+"\n" != string(want) {
			t.Errorf("%s:\nis   %s\nwant %s", name, got, want)
		}
	}
}

// SA-24, SA-27, SA-35, C-8..C-10: a message is read as it was added, whatever its texts hold.
func TestMessages_RoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "a", "{}", `{"a":1}`, `{ "a": 1 }`, `[1,2]`, `"q"`, "null", "1.0", "\n\t\"\\", "ü😀\u0000", `{"a":`, strings.Repeat("x", 300)}
	text := func() string { return texts[rnd.IntN(len(texts))] }
	for n := range 2000 {
		m := AddMessage{Role: MessageRole(MessageRole("").Enum()[rnd.IntN(4)]), Silent: rnd.IntN(2) == 0, Status: MessageStatus(append(MessageStatus("").Enum(), "")[rnd.IntN(4)])}
		if rnd.IntN(3) > 0 {
			m.Content = to(text())
		}
		if rnd.IntN(2) == 0 {
			m.Metadata = raw(fmt.Sprintf(`{"n":%d}`, n))
		}
		switch m.Role {
		case FromTool:
			m.ToolCallID, m.ToolStatus = "call", ToolStatus(ToolStatus("").Enum()[rnd.IntN(2)])
			if rnd.IntN(2) == 0 {
				m.Name = "find"
			}
		case FromAssistant:
			var list []toolCall
			for i := range rnd.IntN(4) {
				list = append(list, toolCall{ID: fmt.Sprint("c", i), Type: "function", Function: toolFunction{Name: "n", Arguments: text()}})
			}
			if list != nil {
				b, err := json.Marshal(list)
				if err != nil {
					t.Fatal(err)
				}
				m.ToolCalls = string(b)
			}
		}
		item, calls := stored(t, m)
		got := MessageOf(item, calls, 0)
		want := ThreadMessage{
			ID: "itm_1", Role: m.Role, Content: m.Content, Name: textOrNil(m.Name), ToolCalls: textOrNil(m.ToolCalls), ToolCallID: textOrNil(m.ToolCallID),
			CreatedAt: int64(start), Silent: m.Silent, Metadata: m.Metadata,
		}
		if want.Metadata == nil {
			want.Metadata = raw("{}")
		}
		if m.Status != "" {
			want.Status = &m.Status
		}
		if m.ToolStatus != "" {
			want.ToolStatus = &m.ToolStatus
		}
		if !reflect.DeepEqual(*got, want) {
			a, _ := json.Marshal(got)
			b, _ := json.Marshal(want)
			t.Fatalf("is   %s\nwant %s", a, b)
		}
	}
}

// C-8, C-9: items that were not created from a message.
func TestMessageOf_OtherItems(t *testing.T) {
	call := JSON(`{"callId":"c","name":"n","arguments":{"a":1}}`)
	for name, c := range map[string]struct {
		item Item
		want string // content, tool_calls, role
	}{
		"several parts":  {Item{Type: Message, Role: Assistant, Content: raw(`[{"type":"reasoning","text":"hm"},{"type":"output_text","text":"a"},{"type":"tool-x","toolCallId":"c"},{"type":"refusal","refusal":"b"}]`)}, "a\nb||assistant"},
		"no text":        {Item{Type: Message, Role: User, Content: raw(`[{"type":"image","url":"x"}]`)}, "-||user"},
		"developer":      {Item{Type: Message, Role: Developer, Content: raw(`[]`)}, "-||system"},
		"call alone":     {Item{Type: ActionExecute, Content: call}, `-|[{"id":"c","type":"function","function":{"name":"n","arguments":"{\"a\":1}"}}]|assistant`},
		"result of JSON": {Item{Type: ActionResult, Content: raw(`{"callId":"c","output":{"a":[1]}}`)}, `{"a":[1]}||tool`},
		"no output":      {Item{Type: ActionResult, Content: raw(`{"callId":"c","output":null}`)}, "-||tool"},
	} {
		c.item.ID, c.item.CreatedAt = "itm_1", start.ISO()
		m := MessageOf(&c.item, nil, 0)
		content, list := "-", ""
		if m.Content != nil {
			content = *m.Content
		}
		if m.ToolCalls != nil {
			list = *m.ToolCalls
		}
		if got := content + "|" + list + "|" + string(m.Role); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if want := int64(start) / 1000 * 1000; m.CreatedAt != want { // a document of before has no microseconds
			t.Errorf("%s: created_at is %d, not %d", name, m.CreatedAt, want)
		}
	}
	for name, i := range map[string]Item{
		"a reference": {Type: ItemReference, Content: raw(`{"itemId":"x"}`)}, "part of a message": {Type: ActionExecute, CallOf: to(int64(3)), Content: call},
	} {
		if m := MessageOf(&i, nil, 0); m != nil {
			t.Errorf("%s shows as %+v", name, m)
		}
	}
}

// SA-88: names of live events, and their subjects.
func TestCheckLiveName_NamesAndSubjects(t *testing.T) {
	for name, want := range map[string]string{
		"progress": "progress", "a_1": "a_1", "Progress": "Progress", "a-b": "a-b", "a.b": "_", "*": "_", ">": "_", "ü": "_", "a b": "_", "_": "_",
	} {
		proper, err := CheckLiveName(name)
		if err != nil || proper != (name == "progress" || name == "a_1") {
			t.Errorf("%s: %v, %v", name, proper, err)
		}
		if got := DefaultNames().Live(tenant, thread, name); got != "skein.live.acme."+thread+"."+want {
			t.Errorf("%s is at %s", name, got)
		}
	}
	for _, bad := range []string{"", "\xff", strings.Repeat("ü", 129)} {
		if _, err := CheckLiveName(bad); !errors.Is(err, &Error{Code: InvalidRequest}) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
