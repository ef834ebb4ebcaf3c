package openaichat_test

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/openaichat"
	"github.com/skein-threads/skein/schema"
)

// What is wrong is told, each with its line, and the others are read.
func TestBadConversations(t *testing.T) {
	const good = `{"id":"good","messages":[{"role":"user","content":"hi"}]}`
	for bad, want := range map[string]string{
		`{"messages":[]}`:                                                                                    "no id",
		`{"id":"","messages":[]}`:                                                                            "no id",
		`{"id":{},"messages":[]}`:                                                                            "no id",
		`{"id":"a\u0007","messages":[]}`:                                                                     "control characters",
		`{"id":"` + strings.Repeat("x", 250) + `","messages":[]}`:                                            "at most 249 letters",
		`{"id":"a"}`:                                                                                         "no messages",
		`{"id":"a","messages":null}`:                                                                         "no messages",
		`{"id":"a","messages":{}}`:                                                                           "/messages is a JSON",
		`{"id":"a","messages":[null]}`:                                                                       "message 1 is null",
		`{"id":"a","messages":[{"content":"x"}]}`:                                                            "message 1: no role",
		`{"id":"a","messages":[{"role":"robot"}]}`:                                                           `message 1: the role "robot" is not known`,
		`{"id":"a","messages":[{"role":"user","content":7}]}`:                                                "a text, null, or a list",
		`{"id":"a","messages":[{"role":"user","content":["x"]}]}`:                                            "part 1: a part is an object",
		`{"id":"a","messages":[{"role":"user","content":[{"text":"x"}]}]}`:                                   "has a type",
		`{"id":"a","messages":[{"role":"user","content":[{"type":"text"}]}]}`:                                "has a text",
		`{"id":"a","messages":[{"role":"tool","tool_call_id":"c","content":"x"}]}`:                           "has no call before it",
		`{"id":"a","messages":[{"role":"user","tool_calls":[{"id":"c"}]}]}`:                                  "has tool_calls",
		`{"id":"a","messages":[{"role":"assistant","tool_calls":[{"id":"c"}]}]}`:                             "no function",
		`{"id":"a","messages":[{"role":"assistant","function_call":{}}]}`:                                    "old format",
		`{"id":"a","messages":[` + call("c", "f", "{}") + `,` + call("c", "f", "{}") + `]}`:                  "is used twice",
		`{"id":"a","messages":[` + call("c", "", "{}") + `]}`:                                                "its name",
		`{"id":"a","messages":[` + call("", "f", "{}") + `]}`:                                                "its id",
		`{"id":"a","messages":[`:                                                                             "not JSON",
		`{"id":"a","id":"b","messages":[]}`:                                                                  "duplicate",
		"{\"id\":\"\xff\",\"messages\":[]}":                                                                  "broken UTF-8",
		`{"id":"a","messages":[]} x`:                                                                         "not JSON",
		`{"id":"a","messages":[{"role":"user","parts":[{"type":"text","text":"hi"}]}]}`:                      `message 1: the field "parts" is not of this format; what was said is in content`,
		`{"id":"a","messages":[{"role":"user","text":"hi"}]}`:                                                `message 1: the field "text"`,
		`{"id":"a","messages":[{"role":"user","content":"hi","text":"hi"}]}`:                                 `message 1: the field "text"`,
		`{"id":"a","messages":[{"role":"user","content":"q","thinking":"t"}]}`:                               `message 1: the field "thinking" is not read; remove it, or leave it out with --ignore thinking`,
		`{"id":"a","messages":[],"model":"m"}`:                                                               `the field "model" is not read`,
		`{"id":"a","messages":[{"role":"assistant"}]}`:                                                       "message 1: it has neither content nor calls",
		`{"id":"a","messages":[{"role":"user","content":null}]}`:                                             "neither content nor calls",
		`{"id":"a","messages":[{"role":"user","content":[]}]}`:                                               "neither content nor calls",
		`{"id":"a","messages":[{"role":"user","content":[{"type":"tool_result"}]}]}`:                         `part 1: the type "tool_result" is not known`,
		`{"id":"a","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`:                           "names no file",
		`{"id":"a","messages":[{"role":"user","content":"q","created_at":"yesterday"}]}`:                     "not of ISO 8601",
		`{"id":"a","messages":[{"role":"user","content":"q","created_at":-5}]}`:                              "out of range",
		`{"id":"a","messages":[{"role":"user","content":"q","timestamp":true}]}`:                             "a time is a text",
		`{"id":"a","messages":[` + strings.Replace(call("c", "f", "{}"), `"type"`, `"x":1,"type"`, 1) + `]}`: `call 1: the field "x"`,
		`nonsense`: "not JSON",
	} {
		file := good + "\n\n" + bad + "\n" + strings.Replace(good, "good", "other", 1)
		var lines []int
		var errs []error
		for rec := range openaichat.Read(strings.NewReader(file)) {
			if rec.Err != nil {
				lines, errs = append(lines, rec.Line), append(errs, rec.Err)
			}
		}
		if len(errs) != 1 || lines[0] != 3 || !strings.Contains(errs[0].Error(), want) || strings.Contains(errs[0].Error(), "\n") {
			t.Errorf("%.80s: lines %v, errors %v; want %q", bad, lines, errs, want)
		}
	}
}

