package client

import (
	"github.com/go-json-experiment/json/jsontext"

	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Definition gives a definition of the thread's tenant as it is now. The error is
// not_found if there is none of that name. LoadAgent, LoadModel and
// LoadPrompt of this package read it into a type of the caller's own.
func (t *ThreadState) Definition(ctx context.Context, kind events.DefinitionKind, name string) (*events.Definition, error) {
	return t.reader().Definition(ctx, kind, name)
}

// LoadModel gives a model's definition. The error is not_found if there is
// none of that name.
func (t *ThreadState) LoadModel(ctx context.Context, name string) (events.ModelDefinition, error) {
	return LoadModel[events.ModelDefinition](ctx, t, name)
}

// LoadPrompt gives a prompt's definition, as LoadModel does.
func (t *ThreadState) LoadPrompt(ctx context.Context, name string) (events.PromptDefinition, error) {
	return LoadPrompt[events.PromptDefinition](ctx, t, name)
}

// LoadAgent gives an agent's definition, as LoadModel does.
func (t *ThreadState) LoadAgent(ctx context.Context, name string) (events.AgentDefinition, error) {
	return LoadAgent[events.AgentDefinition](ctx, t, name)
}

// GetPromptNames gives the names of the prompts, in order. The source has
// it synchronous; here it asks the server, and so takes a context.
func (t *ThreadState) GetPromptNames(ctx context.Context) ([]string, error) {
	return t.reader().GetPromptNames(ctx)
}

// GetAgentNames gives the names of the agents, in order.
func (t *ThreadState) GetAgentNames(ctx context.Context) ([]string, error) {
	return t.reader().GetAgentNames(ctx)
}

// GetModelNames gives the names of the models, in order.
func (t *ThreadState) GetModelNames(ctx context.Context) ([]string, error) {
	return t.reader().GetModelNames(ctx)
}

// ScheduleEffect has an effect run after a delay, to the millisecond; 0 is at once.
// Args is an object: a map, a struct, or JSON; nil is an empty one. It gives
// the effect's id, a UUID.
func (t *ThreadState) ScheduleEffect(ctx context.Context, name string, args any, delay time.Duration) (string, error) {
	raw, err := object("args", args)
	if err != nil {
		return "", err
	}
	after := delay.Milliseconds()
	reply, err := t.client.ScheduleEffect(ctx, t.id, events.ScheduleEffect{Name: name, Args: raw, DelayMs: &after})
	if err != nil {
		return "", err
	}
	t.wrote(reply.Seq)
	return reply.Result.EffectID, nil
}

// GetScheduledEffects gives the pending effects, those that are due first in
// front, or only those of a name, if one is given.
func (t *ThreadState) GetScheduledEffects(ctx context.Context, name string) ([]events.ScheduledEffect, error) {
	return t.reader().ScheduledEffects(ctx, t.id, name)
}

// RemoveScheduledEffect cancels an effect, and reports whether it did:
// false, and no error, if it has run, runs now, was cancelled or never was.
func (t *ThreadState) RemoveScheduledEffect(ctx context.Context, id string) (bool, error) {
	switch {
	case id == "":
		return false, events.Invalid("/effectId", "an effect's id is needed")
	case !events.Pattern(events.PatternUUID).MatchString(id): // nothing can be called so
		return false, nil
	}
	reply, err := t.client.CancelEffect(ctx, t.id, events.CancelEffect{EffectID: id})
	if err != nil {
		return false, err
	}
	t.wrote(reply.Seq)
	return reply.Result != nil && reply.Result.Cancelled, nil
}

// Arguments writes the arguments of a tool as a JSON object: a map, a struct, or
// JSON; nil is none. The error is an invalid_request.
func Arguments(args any) (events.JSON, error) { return object("arguments", args) }

// object writes arguments as a JSON object.
func object(what string, args any) (events.JSON, error) {
	if args == nil {
		return nil, nil
	}
	raw, err := json.Marshal(args, json.Deterministic(true))
	if err != nil {
		return nil, events.Invalid("/"+what, "the %s cannot be written as JSON: %w", what, err)
	}
	switch v := events.JSON(raw); jsontext.Value(v).Kind() {
	case '{':
		return v, nil
	case 'n':
		return nil, nil
	}
	return nil, events.Invalid("/"+what, "the %s are an object, and %.40s is none", what, raw)
}
