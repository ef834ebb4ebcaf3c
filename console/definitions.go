package console

import (
	"cmp"
	"html/template"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// definitions is the page with the agents, tools, models, prompts and so on of the tenant.
func definitions() page.Page {
	return page.Page{
		Path: "/agents", Name: "Agents", In: page.Navigation, Template: "definitions", JSON: "/api/definitions{query}", CLI: "skein definition list",
		Query:  []string{"kind", "cursor"},
		Load:   func(a *page.Ask) (any, error) { return choices{a.Query("kind"), events.DefinitionKind("").Enum()}, nil },
		Panels: []page.Panel{{ID: "definition-list", On: []string{"definition.changed"}, Load: listDefinitions}},
	}
}

// definitionPage is a page of definitions.
type definitionPage struct {
	Definitions []described
	Undefined   []undefined // agents that threads name without a definition
	More        bool        // there are more undefined agents
	Workers     bool        // the workers are known
	Next        string
	MayWrite    bool
}

// described is a definition with its description.
type described struct {
	events.Definition
	Description string
	Address     string
	Served      []served
}

func listDefinitions(a *page.Ask) (any, error) {
	list, err := client.Read(a.Context(), a.Client, events.ListDefinitions{Kind: events.DefinitionKind(a.Query("kind")), Cursor: a.Query("cursor")})
	if err != nil {
		return nil, err
	}
	by, err := serving(a, list.Definitions)
	if err != nil {
		return nil, err
	}
	p := &definitionPage{MayWrite: a.May(edge.Write), Workers: by != nil}
	for _, d := range list.Definitions {
		p.Definitions = append(p.Definitions, described{d, stringField(d.Definition, "description"), definitionLink(d.Kind, d.Name), by[string(d.Kind)+"/"+d.Name]})
	}
	if kind := a.Query("kind"); a.Query("cursor") == "" && (kind == "" || kind == string(events.AgentKind)) {
		if p.Undefined, p.More, err = undefinedAgents(a); err != nil {
			return nil, err
		}
	}
	if list.NextCursor != "" {
		p.Next = a.With("cursor", list.NextCursor)
	}
	return p, nil
}

// definitionLink returns the address of a definition's page.
func definitionLink(kind events.DefinitionKind, name string) string {
	return page.Root + "/agents/" + string(kind) + "/" + name
}

// definition is the page of one definition: its versions, and the differences between them.
func definition() page.Page {
	return page.Page{
		Path: "/agents/{kind}/{name...}", Name: "Definition", Template: "definition",
		JSON: "/api/definitions/{kind}/{name}{query}", CLI: "skein definition get {kind} {name}", Query: []string{"version"},
		Load: loadDefinition,
	}
}

// oneDefinition is a version of a definition.
type oneDefinition struct {
	Now, Shown *events.Definition
	Before     int64 // the version that it is compared with; 0: none
	Versions   []int64
	Difference template.HTML
	Users      []described // the agents that use it
	Try        bool        // it is an agent, and the reader may try it
	Tool       *toolView   // it is a tool
	Served     []served
}

// toolView describes a tool.
type toolView struct {
	events.ToolDefinition
	Arguments []argument
}

// Marks returns the properties of the tool's calls, such as idempotent.
func (t *toolView) Marks() []string {
	var marks []string
	for _, m := range []struct {
		is   bool
		says string
	}{
		{t.Auto != nil && !*t.Auto, "waits for an approval"},
		{t.ReadOnly != nil && *t.ReadOnly, "changes nothing"},
		{t.Idempotent != nil && *t.Idempotent, "may be repeated"},
	} {
		if m.is {
			marks = append(marks, m.says)
		}
	}
	return marks
}

// IsAgent reports whether it is an agent.
func (d *oneDefinition) IsAgent() bool { return d.Now.Kind == events.AgentKind }

func loadDefinition(a *page.Ask) (any, error) {
	kind, name := events.DefinitionKind(a.Path("kind")), a.Path("name")
	get := func(version int64) (*events.Definition, error) {
		q := events.GetDefinition{Kind: kind, Name: name}
		if version > 0 {
			q.Version = &version
		}
		return client.Read(a.Context(), a.Client, q)
	}
	now, err := get(0)
	if err != nil {
		return nil, err
	}
	p := &oneDefinition{Now: now, Shown: now, Try: kind == events.AgentKind && a.May(edge.Write)}
	for v := now.Version; v > max(0, now.Version-50); v-- {
		p.Versions = append(p.Versions, v)
	}
	if asked, err := strconv.ParseInt(a.Query("version"), 10, 64); err == nil && asked > 0 && asked != now.Version {
		if p.Shown, err = get(asked); err != nil {
			return nil, err
		}
	}
	against, _ := strconv.ParseInt(a.Query("against"), 10, 64) // 0 if invalid: compare with the version before
	if p.Before = cmp.Or(against, p.Shown.Version-1); p.Before > 0 && p.Before != p.Shown.Version {
		before, err := get(p.Before)
		switch {
		case err == nil:
			p.Difference = page.JSONDiff(before.Definition, p.Shown.Definition)
		case !events.IsNotFound(err): // the definition was removed at that version
			return nil, err
		}
	}
	if kind == events.ToolKind {
		var d events.ToolDefinition
		if err := json.Unmarshal(p.Shown.Definition, &d); err == nil {
			p.Tool = &toolView{d, argumentsOf(d.Parameters)}
		}
	}
	by, err := serving(a, []events.Definition{*now})
	if err != nil {
		return nil, err
	}
	p.Served = by[string(kind)+"/"+name]
	p.Users, err = usersOf(a, name)
	return p, err
}

// usersOf returns the definitions that refer to a definition.
func usersOf(a *page.Ask, name string) ([]described, error) {
	limit := int64(1000)
	list, err := client.Read(a.Context(), a.Client, events.ListDefinitions{Kind: events.AgentKind, Limit: &limit})
	if err != nil {
		return nil, err
	}
	var users []described
	for _, d := range list.Definitions {
		if d.Name != name && strings.Contains(string(d.Definition), `"`+name+`"`) {
			users = append(users, described{Definition: d, Address: definitionLink(d.Kind, d.Name)})
		}
	}
	return users, nil
}

func definitionActions() []page.Action {
	return []page.Action{{Path: "/agents/try", Do: func(a *page.Ask) (string, error) {
		reply, err := a.Client.Send(a.Context(), "", events.CreateThread{
			AgentID: a.Form("agentId"), Title: "Trying " + a.Form("agentId"), Metadata: events.JSON(`{"scratch":true}`),
		})
		if err != nil {
			return "", err
		}
		return page.LinkThread(reply.ThreadID, ""), nil
	}}}
}

// stringField returns a text of a JSON object.
func stringField(raw events.JSON, name string) string {
	var object map[string]any
	_ = json.Unmarshal(raw, &object) // no fields if invalid
	text, _ := object[name].(string)
	return text
}
