package schema

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Definition decodes a tenant's definition, and returns it with its name and in canonical form. It
// also checks what the JSON Schemas in files/definitions cannot express: that a tool's parameters
// are a JSON Schema themselves, a server's address is valid, no name is repeated, and nothing
// looks like a secret. The name may be in the definition, next to it, or both. Paths in the error
// are relative to d.
func (v *Validator) Definition(d events.NewDefinition) (events.NewDefinition, error) {
	f, ok := v.definitions[d.Kind]
	if !ok {
		return d, withPath(in("kind", refuse("there is no kind of definition %.80q", string(d.Kind))))
	}
	if err := checkSyntax(d.Definition); err != nil {
		return d, withPath(in("definition", err))
	}
	if d.Name != "" && jsontext.Value(d.Definition).Kind() == '{' {
		if name := member(d.Definition, "name"); name == nil {
			d.Definition = withName(d.Definition, d.Name)
		} else if plainText(name) != d.Name {
			return d, withPath(in("name", refuse("the definition has another name in itself; give one of them")))
		}
	}
	value, err := f.read(d.Definition)
	if err != nil {
		return d, Under("/definition", err)
	}
	if err := checkBeyondSchema(value); err != nil {
		return d, withPath(in("definition", err))
	}
	d.Name = events.DefinitionName(value)
	if d.Definition, err = events.EncodeDefinition(value); err != nil { // a decoded value can be encoded
		return d, err
	}
	if n := len(d.Definition); n > events.MaxDefinitionBytes {
		return d, events.TooLarge(d.Ref().String(), int64(n), events.MaxDefinitionBytes)
	}
	return d, nil
}

// Definitions decodes every definition of an apply. Paths in the error are relative to the
// apply.
func (v *Validator) Definitions(apply events.ApplyDefinitions) (events.ApplyDefinitions, error) {
	list := make([]events.NewDefinition, len(apply.Definitions))
	for i, d := range apply.Definitions {
		var err error
		if list[i], err = v.Definition(d); err != nil {
			return apply, Under("/definitions/"+strconv.Itoa(i), err)
		}
	}
	apply.Definitions = list
	return apply, nil
}

// withName returns a JSON object with the member name added unless it has one.
func withName(object events.JSON, name string) events.JSON {
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(string(object)), "{"))
	if rest != "}" {
		rest = "," + rest
	}
	return events.JSON(`{"name":` + strconv.Quote(name) + rest) // a name needs no escapes
}

// checkBeyondSchema checks what the JSON Schemas of the definitions cannot express.
func checkBeyondSchema(value any) *events.Error {
	switch d := value.(type) {
	case events.ModelDefinition:
		return in("params", checkNoSecret(d.Params))
	case events.PromptDefinition:
		return checkPrompt(d)
	case events.ToolDefinition:
		return checkTool(d)
	case events.ContextDefinition:
		return in("schema", checkParameters(d.Schema))
	case events.SkillDefinition:
		return in("tools", checkUnique(d.Tools))
	case events.ReactorDefinition:
		return in("http", checkEndpoint(d.HTTP))
	case events.WebhookDefinition:
		return checkWebhook(d)
	case events.PolicyDefinition:
		if err := d.CheckFields(); err != nil {
			e := events.AsError(err)
			return in(strings.TrimPrefix(e.Details.Path, "/"), refuse("%s", e.Message))
		}
	case events.AgentDefinition:
		err := checkLists(d.Tools, d.Hooks, d.Skills)
		if err == nil && len(d.Skills) > 0 {
			err = checkSkills(d)
		}
		if err == nil && d.Loop != nil {
			if d.Type == events.DualAI {
				return in("loop", refuse("is only of an agent of type ai_human; the sides of one of type dual_ai end it with stopOnResponse and maxSteps"))
			}
			err = in("loop", in("stopAfter", checkStops(d)))
		}
		for _, side := range []struct {
			name string
			*events.AgentSide
		}{{"sideA", d.SideA}, {"sideB", d.SideB}} {
			if err == nil && side.AgentSide != nil {
				err = in(side.name, in("tools", checkUnique(side.Tools)))
			}
		}
		return err
	}
	return nil
}