func call(id, name, arguments string) string {
	return `{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":` +
		string(quoted(arguments)) + `}}]}`
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

func TestFileForms(t *testing.T) {
	one := `{"id":"1","messages":[]}`
	two := "{\n\"id\": \"2\",\n\"messages\": []\n}"
	for name, f := range map[string]struct{ text, want string }{
		"nothing":            {"", ""},
		"blank":              {" \n\n", ""},
		"lines":              {one + "\r\n" + strings.Replace(one, "1", "2", 1), "1@1 2@2"},
		"a byte order mark":  {"\ufeff" + one, "1@1"},
		"an array":           {"\n[" + one + ",\n" + two + "]\n", "1@2 2@3"},
		"an empty array":     {"[]", ""},
		"a number for an id": {`{"id":17,"messages":[]}`, "17@1"},
		"half an array":      {"[" + one + ",\n" + `{"id":`, "1@1 !@2"},
		"more after it":      {"[]\n" + one, "!@2"},
		"one bad element":    {"[" + one + ",\n{\"id\":\"\xff\",\"messages\":[]},\n" + two + "]", "1@1 !@2 2@3"},
	} {
		var got []string
		for rec := range openaichat.Read(strings.NewReader(f.text)) {
			id := "!"
			if rec.Err == nil {
				id = rec.Conversation.ID
			}
			got = append(got, id+"@"+string(rune('0'+rec.Line)))
		}
		if s := strings.Join(got, " "); s != f.want {
			t.Errorf("%s: %q, not %q", name, s, f.want)
		}
	}
}

// A line that is too long is passed over and not kept in memory.
func TestAbsurdlyLongLine(t *testing.T) {
	long := &repeated{n: openaichat.MaxBytes + 10}
	var errs, good int
	for rec := range openaichat.Read(readers(long, strings.NewReader("\n"+`{"id":"1","messages":[]}`))) {
		if rec.Err != nil {
			errs++
		} else if rec.Line == 2 {
			good++
		}
	}
	if errs != 1 || good != 1 {
		t.Errorf("%d errors, %d good", errs, good)
	}
}

func TestContents(t *testing.T) {
	c, err := openaichat.Parse([]byte(`{"id":"1","messages":[
		{"role":"developer","content":"be brief"},
		{"role":"user","name":"eva","content":[{"type":"text","text":"look","x":1},{"type":"image_url","image_url":{"url":"u"}}]},
		{"role":"assistant","content":"","refusal":"no","tool_calls":[
			{"id":"1","type":"function","function":{"name":"f","arguments":"{\"n\": 1e400, \"a\":[1, 2]}"}},
			{"id":"2","type":"function","function":{"name":"f","arguments":"not json"}},
			{"id":"3","type":"custom","custom":{"name":"g","input":"x = 1"}},
			{"id":"4","type":"function","function":{"name":"f"}}]},
		{"role":"tool","tool_call_id":"2","content":"Error: no"},
		{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"ok"}]},
		{"role":"tool","tool_call_id":"3","content":null},
		{"role":"tool","tool_call_id":"4","content":"bad","is_error":true}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if m := c.Messages[0]; m.Role != events.Developer || string(m.Content[0]) != `{"type":"input_text","text":"be brief"}` {
		t.Errorf("%+v", m)
	}
	if m := c.Messages[1]; m.Name != "eva" || len(m.Content) != 2 ||
		string(m.Content[0]) != `{"text":"look","type":"input_text","x":1}` || string(m.Content[1]) != `{"image_url":"u","type":"input_image"}` {
		t.Errorf("%s", m.Content)
	}
	m := c.Messages[2]
	if len(m.Content) != 1 || string(m.Content[0]) != `{"type":"refusal","refusal":"no"}` {
		t.Errorf("%s", m.Content)
	}
	for i, want := range []string{`{"n":1e400,"a":[1,2]}`, `"not json"`, `"x = 1"`, `""`} {
		if got := string(m.Calls[i].Arguments); got != want {
			t.Errorf("arguments %d: %s, not %s", i, got, want)
		}
	}
	for i, want := range []struct {
		output string
		failed bool
	}{{`"Error: no"`, true}, {`[{"type":"text","text":"ok"}]`, false}, {`null`, false}, {`"bad"`, true}} {
		if m := c.Messages[3+i]; string(m.Output) != want.output || m.IsError != want.failed {
			t.Errorf("result %d: %s %v", i, m.Output, m.IsError)
		}
	}
}

// For any file, reading ends and yields conversations or errors.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"id":"1","messages":[{"role":"user","content":"x"}]}`))
	f.Add([]byte(`[{"id":"1","messages":[` + call("c", "f", "{}") + `,{"role":"tool","tool_call_id":"c","content":"r"}]},{}]`))
	f.Add([]byte("\ufeff[1,\n2"))
	f.Add([]byte(`{"id":1,"messages":[{"role":"assistant","content":[{"type":"text","text":"x"}],"refusal":"r"}]}`))
	check, err := schema.New()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		line := 0
		for rec := range openaichat.Read(strings.NewReader(string(raw))) {
			if (rec.Err == nil) == (rec.Conversation == nil) || rec.Line < line || rec.Line < 1 {
				t.Fatalf("line %d after %d: %v, %v", rec.Line, line, rec.Conversation, rec.Err)
			}
			line = rec.Line
			if rec.Err != nil {
				continue
			}
			for _, m := range rec.Conversation.Messages {
				item := events.NewItem{Type: events.Message, Role: m.Role, Content: contentOf(m)}
				if !m.Result && item.Check() != nil {
					t.Fatalf("a message that no item may hold: %v", item.Check())
				}
			}
			if err := cli.CheckConversation(check, "acme", rec.Conversation); err != nil && len(raw) < 1000 {
				t.Fatalf("a small conversation cannot be planned: %v", err)
			}
		}
	})
}
