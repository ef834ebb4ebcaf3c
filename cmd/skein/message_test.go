package main_test

import (
	"strings"
	"testing"
)

type shownMessage struct {
	ID, Role   string
	Content    *string
	ToolCalls  *string `json:"tool_calls"`
	ToolCallID *string `json:"tool_call_id"`
	CreatedAt  int64   `json:"created_at"`
	Depth      int
	Silent     bool
	Metadata   map[string]any
	Status     *string
	ToolStatus *string `json:"tool_status"`
}

// Messages on the command line: add, list, edit, rm (SA-38, SA-46, SA-49, SA-51).
func TestMessages(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	var made, first, call reply
	decode(t, s.ok("thread", "create", "--key", "talk", "--json"), &made)
	decode(t, s.ok("message", "add", "key:talk", "where is it?", "--metadata", `{"a":1}`, "--json"), &first)
	decode(t, s.ok("message", "add", "key:talk", "--role", "assistant", "--status", "pending", "--json",
		"--tool-calls", `[{"id":"c1","function":{"name":"find","arguments":"{\"n\":7}"}}]`), &call)
	s.ok("message", "add", "key:talk", "here", "--role", "tool", "--tool-call-id", "c1", "--name", "find")
	if o := run(t, s.env, "psst\n", "message", "add", "key:talk", "-", "--silent", "--depth", "1"); o.code != 0 {
		t.Errorf("%+v", o)
	}
	if first.Result.ItemID == "" || call.Version != first.Version+2 {
		t.Errorf("%+v %+v", first, call)
	}
	list := decodeLines[shownMessage](t, s.ok("message", "list", "key:talk", "--json"))
	if len(list) != 3 || list[0].Role != "tool" || *list[0].ToolStatus != "success" || *list[0].ToolCallID != "c1" || list[1].Content != nil ||
		!strings.Contains(*list[1].ToolCalls, `"arguments":"{\"n\":7}"`) || *list[1].Status != "pending" || list[2].ID != first.Result.ItemID || list[2].CreatedAt < 1e15 {
		t.Errorf("%+v", list)
	}
	all := decodeLines[shownMessage](t, s.ok("message", "list", made.ThreadID, "--order", "asc", "--silent", "--json"))
	if len(all) != 4 || *all[3].Content != "psst" || !all[3].Silent || all[3].Depth != 1 {
		t.Errorf("%+v", all)
	}
	if flat := decodeLines[shownMessage](t, s.ok("message", "list", made.ThreadID, "--silent", "--max-depth", "0", "--offset", "1", "--limit", "1", "--json")); len(flat) != 1 || flat[0].ID != call.Result.ItemID {
		t.Errorf("%+v", flat)
	}
	if text := s.ok("message", "list", "key:talk"); !strings.Contains(text, `find({"n":7})`) || !strings.Contains(text, "where is it?") || strings.Contains(text, "psst") {
		t.Error(text)
	}
	s.ok("message", "edit", "key:talk", first.Result.ItemID, "where is order 7?", "--metadata", `{"b":2}`, "--status", "completed")
	s.ok("message", "edit", "key:talk", all[3].ID, "--silent=false")
	s.ok("message", "rm", "key:talk", call.Result.ItemID)
	list = decodeLines[shownMessage](t, s.ok("message", "list", "key:talk", "--json"))
	if len(list) != 3 || *list[0].Content != "psst" || *list[2].Content != "where is order 7?" || len(list[2].Metadata) != 2 || *list[2].Status != "completed" {
		t.Errorf("%+v", list)
	}
	if was := decodeLines[shownMessage](t, s.ok("message", "list", "key:talk", "--at", "3", "--json")); len(was) != 0 {
		t.Errorf("%+v", was)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"message rm key:talk " + call.Result.ItemID, 1, "skein: not_found: "},
		{"message edit key:talk itm_nobody x", 1, "skein: not_found: "},
		{"message list key:unknown", 1, "skein: not_found: "},
		{"message add key:talk x --role tool", 1, "skein: invalid_request: "},
		{"message add key:talk x --role developer", 2, "skein: usage: "},
		{"message add key:talk x --status asleep", 2, "skein: usage: "},
		{"message edit key:talk itm_nobody", 2, "skein: usage: "},
		{"message edit key:talk itm_nobody --silent=perhaps", 2, "skein: usage: "},
		{"message list key:talk --order sideways", 2, "skein: usage: "},
		{"message list key:talk --offset -1", 2, "skein: usage: "},
		{"message list", 2, "skein: usage: "},
		{"message", 2, "skein: usage: "},
	} {
		if o := run(t, s.env, "", strings.Fields(c.args)...); o.code != c.code || !strings.HasPrefix(o.err, c.want) || strings.Count(o.err, "\n") != 1 {
			t.Errorf("skein %s: exit %d, not %d: %q", c.args, o.code, c.code, o.err)
		}
	}
	s.ok("replay", "--verify")
	s.ok("audit", "verify")
	s.stop()
}