// checkSkills checks what an agent with skills needs.
func checkSkills(d events.AgentDefinition) *events.Error {
	if d.Type == events.DualAI {
		return in("skills", refuse("are only of an agent of type ai_human"))
	}
	if i := slices.Index(d.Tools, events.SkillTool); i >= 0 {
		return in("tools", in(strconv.Itoa(i), refuse("%s is the tool by which the model loads skills; give this one another name", events.SkillTool)))
	}
	return nil
}

func checkLists(tools, hooks, skills []string) *events.Error {
	for _, list := range []struct {
		name  string
		names []string
	}{{"tools", tools}, {"hooks", hooks}, {"skills", skills}} {
		if err := in(list.name, checkUnique(list.names)); err != nil {
			return err
		}
	}
	return nil
}

// checkStops checks that the tools that end an agent's loop are among its tools.
func checkStops(d events.AgentDefinition) *events.Error {
	for i, name := range d.Loop.StopAfter {
		if !slices.Contains(d.Tools, name) {
			return in(strconv.Itoa(i), refuse("%s is no tool of the agent; name one of tools", name))
		}
	}
	return checkUnique(d.Loop.StopAfter)
}

// checkPrompt checks that every variable occurs in the text, and that every placeholder in the
// text is a variable.
func checkPrompt(d events.PromptDefinition) *events.Error {
	if err := in("variables", checkUnique(d.Variables)); err != nil {
		return err
	}
	placeholders := events.Placeholders(d.Text)
	for i, name := range d.Variables {
		if !slices.Contains(placeholders, name) {
			return in("variables", in(strconv.Itoa(i), refuse("%s does not stand in the text; write {{%s}} there, or leave it out", name, name)))
		}
	}
	for _, name := range placeholders {
		if len(d.Variables) > 0 && !slices.Contains(d.Variables, name) {
			return in("text", refuse("has {{%s}}, which is none of its variables; add it to them", clip(name)))
		}
	}
	if d.Defaults == nil {
		return nil
	}
	s := scanner{raw: d.Defaults}
	for s.begin(); s.next('}'); {
		name := string(s.readString(nil))
		if !slices.Contains(d.Variables, name) {
			return in("defaults", in(clip(name), refuse("is none of the variables")))
		}
		if s.kind() != '"' {
			return in("defaults", in(name, refuse("must be a text")))
		}
		s.value()
	}
	return nil
}

func checkTool(d events.ToolDefinition) *events.Error {
	if d.Parameters != nil {
		if err := checkParameters(d.Parameters); err != nil {
			return in("parameters", err)
		}
	}
	if err := d.CheckPerson(); err != nil {
		return events.AsError(err)
	}
	if err := d.CheckAgent(); err != nil {
		return events.AsError(err)
	}
	if d.Answer != nil {
		whole, err := events.AnswerSchema(d.Answer)
		if err != nil {
			return in("answer", events.AsError(err))
		}
		if err := checkParameters(whole); err != nil {
			err.Details.Path = events.AnswerPath(strings.TrimPrefix(err.Details.Path, "/properties"))
			return in("answer", err)
		}
	}
	if err := d.CheckHTTP(); err != nil {
		return events.AsError(err)
	}
	if err := in("http", checkEndpoint(d.HTTP)); err != nil {
		return err
	}
	if d.OwnThread != nil && d.Type != events.AgentTool {
		return in("ownThread", refuse("only a tool of type agent has ownThread"))
	}
	if d.Server == nil {
		return nil
	}
	if err := checkWholeServer(d); err != nil {
		return err
	}
	if err := in("server", in("env", checkUnique(d.Server.Env))); err != nil {
		return err
	}
	if d.Server.URL == "" {
		return nil
	}
	return in("server", in("url", checkAddress(d.Server.URL, "tokenEnv")))
}

// checkAddress checks the address of a server in a definition. variable is the field to use for a
// secret, named in the error.
func checkAddress(address, variable string) *events.Error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return refuse("must be an http or https address")
	}
	if u.User != nil {
		return refuse("holds a user or a password; a definition holds no secret: name the variable with it in %s", variable)
	}
	return nil
}

