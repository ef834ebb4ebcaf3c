package server

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/service"
)

// budget returns the token budgets of tenants, nil if there are none.
func (s *Server) budget(ctx context.Context, log *eventlog.Log) (runtime.Budget, error) {
	limits, err := parseTokenLimits(s.cfg.TokensPerDay)
	if err != nil || limits.None() {
		return nil, err
	}
	b, err := openBudget(ctx, log, limits, time.Now)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// askingModels reports whether a command leads to calls of models. The budget is
// checked again before each call of a model, however its run was started.
func askingModels(name string) bool { return name == "thread.react" || name == "run.retry" }

// affords refuses a command that leads to calls of models, or a commit of one, for a tenant that has
// used its tokens of the day.
func (s *Server) affords(ctx context.Context, tenant, name string, data func() events.JSON) error {
	if s.work.budget == nil {
		return nil
	}
	asks := askingModels(name)
	if name == "thread.commit" {
		var commit events.CommitThread
		_ = json.Unmarshal(data(), &commit) // what is no such data is refused
		asks = slices.ContainsFunc(commit.Commands, func(c events.SubCommand) bool { return askingModels(c.Command) })
	}
	if !asks {
		return nil
	}
	return s.work.budget.Check(ctx, tenant)
}

// command is a service.Handler for commands.
func (s *Server) command(ctx context.Context, tenant, name string, body []byte, meta service.Meta) (any, error) {
	data := func() events.JSON {
		var r events.Request
		_ = json.Unmarshal(body, &r) // what is no request is refused
		return r.Data
	}
	if err := s.affords(ctx, tenant, name, data); err != nil {
		return nil, err
	}
	return s.dispatcher.Handle(ctx, tenant, name, body, meta)
}
