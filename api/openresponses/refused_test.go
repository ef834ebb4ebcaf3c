package openresponses_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A change of a conversation that does not say its metadata is refused, and erases none.
func TestConversation_UpdateNeedsMetadata(t *testing.T) {
	t.Parallel()
	w := start(t)
	path := "/v1/conversations/" + w.must("POST", "/v1/conversations", `{"metadata":{"a":"1"}}`)["id"].(string)
	for _, body := range []string{``, `{}`, `{"foo":1}`, `{"items":[]}`} {
		if status, got := w.do("POST", path, body); status != http.StatusBadRequest || got["error"].(object)["param"] != "metadata" {
			t.Errorf("%s: %d %v", body, status, got)
		}
	}
	for _, body := range []string{`{"metadata":7}`, `{"metadata":{"a":7}}`, `{"metadata":{"` + strings.Repeat("k", 65) + `":"v"}}`} {
		if status, got := w.do("POST", path, body); status != http.StatusBadRequest || !strings.HasPrefix(got["error"].(object)["param"].(string), "metadata") {
			t.Errorf("%s: %d %v", body, status, got)
		}
	}
	if got := w.must("GET", path, ""); fmt.Sprint(got["metadata"]) != "map[a:1]" {
		t.Errorf("%v", got)
	}
	for _, none := range []string{`{"metadata":null}`, `{"metadata":{}}`} {
		w.must("POST", path, `{"metadata":{"b":"2"}}`)
		if got := w.must("POST", path, none); fmt.Sprint(got["metadata"]) != "map[]" {
			t.Errorf("%s: %v", none, got)
		}
	}
}

// Functions that a run cannot have are refused before it, with the field of the request.
func TestCreate_RefusedFunctions(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.define("tool", `{"name":"find","description":"Finds.","type":"nats"}`, "tool", `{"name":"docs","description":"Docs.","type":"mcp","server":{"url":"https://example.com/mcp","include":["*"]}}`,
		"skill", `{"name":"deploy","description":"Deploys.","text":"Deploy."}`, "agent", `{"name":"own","type":"ai_human","model":"m","tools":["find"]}`,
		"agent", `{"name":"skilled","type":"ai_human","model":"m","skills":["deploy"]}`, "agent", `{"name":"custom","type":"ai_human","reactor":"test","model":"m"}`,
		"agent", `{"name":"far","type":"ai_human","model":"m","tools":["docs"]}`,
		"agent", `{"name":"two","type":"dual_ai","sideA":{"model":"m"},"sideB":{"model":"m"},"limits":{"iterations":2}}`)
	functions := func(names ...string) string {
		var list []string
		for _, name := range names {
			list = append(list, fmt.Sprintf(`{"type":"function","name":%q}`, name))
		}
		return strings.Join(list, ",")
	}
	many := []string{}
	for i := range 129 {
		many = append(many, fmt.Sprint("f", i))
	}
	for _, c := range []struct{ model, tools, param string }{
		{"own", functions("other", "find"), "tools/1/name"}, {"skilled", functions("skill"), "tools/0/name"}, {"two", functions("a"), "tools"},
		{"triage", functions(many...), "tools"},
		{"triage", `{"type":"function","name":"a","description":"` + strings.Repeat("d", 16385) + `"}`, "tools/0/description"},
		{"triage", `{"type":"function","name":"b"},{"type":"function","name":"a","parameters":[]}`, "tools/1/parameters"},
	} {
		status, got := w.do("POST", "/v1/responses", fmt.Sprintf(`{"model":%q,"input":"x","tools":[%s]}`, c.model, c.tools))
		if e, _ := got["error"].(object); status != http.StatusBadRequest || e["code"] != "invalid_request" || e["param"] != c.param || strings.Contains(fmt.Sprint(e["message"]), "/data/") {
			t.Errorf("%s with %.80s: %d %v", c.model, c.tools, status, got)
		}
	}
	status, got := w.do("POST", "/v1/responses", `{"model":"triage","input":"x","instructions":"`+strings.Repeat("i", 262145)+`"}`)
	if e, _ := got["error"].(object); status != http.StatusBadRequest || e["param"] != "instructions" {
		t.Errorf("long instructions: %d %v", status, got)
	}
	if n := w.threads(); n != 0 {
		t.Errorf("refused requests wrote %d threads", n)
	}
	w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":"x","tools":[%s]}`, functions(many[:128]...)))
	for _, c := range []struct{ model, name string }{{"own", "skill"}, {"far", "docs"}, {"custom", "find"}, {"m", "find"}} {
		w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":%q,"input":"x","background":true,"tools":[%s]}`, c.model, functions(c.name)))
	}
}