// checkEndpoint checks the address of an endpoint, and its secrets.
func checkEndpoint(e *events.HTTPEndpoint) *events.Error {
	if e == nil {
		return nil
	}
	if err := in("url", checkAddress(e.URL, "secretEnv")); err != nil {
		return err
	}
	return in("secretEnv", checkUnique(e.SecretEnv))
}

// checkWebhook checks the filters of a webhook. It refuses a filter that no event can pass.
func checkWebhook(d events.WebhookDefinition) *events.Error {
	for i, one := range d.Types {
		if len(one) > 128 || !slices.ContainsFunc(events.Catalog(), func(r events.Row) bool {
			return !r.Transient && events.WebhookDefinition{Types: []string{one}}.Takes(r.Type)
		}) {
			return in("types", at(i, refuse("%q is no type of an event in the log; give item.created, or item.* for all of an entity", clip(one))))
		}
	}
	if err := in("types", checkUnique(d.Types)); err != nil {
		return err
	}
	if err := in("agents", checkUnique(d.Agents)); err != nil {
		return err
	}
	if err := checkThreadWebhook(d); err != nil {
		return err
	}
	return in("http", checkEndpoint(d.HTTP))
}

// checkThreadWebhook refuses event types that a webhook with a thread filter never receives:
// events without a thread, and events that end a thread, because its agent and key are no longer
// known then.
func checkThreadWebhook(d events.WebhookDefinition) *events.Error {
	if len(d.Agents) == 0 && d.KeyPrefix == "" {
		return nil
	}
	unseen := []events.Type{events.DefinitionChangedType, events.KeyReleasedType, events.LifecycleDeletedType}
	for i, one := range d.Types {
		only := events.WebhookDefinition{Types: []string{one}}
		if !slices.ContainsFunc(events.Catalog(), func(r events.Row) bool {
			return !r.Transient && only.Takes(r.Type) && !slices.Contains(unseen, r.Type)
		}) {
			return in("types", at(i, refuse("%q is never sent to a webhook with agents or keyPrefix: no thread is known for such events when they are sent; leave it out, or both filters", clip(one))))
		}
	}
	return nil
}

// checkWholeServer checks a definition of all tools of a server.
func checkWholeServer(d events.ToolDefinition) *events.Error {
	s := d.Server
	if !s.Whole() {
		if len(s.Exclude) > 0 {
			return in("server", in("exclude", refuse("excludes tools of a whole server, which has include; [\"*\"] is all of them")))
		}
		return nil
	}
	if s.Tool != "" {
		return in("server", in("tool", refuse("names one tool, and include is of a whole server; give one of them")))
	}
	if d.Parameters != nil {
		return in("parameters", refuse("a whole server's tools have their own"))
	}
	if len(d.Name) > events.MaxToolPrefix || strings.Contains(d.Name, "__") || strings.HasSuffix(d.Name, "_") {
		return in("name", refuse("begins the names of a whole server's tools: at most %d letters, digits, - and single _, the last not a _", events.MaxToolPrefix))
	}
	for _, list := range []struct {
		name     string
		patterns []string
	}{{"include", s.Include}, {"exclude", s.Exclude}} {
		if err := in("server", in(list.name, checkUnique(list.patterns))); err != nil {
			return err
		}
	}
	return nil
}

func checkUnique(names []string) *events.Error {
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		if seen[name] {
			return in(strconv.Itoa(i), refuse("%s stands twice", name))
		}
		seen[name] = true
	}
	return nil
}

// checkNoSecret refuses parameters with names that are typical of secrets.
func checkNoSecret(params events.JSON) *events.Error {
	if params == nil {
		return nil
	}
	s := scanner{raw: params}
	for s.begin(); s.next('}'); s.value() {
		name := string(s.readString(nil))
		switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name)) {
		case "apikey", "authorization", "password", "secret", "clientsecret", "accesstoken", "bearertoken", "privatekey":
			return in(clip(name), refuse("looks like a secret, and a definition holds none; give it to the process that runs the reactor, in its environment"))
		}
	}
	return nil
}
