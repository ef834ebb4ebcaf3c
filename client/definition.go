package client

import (
	"context"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Definition returns the current version of a definition. The error is not_found if
// there is none with that name. To see an apply, use a client from [Client.WithMinSeq]
// with the Seq of its reply.
func (c *Client) Definition(ctx context.Context, kind events.DefinitionKind, name string) (*events.Definition, error) {
	if !events.Pattern(events.PatternName).MatchString(name) { // no definition can have that name
		return nil, events.Missing(string(kind), name)
	}
	return Read(ctx, c, events.GetDefinition{Kind: kind, Name: name})
}

// DefinitionNames returns the names of the definitions of a kind, in order.
func (c *Client) DefinitionNames(ctx context.Context, kind events.DefinitionKind) ([]string, error) {
	names := []string{}
	most := int64(1000)
	for q := (events.ListDefinitions{Kind: kind, Bare: true, Limit: &most}); ; {
		page, err := Read(ctx, c, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Definitions {
			names = append(names, page.Definitions[i].Name)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return names, nil
		}
	}
}

// GetModelNames returns the names of the models, in order. In Standard Agents it is
// synchronous; here it queries the server, and so takes a context.
func (c *Client) GetModelNames(ctx context.Context) ([]string, error) {
	return c.DefinitionNames(ctx, events.ModelKind)
}

// GetPromptNames returns the names of the prompts, in order.
func (c *Client) GetPromptNames(ctx context.Context) ([]string, error) {
	return c.DefinitionNames(ctx, events.PromptKind)
}

// GetAgentNames returns the names of the agents, in order.
func (c *Client) GetAgentNames(ctx context.Context) ([]string, error) {
	return c.DefinitionNames(ctx, events.AgentKind)
}

// Apply adds and changes definitions of the tenant, in one commit: values such as an
// [events.AgentDefinition] and an [events.ModelDefinition], which may refer to each other in any
// order. Definitions that are there already as they are stay as they are, so that a program may
// apply its definitions whenever it starts; if that is all of them, nothing is written. Others of
// the tenant stay: to remove some, send an [events.ApplyDefinitions].
//
// The events of the reply tell what was changed. The error is an invalid_request, of which Details.Path begins
// with the place of the definition at fault, such as /data/definitions/0/definition/model.
func (c *Client) Apply(ctx context.Context, definitions ...any) (*events.Reply, error) {
	var apply events.ApplyDefinitions
	for i, d := range definitions {
		one, err := events.DefinitionOf(d)
		if err != nil {
			return nil, events.Invalid("/data/definitions/"+strconv.Itoa(i), "%w", err)
		}
		apply.Definitions = append(apply.Definitions, one)
	}
	return c.Send(ctx, "", apply)
}

// Definer returns definitions of a tenant. *Client and *ThreadState implement it, and
// so does the thread state that tools, hooks and effects receive.
type Definer interface {
	Definition(ctx context.Context, kind events.DefinitionKind, name string) (*events.Definition, error)
}

// LoadModel returns a model's definition as a T: events.ModelDefinition, or any type
// that its JSON decodes into. The error is not_found if there is no model with that
// name, and an invalid_request if the definition does not decode into a T, or a struct T has
// none of its fields.
func LoadModel[T any](ctx context.Context, c Definer, name string) (T, error) {
	return load[T](ctx, c, events.ModelKind, name)
}

// LoadPrompt returns a prompt's definition as a T, like LoadModel.
func LoadPrompt[T any](ctx context.Context, c Definer, name string) (T, error) {
	return load[T](ctx, c, events.PromptKind, name)
}

// LoadAgent returns an agent's definition as a T, like LoadModel.
func LoadAgent[T any](ctx context.Context, c Definer, name string) (T, error) {
	return load[T](ctx, c, events.AgentKind, name)
}

func load[T any](ctx context.Context, c Definer, kind events.DefinitionKind, name string) (T, error) {
	var v T
	d, err := c.Definition(ctx, kind, name)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(d.Definition, &v); err != nil {
		return v, events.Invalid("", "decode the definition of the %s %s as a %T: %w", kind, name, v, err)
	}
	if !takesAny(v, d.Definition) {
		return v, events.Invalid("", "decode the definition of the %s %s as a %T: the type has none of its fields; name them as the JSON does, such as `json:\"name\"`", kind, name, v)
	}
	return v, nil
}

// takesAny reports whether a value takes at least one field of an object. A value that is no plain
// struct decides by itself what it takes.
func takesAny(v any, object events.JSON) bool {
	if t := reflect.TypeOf(v); t == nil || t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.UnmarshalerFrom]()) {
		return true
	}
	var fields map[string]jsontext.Value
	if json.Unmarshal(object, &fields) != nil {
		return true
	}
	for name := range fields {
		one, err := json.Marshal(map[string]any{name: nil})
		if err != nil || json.Unmarshal(one, reflect.New(reflect.TypeOf(v)).Interface(), json.RejectUnknownMembers(true)) == nil {
			return true
		}
	}
	return false
}
