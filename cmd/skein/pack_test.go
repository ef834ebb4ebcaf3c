package main_test

import (
	"strings"
	"testing"
)

// SA-151: an agent is packed with everything that it names, so that another tenant can
// apply it; one with a tool that is not portable is refused.
func TestPack(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	more := agentsFile + `---
kind: tool
name: ask_support
description: Asks support.
type: agent
agent: support
---
kind: tool
name: query
description: Asks a database of this process.
type: go
portable: false
---
- {kind: agent, name: front, type: ai_human, model: gpt-4.1, tools: [ask_support]}
- {kind: agent, name: bound, type: ai_human, model: gpt-4.1, tools: [find_order, query]}
`
	s.ok("apply", "-f", write(t, "agents.yaml", more))
	packed := s.ok("definition", "pack", "front")
	type definition struct{ Kind, Name string }
	var names []string
	for _, d := range decodeLines[definition](t, s.ok("definition", "pack", "front", "--json")) {
		names = append(names, d.Kind+" "+d.Name)
	}
	if got, want := strings.Join(names, ", "), "model gpt-4.1, prompt support, tool find_order, agent support, tool ask_support, agent front"; got != want {
		t.Errorf("packed are %s", got)
	}
	other := append(append([]string{}, s.env...), "SKEIN_TENANT=other")
	if o := run(t, other, packed, "apply", "-f", "-"); o.code != 0 || !strings.Contains(o.out, "6 added") {
		t.Errorf("%+v", o)
	}
	if o := run(t, s.env, "", "definition", "pack", "front", "bound"); o.code != 1 || o.out != "" || !strings.HasPrefix(o.err, "skein: invalid_request: the tool query is not portable") {
		t.Errorf("%+v", o)
	}
	if o := run(t, s.env, "", "definition", "pack", "nobody"); o.code != 1 || !strings.HasPrefix(o.err, "skein: not_found: ") {
		t.Errorf("%+v", o)
	}
	s.stop()
}
