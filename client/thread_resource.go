package client

import (
	"github.com/go-json-experiment/json/jsontext"

	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Definition returns the current version of a definition of the thread's tenant. The
// error is not_found if there is none with that name. The functions LoadAgent,
// LoadModel and LoadPrompt decode it into a type of the caller's.
func (t *ThreadState) Definition(ctx context.Context, kind events.DefinitionKind, name string) (*events.Definition, error) {
	return t.reader().Definition(ctx, kind, name)
}

// LoadModel returns a model's definition. The error is not_found if there is none with
// that name.
func (t *ThreadState) LoadModel(ctx context.Context, name string) (events.ModelDefinition, error) {
	return LoadModel[events.ModelDefinition](ctx, t, name)
}

// LoadPrompt returns a prompt's definition, like LoadModel.
func (t *ThreadState) LoadPrompt(ctx context.Context, name string) (events.PromptDefinition, error) {
	return LoadPrompt[events.PromptDefinition](ctx, t, name)
}

// LoadAgent returns an agent's definition, like LoadModel.
func (t *ThreadState) LoadAgent(ctx context.Context, name string) (events.AgentDefinition, error) {
	return LoadAgent[events.AgentDefinition](ctx, t, name)
}

// GetPromptNames returns the names of the prompts, in order. In Standard Agents it is
// synchronous; here it queries the server, and so takes a context.
func (t *ThreadState) GetPromptNames(ctx context.Context) ([]string, error) {
	return t.reader().GetPromptNames(ctx)
}

// GetAgentNames returns the names of the agents, in order.
func (t *ThreadState) GetAgentNames(ctx context.Context) ([]string, error) {
	return t.reader().GetAgentNames(ctx)
}

// GetModelNames returns the names of the models, in order.
func (t *ThreadState) GetModelNames(ctx context.Context) ([]string, error) {
	return t.reader().GetModelNames(ctx)
}

// ScheduleEffect schedules an effect after a delay, in milliseconds precision; 0 is
// immediately. args is a map, a struct or JSON that encodes as an object; nil is an
// empty object. It returns the effect's id, a UUID. The option events.Attempts limits the attempts.
func (t *ThreadState) ScheduleEffect(ctx context.Context, name string, args any, delay time.Duration, options ...events.ScheduleOption) (string, error) {
	raw, err := object("args", args)
	if err != nil {
		return "", err
	}
	after := delay.Milliseconds()
	d := events.ScheduleEffect{Name: name, Args: raw, DelayMs: &after}
	for _, set := range options {
		set(&d)
	}
	reply, err := t.client.Send(ctx, t.id, d)
	if err != nil {
		return "", err
	}
	t.noteWrite(reply.Seq)
	return reply.Result.EffectID, nil
}

// GetScheduledEffects returns the pending effects, the earliest due first, all or only
// those with a name.
func (t *ThreadState) GetScheduledEffects(ctx context.Context, name string) ([]events.ThreadEffect, error) {
	pending, err := t.reader().ScheduledEffects(ctx, t.id, name)
	if err != nil {
		return nil, err
	}
	effects := make([]events.ThreadEffect, len(pending))
	for i := range pending {
		effects[i] = pending[i].Thread()
	}
	return effects, nil
}

// RemoveScheduledEffect cancels an effect, and reports whether it did: it returns false
// and no error if the effect has run, is running, was cancelled or never existed.
func (t *ThreadState) RemoveScheduledEffect(ctx context.Context, id string) (bool, error) {
	switch {
	case id == "":
		return false, events.Invalid("/effectId", "an effect's id is required")
	case !events.Pattern(events.PatternUUID).MatchString(id): // no effect can have that id
		return false, nil
	}
	reply, err := t.client.Send(ctx, t.id, events.CancelEffect{EffectID: id})
	if err != nil {
		return false, err
	}
	t.noteWrite(reply.Seq)
	return reply.Result != nil && reply.Result.Cancelled, nil
}

// Arguments encodes the arguments of a tool as a JSON object: a map, a struct or JSON;
// nil is none. The error is an invalid_request.
func Arguments(args any) (events.JSON, error) { return object("arguments", args) }

// object encodes arguments as a JSON object.
func object(what string, args any) (events.JSON, error) {
	if args == nil {
		return nil, nil
	}
	raw, err := json.Marshal(args, json.Deterministic(true))
	if err != nil {
		return nil, events.Invalid("/"+what, "encode the %s as JSON: %w", what, err)
	}
	switch v := events.JSON(raw); jsontext.Value(v).Kind() {
	case '{':
		return v, nil
	case 'n':
		return nil, nil
	}
	return nil, events.Invalid("/"+what, "the %s must be a JSON object; got %.40s", what, raw)
}
