package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// The page of a tool shows what it is called with, and who uses it.
func TestDefinition_ArgumentsOfTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	const schema = `{"type":"object","required":["to"],"properties":{
		"amount":{"type":["number","null"],"description":"How much, <b>in euros</b>"},
		"to":{"type":"object","properties":{"name":{"type":"string"},"tags":{"type":"array","items":{"type":"object","properties":{"key":{"enum":["a",1]}}}}}}}}`
	define := func(kind events.DefinitionKind, name, body string) events.NewDefinition {
		return events.NewDefinition{Kind: kind, Name: name, Definition: events.JSON(body)}
	}
	reply, err := w.client.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		define("tool", "pay", `{"name":"pay","type":"nats","description":"Pays & tells.","auto":false,"idempotent":true,"parameters":`+schema+`}`),
		define("tool", "odd", `{"name":"odd","type":"nats","description":"Odd.","parameters":{"type":"object","properties":{"x":true}}}`),
		define("tool", "plain", `{"name":"plain","type":"nats","description":"Plain."}`),
		define("agent", "till", `{"name":"till","type":"ai_human","reactor":"x","tools":["pay"]}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(t.Context(), w.client.WithMinSeq(reply.Seq), events.ListDefinitions{}); err != nil {
		t.Fatal(err)
	}
	v := w.visitor()
	get := func(path string) string {
		t.Helper()
		status, page, _ := v.get(path)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %.500s", path, status, page)
		}
		return page
	}
	page := get("/agents/tool/pay")
	has(t, page, "Pays &amp; tells.", "waits for an approval", "may be repeated", "number or null", "&lt;b&gt;in euros", `one of &#34;a&#34;, 1`, "list of object", "/console/agents/agent/till", "not", "<b>in euros", "changes nothing", "Its threads")
	var names []string
	for _, m := range regexp.MustCompile(`<th scope="row"><code>([^<]+)</code>(?:<span class="sub quiet">required)?`).FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	if want := "[to to.name to.tags to.tags[].key amount]"; fmt.Sprint(names) != want {
		t.Errorf("the arguments are %v, want %s", names, want)
	}
	has(t, get("/agents/tool/odd"), "Its schema is in the definition below", "not", "It takes no arguments")
	has(t, get("/agents/tool/plain"), "It takes no arguments")
	has(t, get("/agents/agent/till"), "/console/threads?agentId=till", "/console/runs?agentId=till", "Try it in a scratch thread", "not", "What it is called with")
}
