package client

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// ApplyDefinitions makes the tenant's definitions what they are to be, all in one
// commit or none. What already is so is left alone; the reply's result lists the
// rest. With DryRun nothing is written, and the result lists what would be.
func (c *Client) ApplyDefinitions(ctx context.Context, d events.ApplyDefinitions, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "definition.apply", "", d, opts)
}

// Definition gives a definition as it is now. The error is not_found if there is
// none of that name. A client made by [Client.WithMinSeq] with the Seq of
// an apply shows what it did.
func (c *Client) Definition(ctx context.Context, kind events.DefinitionKind, name string) (*events.Definition, error) {
	if !events.Pattern(events.PatternName).MatchString(name) { // nothing can be called so
		return nil, events.Missing(string(kind), name)
	}
	return c.GetDefinition(ctx, events.GetDefinition{Kind: kind, Name: name})
}

// DefinitionNames gives the names of the definitions of a kind, in order.
func (c *Client) DefinitionNames(ctx context.Context, kind events.DefinitionKind) ([]string, error) {
	names := []string{}
	most := int64(1000)
	for q := (events.ListDefinitions{Kind: kind, Bare: true, Limit: &most}); ; {
		page, err := c.ListDefinitions(ctx, q)
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

// GetModelNames gives the names of the models. The source has it
// synchronous; here it asks the server, and so takes a context.
func (c *Client) GetModelNames(ctx context.Context) ([]string, error) {
	return c.DefinitionNames(ctx, events.ModelKind)
}

// GetPromptNames gives the names of the prompts.
func (c *Client) GetPromptNames(ctx context.Context) ([]string, error) {
	return c.DefinitionNames(ctx, events.PromptKind)
}

// GetAgentNames gives the names of the agents.
func (c *Client) GetAgentNames(ctx context.Context) ([]string, error) {
	return c.DefinitionNames(ctx, events.AgentKind)
}

// Definer gives definitions of a tenant: a *Client, a *ThreadState, and the state
// of a thread that a tool, a hook or an effect is given.
type Definer interface {
	Definition(ctx context.Context, kind events.DefinitionKind, name string) (*events.Definition, error)
}

// LoadModel gives a model's definition as a T: events.ModelDefinition, or any type
// that its JSON can be read into. The error is not_found if there is no
// model of that name.
func LoadModel[T any](ctx context.Context, c Definer, name string) (T, error) {
	return load[T](ctx, c, events.ModelKind, name)
}

// LoadPrompt gives a prompt's definition as a T, as LoadModel does.
func LoadPrompt[T any](ctx context.Context, c Definer, name string) (T, error) {
	return load[T](ctx, c, events.PromptKind, name)
}

// LoadAgent gives an agent's definition as a T, as LoadModel does.
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
		return v, events.Invalid("", "the definition of the %s %s is no %T: %w", kind, name, v, err)
	}
	return v, nil
}
