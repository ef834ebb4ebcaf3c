package serve

import (
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/runtime/arguments"
)

// startDefinitions begins to follow what tenants define.
func (s *Server) startDefinitions(background context.Context, progress *projections.Progress) (*defined, error) {
	log, err := s.open("definitions")
	if err != nil {
		return nil, err
	}
	list := projections.NewDefinitions(log, projections.DefinitionsConfig{Defined: s.work.definedBy, Shown: progress.Seq}, s.logger)
	s.running.Go(func() {
		if err := list.Run(background); err != nil && background.Err() == nil {
			s.logger.Error().Err(err).Msg("changes of definitions are not told any more; they are read again every now and then")
		}
	})
	return &defined{s, log, list}, nil
}

// defined tells decisions what tenants define, as it is when they are made.
type defined struct {
	s    *Server
	log  *eventlog.Log
	list *projections.Definitions
}

// Policy implements commands.Definitions.
func (d *defined) Policy(ctx context.Context, tenant, agent string) (events.Policy, error) {
	if err := d.s.defined(ctx, d.log, tenant, false); err != nil {
		return "", err
	}
	if d.list.Absent(tenant, events.AgentKind, agent) {
		return "", nil
	}
	def, _, err := projections.Load[events.AgentDefinition](ctx, d.list, tenant, events.AgentKind, agent)
	if errors.Is(err, &events.Error{Code: events.NotFound}) {
		return "", nil
	}
	return def.Policy, err
}

// ContextType implements commands.Definitions. What is written is held to what
// the log says now, whoever has defined it.
func (d *defined) ContextType(ctx context.Context, tenant, name string) (func(jsontext.Value) error, error) {
	if err := d.s.defined(ctx, d.log, tenant, true); err != nil {
		return nil, err
	}
	def, _, err := projections.Load[events.ContextDefinition](ctx, d.list, tenant, events.ContextKind, name)
	if err != nil {
		return nil, err
	}
	return func(content jsontext.Value) error {
		if content.Kind() != '{' {
			return errors.New("it is no object")
		}
		err := d.s.work.schemas.Check(def.Schema, content)
		var wrong *arguments.Error
		if errors.As(err, &wrong) { // whose words are about calls
			problems := make([]string, len(wrong.Problems))
			for i, p := range wrong.Problems {
				problems[i] = p.String()
			}
			return errors.New(strings.Join(problems, "; "))
		}
		return err
	}, nil
}
