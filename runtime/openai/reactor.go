package openai

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// Reactor calls one endpoint. It is safe for concurrent use.
type Reactor struct {
	config  Config
	service responses.ResponseService
}

// New returns a reactor. The error names everything that is wrong with the
// configuration.
func New(c Config) (*Reactor, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	opts := []option.RequestOption{
		option.WithBaseURL(c.BaseURL),
		option.WithHTTPClient(c.HTTPClient),
		option.WithMaxRetries(0), // the worker retries, and records it
		option.WithHeader("Accept", "text/event-stream"),
	}
	if c.APIKey != "" {
		opts = append(opts, option.WithAPIKey(c.APIKey))
	}
	// A service that is created directly reads nothing from the environment.
	return &Reactor{config: c, service: responses.NewResponseService(opts...)}, nil
}

// shrinks is how often a conversation that is too long for its model is halved.
const shrinks = 5

// React calls the endpoint once, and again with half of the conversation while that is
// too long for the model: no thread is too long to be answered. The package comment
// describes the input, the reaction, and which errors are temporary.
func (r *Reactor) React(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
	for halved := 0; ; halved++ {
		reaction, err := r.ask(ctx, in, out)
		var long *tooLongError
		if !errors.As(err, &long) || halved == shrinks {
			return reaction, r.lastAttempt(in, err)
		}
		items, omitted := events.FitItems(in.Items, events.ItemsBytes(in.Items)/2)
		if omitted == nil || omitted.Bytes == 0 {
			return nil, err
		}
		less := *in
		less.Items, less.Omitted = items, omitted.And(in.Omitted)
		in = &less
	}
}

// lastAttempt returns the error of an attempt: one that asks for another only if the endpoint may
// be called again.
func (r *Reactor) lastAttempt(in *runtime.StepInput, err error) error {
	var later *runtime.RetryError
	if r.config.Attempts == 0 || in.Attempt < r.config.Attempts || !errors.As(err, &later) {
		return err
	}
	var broke *runtime.BrokenOffError
	if errors.As(err, &broke) {
		return &runtime.BrokenOffError{Err: later.Err}
	}
	return later.Err
}

// ask calls the endpoint once.
func (r *Reactor) ask(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
	req, err := r.request(ctx, in)
	if err != nil {
		return nil, err
	}
	c := r.call(ctx)
	defer c.end()
	start := time.Now()
	params := param.Override[responses.ResponseNewParams](json.RawMessage(req.body))
	stream := r.service.NewStreaming(c.ctx, params, option.WithMiddleware(c.guard))
	a := newAnswer(in, out, r.config.endpoint())
	for !a.ended && a.err == nil && stream.Next() {
		a.take(stream.Current())
	}
	err = stream.Err()
	_ = stream.Close() // the rest of the stream is not needed
	switch {
	case a.err != nil:
		err := c.told(a.err)
		var later *runtime.RetryError
		var broke *runtime.BrokenOffError
		if errors.As(err, &later) && !errors.As(err, &broke) {
			err = &runtime.BrokenOffError{Err: err}
		}
		return nil, err
	case !a.ended:
		return nil, c.broken(err)
	}
	reaction, err := a.reaction()
	if err != nil {
		return nil, c.told(err)
	}
	reaction.MessagesForModel = &req.shown
	reaction.Usage = usage(a.response, r.config.Provider, in.Model.Model)
	reaction.Usage.LatencyMs = time.Since(start).Milliseconds()
	return reaction, nil
}

// usage returns the usage of a call.
func usage(resp *responses.Response, provider, model string) *runtime.Usage {
	if resp.Model != "" {
		model = resp.Model
	}
	u := resp.Usage
	return &runtime.Usage{
		Provider:        provider,
		Model:           model,
		InputTokens:     u.InputTokens,
		CachedTokens:    u.InputTokensDetails.CachedTokens,
		OutputTokens:    u.OutputTokens,
		ReasoningTokens: u.OutputTokensDetails.ReasoningTokens,
		TotalTokens:     u.TotalTokens,
	}
}
