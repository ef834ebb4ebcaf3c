package remote

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// effectRequest is a request on skein.effect.{name}.
type effectRequest struct {
	Tenant      string      `json:"tenant"`
	ThreadID    string      `json:"threadId"`
	EffectID    string      `json:"effectId"`
	FlowID      string      `json:"flowId"`
	Name        string      `json:"name"`
	Args        events.JSON `json:"args"`
	Key         string      `json:"key"`
	Firing      int64       `json:"firing"`
	Attempt     int64       `json:"attempt"`
	ScheduledAt string      `json:"scheduledAt"` // with microseconds, in UTC
	Protocol    protocol    `json:"protocol"`
}

// effectResult reports that an effect has run.
type effectResult struct {
	Kind string `json:"kind"`
}

// effect is an effect in another process.
type effect struct{ caller }

// Effect returns the effect that processes serve on skein.effect.{name}. If no process serves it, a
// firing fails with a *runtime.RetryError with NotMade, so the effect waits for a process. Effect
// itself returns an invalid_request if the name or an option is invalid.
func Effect(nc *nats.Conn, names events.Names, name string, opts ...Option) (runtime.Effect, error) {
	subject, err := names.Effect(name)
	if err != nil {
		return nil, err
	}
	s, err := with(opts)
	if err != nil {
		return nil, err
	}
	return &effect{caller{nc, names, callee{subject, s}}}, nil
}

func (e *effect) Run(ctx context.Context, in *runtime.EffectInput) error {
	p := e.protocol()
	request, err := e.written(&effectRequest{
		Tenant: in.Tenant, ThreadID: in.ThreadID, EffectID: in.EffectID, FlowID: in.FlowID, Name: in.Name, Args: in.Args,
		Key: in.Key, Firing: in.Firing, Attempt: in.Attempt, ScheduledAt: events.TimeOf(in.ScheduledAt).String(), Protocol: p,
	})
	if err != nil {
		return err
	}
	_, err = e.call(ctx, p, request, nil, nil)
	return err
}

// ServeEffect makes this process serve an effect: it answers on skein.effect.{name}. It
// is otherwise like ServeReactor.
func ServeEffect(nc *nats.Conn, names events.Names, name string, e runtime.Effect, opts ...Option) (*Service, error) {
	subject, err := names.Effect(name)
	if err != nil {
		return nil, err
	}
	return serve(nc, names, subject, opts, func(ctx context.Context, body []byte, _ func(any) error) (any, error) {
		var in effectRequest
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, fmt.Errorf("the request %w", shape(err))
		}
		at, err := events.ParseTime(in.ScheduledAt)
		if err != nil {
			return nil, fmt.Errorf("the request has no scheduledAt: %w", err)
		}
		if err := e.Run(ctx, &runtime.EffectInput{
			Tenant: in.Tenant, ThreadID: in.ThreadID, EffectID: in.EffectID, FlowID: in.FlowID, Name: in.Name, Args: in.Args,
			Key: in.Key, Firing: in.Firing, Attempt: in.Attempt, ScheduledAt: at.Go(),
		}); err != nil {
			return nil, err
		}
		return effectResult{kindResult}, nil
	})
}
