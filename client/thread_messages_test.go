package client_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

const oneCall = `[{"id":"call_1","type":"function","function":{"name":"find","arguments":"{\"q\":\"a \\\"b\\\"\"}"}}]`

// fields returns a message as the wire has it.
func (s *suite) fields(m *events.ThreadMessage) map[string]any {
	s.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		s.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		s.Fatal(err)
	}
	return out
}

// field shows a field of an injected message, as returned by the command and by a
// query.
func field(m events.AddMessage, name string, want any) func(*suite) {
	return func(s *suite) {
		st := s.thread()
		made := s.inject(st, m)
		read, err := st.GetMessage(s.Context(), made.ID)
		if err != nil {
			s.Fatal(err)
		}
		for _, m := range []*events.ThreadMessage{made, read, &s.messages(st, events.GetMessagesOptions{IncludeSilent: true}).Messages[0]} {
			got, there := s.fields(m)[name]
			if !there {
				s.Fatalf("there is no %s", name)
			}
			s.same(name, got, want)
		}
	}
}

func messageRequirements() []requirement {
	user := events.AddMessage{Role: events.FromUser, Content: ptr("hi")}
	tool := events.AddMessage{Role: events.FromTool, Content: ptr("found"), ToolCallID: "call_1", Name: "find", ToolStatus: events.ToolError}
	return []requirement{
		{"SA-23", func(s *suite) { // C-29: the item's id
			st := s.thread()
			a, b := s.say(st, "a"), s.say(st, "b")
			item, err := client.Read(s.Context(), s.c, events.GetItem{ThreadID: st.ThreadID(), ItemID: a.ID})
			if err != nil || a.ID == b.ID || item.Index != 0 {
				s.Errorf("%s, %s, %+v, %v", a.ID, b.ID, item, err)
			}
		}},
		{"SA-24", func(s *suite) { // C-8
			st := s.thread()
			for _, role := range events.MessageRole("").Enum() {
				m := events.AddMessage{Role: events.MessageRole(role)}
				if role == "tool" {
					m.ToolCallID = "call_1"
				}
				s.same("the role", string(s.inject(st, m).Role), role)
			}
			_, err := st.InjectMessage(s.Context(), events.AddMessage{Role: "developer"})
			s.refused(err, events.InvalidRequest)
			for role, kind := range map[events.Role]string{events.Developer: "developer", events.System: "info"} {
				made := s.do(s.c.Send(s.Context(), st.ThreadID(), events.CreateItem{Item: events.NewItem{
					Type: events.Message, Role: role, Content: events.JSON(`[]`), Metadata: events.JSON(`{"skein.kind":"` + kind + `"}`),
				}}))
				got, err := client.Read(s.Context(), s.c.WithMinSeq(made.Seq), events.GetMessage{ThreadID: st.ThreadID(), MessageID: made.Result.ItemID})
				if err != nil || got.Role != events.FromSystem {
					s.Errorf("%s shows as %+v, %v", kind, got, err)
				}
			}
		}},
		{"SA-25", func(s *suite) {
			field(user, "content", "hi")(s)
			field(events.AddMessage{Role: events.FromAssistant, ToolCalls: oneCall}, "content", nil)(s)
			field(events.AddMessage{Role: events.FromAssistant, Content: ptr("")}, "content", "")(s)
			field(events.AddMessage{Role: events.FromUser, Content: ptr("a\n\"ü\"\u0000")}, "content", "a\n\"ü\"\u0000")(s)
		}},
		{"SA-26", func(s *suite) { field(tool, "name", "find")(s); field(user, "name", nil)(s) }},
		{"SA-27", func(s *suite) { // C-9: a JSON text, and each call shown once
			field(events.AddMessage{Role: events.FromAssistant, ToolCalls: oneCall}, "tool_calls", oneCall)(s)
			field(user, "tool_calls", nil)(s)
		}},
		{"SA-28", func(s *suite) { field(tool, "tool_call_id", "call_1")(s); field(user, "tool_call_id", nil)(s) }},
		{"SA-29", func(s *suite) {
			before := time.Now().UnixMicro()
			if at := s.say(s.thread(), "x").CreatedAt; at < before || at > time.Now().UnixMicro() {
				s.Errorf("%d is not in microseconds, or not now", at)
			}
		}},
		{"SA-30", func(s *suite) {
			st := s.thread()
			parent := s.say(st, "a")
			child := s.inject(st, events.AddMessage{Role: events.FromUser, ParentID: parent.ID, Depth: ptr(int64(1))})
			s.same("parent_id", s.fields(child)["parent_id"], parent.ID)
			s.same("parent_id", s.fields(parent)["parent_id"], nil)
			_, err := st.InjectMessage(s.Context(), events.AddMessage{Role: events.FromUser, ParentID: "itm_nobody"})
			s.refused(err, events.NotFound)
		}},
		{"SA-31", func(s *suite) {
			field(user, "depth", 0.0)(s)
			field(events.AddMessage{Role: events.FromUser, Depth: ptr(int64(3))}, "depth", 3.0)(s)
		}},
		{"SA-32", func(s *suite) {
			field(user, "silent", false)(s)
			field(events.AddMessage{Role: events.FromUser, Silent: true}, "silent", true)(s)
		}},
		{"SA-33", func(s *suite) {
			field(user, "metadata", map[string]any{})(s)
			field(events.AddMessage{Role: events.FromUser, Metadata: events.JSON(`{"a":{"b":[1]}}`)}, "metadata", map[string]any{"a": map[string]any{"b": []any{1.0}}})(s)
		}},
		{"SA-34", func(s *suite) { // C-10
			field(user, "status", nil)(s)
			for _, status := range events.MessageStatus("").Enum() {
				field(events.AddMessage{Role: events.FromAssistant, Status: events.MessageStatus(status)}, "status", status)(s)
			}
			st := s.thread()
			x := s.run(st, "one", events.ExecutionFailed)
			s.same("the status after a failure", *s.messages(st, events.GetMessagesOptions{}).Messages[0].Status, events.MessageFailed)
			if x == "" {
				s.Error("no execution")
			}
			s.run(st, "two", events.ExecutionCompleted)
			s.same("the status after a success", *s.messages(st, events.GetMessagesOptions{}).Messages[0].Status, events.MessageCompleted)
		}},
		{"SA-35", func(s *suite) { // C-10
			field(tool, "tool_status", "error")(s)
			field(events.AddMessage{Role: events.FromTool, ToolCallID: "c"}, "tool_status", "success")(s)
			field(user, "tool_status", nil)(s)
		}},
		{"SA-36", func(s *suite) { // C-37: every field is always there
			got := s.fields(s.say(s.thread(), "x"))
			names := []string{}
			for name := range got {
				names = append(names, name)
			}
			slices.Sort(names)
			s.same("the fields", strings.Join(names, " "), "content created_at depth id metadata name parent_id role silent status tool_call_id tool_calls tool_status")
		}},
		{"SA-37", func(s *suite) { // C-37: snake_case, in a list that is camelCase
			raw, err := s.c.Query(s.Context(), "message.list", events.ListMessages{ThreadID: s.thread().ThreadID()})
			if err != nil || string(raw) != `{"messages":[],"total":0,"hasMore":false}` {
				s.Errorf("%s, %v", raw, err)
			}
			for name := range s.fields(s.say(s.thread(), "x")) {
				if name != strings.ToLower(name) {
					s.Errorf("%s is no snake_case", name)
				}
			}
		}},
	}
}

