package server

import (
	"github.com/go-json-experiment/json/jsontext"

	"context"
	"errors"
	"strings"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/runtime/agents"
	"github.com/skein-threads/skein/schema/arguments"
)

// startDefinitions starts to follow the tenants' definitions.
func (s *Server) startDefinitions(background context.Context, progress *buckets.Progress) (*defined, error) {
	log, err := s.open("definitions")
	if err != nil {
		return nil, err
	}
	list := query.NewDefinitions(log, query.DefinitionsConfig{Defined: s.work.definedBy, Shown: progress.Seq}, s.logger)
	s.running.Go(func() {
		if err := list.Run(background); err != nil && background.Err() == nil {
			s.logger.Error().Err(err).Msg("cannot watch the changes of definitions any more; they are read again at intervals")
		}
	})
	return &defined{s, log, list}, nil
}

// defined returns the tenants' definitions to decisions, as they are at that moment.
type defined struct {
	s    *Server
	log  *eventlog.Log
	list *query.Definitions
}

// Policy implements commands.Definitions.
func (d *defined) Policy(ctx context.Context, tenant, agent string) (events.Policy, error) {
	if err := d.s.defined(ctx, d.log, tenant, false); err != nil {
		return "", err
	}
	if d.list.Absent(tenant, events.AgentKind, agent) {
		return "", nil
	}
	def, _, err := query.LoadDefinition[events.AgentDefinition](ctx, d.list, tenant, events.AgentKind, agent)
	if events.IsNotFound(err) {
		return "", nil
	}
	return def.Policy, err
}

// Modes implements commands.Definitions.
func (d *defined) Modes(ctx context.Context, tenant string) (map[string]string, error) {
	policy, err := d.policy(ctx, tenant, events.ModesPolicy, true)
	if policy == nil || err != nil {
		return nil, err
	}
	return policy.AgentModes()
}

// Titles implements commands.Definitions.
func (d *defined) Titles(ctx context.Context, tenant string) (*thread.Titles, error) {
	policy, err := d.policy(ctx, tenant, events.TitlesPolicy, false)
	switch {
	case err != nil:
		return nil, err
	case policy == nil:
		return &thread.Titles{}, nil
	case policy.Off:
		return nil, nil
	}
	return &thread.Titles{Agent: policy.Agent}, nil
}

// Summaries implements commands.Definitions.
func (d *defined) Summaries(ctx context.Context, tenant string) (string, error) {
	policy, err := d.policy(ctx, tenant, events.HandoffPolicy, true)
	if policy == nil || err != nil {
		return "", err
	}
	return policy.Agent, nil
}

// HasTool implements commands.Definitions.
func (d *defined) HasTool(name string) bool {
	roster := d.s.work.roster.Load()
	return roster != nil && roster.HasTool(name)
}

// HasEndpoint implements commands.Definitions. A process without workers asks no models, and does not
// know.
func (d *defined) HasEndpoint(tenant, name string) bool {
	return d.s.work.models == nil || d.s.work.models.Has(tenant, name)
}

// Skill implements commands.Definitions.
func (d *defined) Skill(ctx context.Context, tenant, name string) (bool, error) {
	if err := d.s.defined(ctx, d.log, tenant, true); err != nil {
		return false, err
	}
	_, err := d.list.Get(ctx, tenant, events.SkillKind, name)
	if events.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// policy returns a tenant's policy of a name, nil if it has none; with all, as any process has
// defined it.
func (d *defined) policy(ctx context.Context, tenant, name string, all bool) (*events.PolicyDefinition, error) {
	if err := d.s.defined(ctx, d.log, tenant, all); err != nil {
		return nil, err
	}
	if d.list.Absent(tenant, events.PolicyKind, name) {
		return nil, nil
	}
	def, _, err := query.LoadDefinition[events.PolicyDefinition](ctx, d.list, tenant, events.PolicyKind, name)
	switch {
	case events.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &def, nil
}

// ContextType implements commands.Definitions. What is written is validated against the
// current log, whichever process wrote the definition.
func (d *defined) ContextType(ctx context.Context, tenant, name string) (func(events.JSON) error, error) {
	if err := d.s.defined(ctx, d.log, tenant, true); err != nil {
		return nil, err
	}
	def, _, err := query.LoadDefinition[events.ContextDefinition](ctx, d.list, tenant, events.ContextKind, name)
	if err != nil {
		return nil, err
	}
	return func(content events.JSON) error {
		if jsontext.Value(content).Kind() != '{' {
			return errors.New("it is not an object")
		}
		return problems(d.s.work.schemas.Check(def.Schema, content), func(path string) string { return path })
	}, nil
}

// Lists implements commands.Definitions.
func (d *defined) Lists(ctx context.Context, tenant string, of thread.Called) (bool, error) {
	if err := d.s.defined(ctx, d.log, tenant, true); err != nil {
		return false, err
	}
	return agents.Lists(ctx, d.list, tenant, of.Agent, of.Tool)
}

// Arguments implements commands.Definitions. What a person enters is validated against the
// current log, as the run will do that makes the call.
func (d *defined) Arguments(ctx context.Context, tenant string, of thread.Called) (func(events.JSON) error, error) {
	roster := d.s.work.roster.Load()
	if roster == nil { // it is about to start
		return nil, nil
	}
	if err := d.s.defined(ctx, d.log, tenant, true); err != nil {
		return nil, err
	}
	parameters, known, err := roster.Parameters(ctx, tenant, of.Agent, of.Tool)
	if err != nil || !known {
		return nil, err
	}
	return func(arguments events.JSON) error {
		return problems(d.s.work.schemas.Check(parameters, arguments), func(path string) string { return path })
	}, nil
}

// problems returns what is invalid, and where, without the wording for calls.
func problems(err error, at func(path string) string) error {
	var wrong *arguments.Error
	if !errors.As(err, &wrong) {
		return err
	}
	list := make([]string, len(wrong.Problems))
	for i, p := range wrong.Problems {
		p.Path = at(p.Path)
		list[i] = p.String()
	}
	return errors.New(strings.Join(list, "; "))
}

// Fits implements commands.Answers: it validates a person's answer against the JSON Schema of the question.
func (r *running) Fits(schema, answer events.JSON) error {
	whole, err := events.AnswerSchema(schema)
	if err != nil {
		return err
	}
	return problems(r.schemas.Check(whole, events.AnswerArguments(answer)), events.AnswerPath)
}