// ten creates a thread with ten messages: m0 to m9; m3 is silent, m5 and m6 are nested,
// one and two levels deep.
func (s *suite) ten() *client.ThreadState {
	s.Helper()
	st := s.thread()
	for i := range 10 {
		m := events.AddMessage{Role: events.FromUser, Content: ptr(fmt.Sprintf("m%d", i)), Silent: i == 3}
		if i == 5 || i == 6 {
			m.Depth = ptr(int64(i - 4))
		}
		s.inject(st, m)
	}
	return st
}

// lists shows what options select of ten.
func lists(o events.GetMessagesOptions, want string, total int64, more bool) func(*suite) {
	return func(s *suite) {
		got := s.messages(s.ten(), o)
		s.same("the messages", texts(got), want)
		s.same("total", got.Total, total)
		s.same("hasMore", got.HasMore, more)
	}
}

func viewRequirements() []requirement {
	n := func(i int) *int64 { return ptr(int64(i)) }
	return []requirement{
		{"SA-38", lists(events.GetMessagesOptions{Limit: n(2)}, "m9 m8", 9, true)},
		{"SA-39", func(s *suite) {
			st := s.thread()
			m := s.say(st, "x")
			for id, want := range map[string]*events.ThreadMessage{m.ID: m, "itm_nobody": nil, "no id at all >*": nil} {
				got, err := st.GetMessage(s.Context(), id)
				if err != nil {
					s.Error(err)
				}
				s.same(id, got, want)
			}
			if other, err := s.thread().GetMessage(s.Context(), m.ID); other != nil || err != nil {
				s.Errorf("another thread has it: %v, %v", other, err)
			}
		}},
		{"SA-40", func(s *suite) {
			st := s.thread()
			for i := 0; i < 2300; i += 200 { // more than one answer holds
				var list []events.SubCommand
				for j := i; j < min(i+200, 2300); j++ {
					c, err := client.Sub("message.add", events.AddMessage{Role: events.FromUser, Content: ptr(fmt.Sprint(j))})
					if err != nil {
						s.Fatal(err)
					}
					list = append(list, c)
				}
				s.do(s.c.Commit(s.Context(), st.ThreadID(), list))
			}
			s.say(st, "last")
			for limit, want := range map[*int64]int{nil: 2301, n(0): 0, n(7): 7, n(1500): 1500, n(9999): 2301} {
				got := s.messages(st, events.GetMessagesOptions{Limit: limit})
				if len(got.Messages) != want || got.Total != 2301 || got.HasMore != (want < 2301) {
					s.Errorf("limit %v: %d of %d, more %v", limit, len(got.Messages), got.Total, got.HasMore)
				}
				for i, m := range got.Messages[min(1, want):] {
					if *m.Content != fmt.Sprint(2299-i) {
						s.Fatalf("place %d holds %s", i+1, *m.Content)
					}
				}
			}
		}},
		{"SA-41", func(s *suite) {
			lists(events.GetMessagesOptions{Offset: n(0), Limit: n(1)}, "m9", 9, true)(s)
			lists(events.GetMessagesOptions{Offset: n(7)}, "m1 m0", 9, false)(s)
			lists(events.GetMessagesOptions{Offset: n(9)}, "", 9, false)(s)
			lists(events.GetMessagesOptions{Offset: n(900)}, "", 9, false)(s)
		}},
		{"SA-42", func(s *suite) { // C-30
			lists(events.GetMessagesOptions{Order: "asc", Limit: n(3)}, "m0 m1 m2", 9, true)(s)
			lists(events.GetMessagesOptions{Order: "desc", Limit: n(1)}, "m9", 9, true)(s)
			lists(events.GetMessagesOptions{Limit: n(1)}, "m9", 9, true)(s)
		}},
		{"SA-43", func(s *suite) { // C-30
			lists(events.GetMessagesOptions{Order: "asc"}, "m0 m1 m2 m4 m5 m6 m7 m8 m9", 9, false)(s)
			lists(events.GetMessagesOptions{Order: "asc", IncludeSilent: true}, "m0 m1 m2 m3 m4 m5 m6 m7 m8 m9", 10, false)(s)
		}},
		{"SA-44", func(s *suite) { // C-12
			lists(events.GetMessagesOptions{Order: "asc", MaxDepth: n(0)}, "m0 m1 m2 m4 m7 m8 m9", 7, false)(s)
			lists(events.GetMessagesOptions{Order: "asc", MaxDepth: n(1)}, "m0 m1 m2 m4 m5 m7 m8 m9", 8, false)(s)
			lists(events.GetMessagesOptions{Order: "asc", MaxDepth: n(2), IncludeSilent: true}, "m0 m1 m2 m3 m4 m5 m6 m7 m8 m9", 10, false)(s)
		}},
		{"SA-45", func(s *suite) {
			lists(events.GetMessagesOptions{Limit: n(3), Offset: n(6)}, "m2 m1 m0", 9, false)(s)
			lists(events.GetMessagesOptions{Limit: n(3), Offset: n(5)}, "m4 m2 m1", 9, true)(s)
			st := s.ten()
			gone := s.messages(st, events.GetMessagesOptions{}).Messages[0].ID
			if ok, err := st.DeleteMessage(s.Context(), gone); !ok || err != nil {
				s.Fatalf("%v, %v", ok, err)
			}
			s.same("total without the deleted one", s.messages(st, events.GetMessagesOptions{Limit: n(1)}).Total, int64(8))
			s.inject(st, events.AddMessage{Role: events.FromAssistant, ToolCalls: oneCall})
			s.same("total with one that calls a tool", s.messages(st, events.GetMessagesOptions{Limit: n(1)}).Total, int64(9)) // C-9
		}},
		{"SA-46", func(s *suite) {
			st := s.thread()
			got := s.inject(st, events.AddMessage{Role: events.FromUser, Content: ptr("Additional context"), Silent: true, Metadata: events.JSON(`{"source":"tool"}`)})
			if got.ID == "" || got.Role != events.FromUser || *got.Content != "Additional context" || !got.Silent || string(got.Metadata) != `{"source":"tool"}` {
				s.Errorf("%+v", got)
			}
			for _, bad := range []events.AddMessage{ // what would be lost is refused
				{Role: events.FromUser, Name: "x"}, {Role: events.FromUser, ToolCalls: oneCall}, {Role: events.FromTool}, {Role: events.FromUser, ToolCallID: "c"},
				{Role: events.FromUser, ToolStatus: events.ToolError}, {Role: events.FromAssistant, ToolCalls: `{}`}, {Role: events.FromAssistant, ToolCalls: `[{"id":"a"}]`},
				{Role: events.FromAssistant, ToolCalls: `[{"id":"a","extra":1,"function":{"name":"n","arguments":""}}]`}, {Role: events.FromUser, Metadata: events.JSON(`[]`)},
			} {
				_, err := st.InjectMessage(s.Context(), bad)
				s.refused(err, events.InvalidRequest)
			}
			s.same("total", s.messages(st, events.GetMessagesOptions{IncludeSilent: true}).Total, int64(1))
		}},
		{"SA-47", func(s *suite) {
			st := s.thread()
			s.inject(st, events.AddMessage{Role: events.FromUser, Silent: true})
			s.same("by default", s.messages(st, events.GetMessagesOptions{}).Total, int64(0))
			s.same("if asked for", s.messages(st, events.GetMessagesOptions{IncludeSilent: true}).Total, int64(1))
		}},
		{"SA-48", func(s *suite) {
			st := s.thread()
			s.inject(st, events.AddMessage{Role: events.FromUser, Metadata: events.JSON(`{"n":12345678901234567890,"s":"ü"}`)})
			s.same("the metadata", string(s.messages(st, events.GetMessagesOptions{}).Messages[0].Metadata), `{"n":12345678901234567890,"s":"ü"}`)
		}},
		{"SA-49", func(s *suite) { updates(s) }},
		{"SA-50", func(s *suite) {
			st := s.thread()
			gone := s.say(st, "x")
			if ok, err := st.DeleteMessage(s.Context(), gone.ID); !ok || err != nil {
				s.Fatal(err)
			}
			for _, id := range []string{"itm_nobody", gone.ID, "no id >"} {
				_, err := st.UpdateMessage(s.Context(), id, events.MessageUpdates{Content: ptr("y")})
				s.refused(err, events.NotFound)
			}
		}},
		{"SA-51", func(s *suite) { // C-7, C-38
			st := s.thread()
			m := s.inject(st, events.AddMessage{Role: events.FromAssistant, ToolCalls: oneCall})
			for id, want := range map[string]bool{"itm_nobody": false, "no id >": false, m.ID: true} {
				if got, err := st.DeleteMessage(s.Context(), id); got != want || err != nil {
					s.Errorf("%s: %v, %v", id, got, err)
				}
			}
			if again, err := st.DeleteMessage(s.Context(), m.ID); again || err != nil {
				s.Errorf("twice: %v, %v", again, err)
			}
			items, err := s.c.UpToDate(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			list, err := client.Read(s.Context(), items, events.ListItems{ThreadID: st.ThreadID()})
			if err != nil || list.Total != 0 { // its call is deleted with it
				s.Errorf("%+v, %v", list, err)
			}
		}},
		{"SA-52", func(s *suite) {
			st := s.thread()
			m := s.say(st, "a")
			if got, err := st.UpdateMessage(s.Context(), m.ID, events.MessageUpdates{Content: ptr("b")}); err != nil || *got.Content != "b" {
				s.Errorf("%+v, %v", got, err)
			}
			s.same("read", texts(s.messages(st, events.GetMessagesOptions{})), "b")
			if ok, err := st.DeleteMessage(s.Context(), m.ID); !ok || err != nil {
				s.Errorf("%v, %v", ok, err)
			}
			s.same("after that", texts(s.messages(st, events.GetMessagesOptions{})), "")
		}},
	}
}

// updates shows which fields of a message can be changed, and which cannot.
func updates(s *suite) {
	st := s.thread()
	update := func(id string, u events.MessageUpdates) *events.ThreadMessage {
		s.Helper()
		m, err := st.UpdateMessage(s.Context(), id, u)
		if err != nil {
			s.Fatal(err)
		}
		return m
	}
	m := s.inject(st, events.AddMessage{Role: events.FromAssistant, Content: ptr("a"), ToolCalls: oneCall, Metadata: events.JSON(`{"a":1,"b":{"c":1}}`)})
	got := update(m.ID, events.MessageUpdates{Content: ptr("Updated content"), Metadata: events.JSON(`{"b":{"d":2},"edited":true}`)})
	s.same("content", *got.Content, "Updated content")
	s.same("metadata, merged at the top", string(got.Metadata), `{"a":1,"b":{"d":2},"edited":true}`)
	s.same("the calls", *got.ToolCalls, oneCall)
	s.same("created_at", got.CreatedAt, m.CreatedAt)
	s.same("status, which an edit leaves alone", got.Status, (*events.MessageStatus)(nil)) // C-7
	for _, status := range []events.MessageStatus{events.MessagePending, events.MessageFailed, events.MessageCompleted, events.MessageCompleted} {
		s.same("status", *update(m.ID, events.MessageUpdates{Status: status}).Status, status)
	}
	_, err := st.UpdateMessage(s.Context(), m.ID, events.MessageUpdates{Status: events.MessagePending})
	s.refused(err, events.IllegalTransition)
	s.same("silent", update(m.ID, events.MessageUpdates{Silent: ptr(true)}).Silent, true)
	s.same("total of what is shown", s.messages(st, events.GetMessagesOptions{}).Total, int64(0))
	update(m.ID, events.MessageUpdates{Silent: ptr(false)})
	s.same("total of what is shown again", s.messages(st, events.GetMessagesOptions{}).Total, int64(1))
	r := s.inject(st, events.AddMessage{Role: events.FromTool, Content: ptr("x"), ToolCallID: "call_1", Name: "find"})
	got = update(r.ID, events.MessageUpdates{Content: ptr("y"), ToolStatus: events.ToolError})
	if *got.Content != "y" || *got.ToolStatus != events.ToolError || *got.ToolCallID != "call_1" || *got.Name != "find" {
		s.Errorf("%+v", got)
	}
	s.same("tool_status", *update(r.ID, events.MessageUpdates{ToolStatus: events.ToolSuccess}).ToolStatus, events.ToolSuccess)
	for _, bad := range []events.MessageUpdates{{}, {ToolStatus: events.ToolError}, {Metadata: events.JSON(`1`)}} {
		_, err := st.UpdateMessage(s.Context(), m.ID, bad)
		s.refused(err, events.InvalidRequest)
	}
}

// A handle of one tenant cannot reach the threads of another.
func TestThreadState_RefusesOtherTenant(t *testing.T) {
	t.Parallel()
	url := start(t)
	s := &suite{T: t, url: url, c: connect(t, url)}
	st := s.thread()
	other, err := client.Connect(url, client.Options{Tenant: "other", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, err = other.Thread(t.Context(), st.ThreadID())
	s.refused(err, events.NotFound)
}
