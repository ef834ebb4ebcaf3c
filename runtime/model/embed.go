package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runtime"
)

// EmbedRequest asks for the embeddings of texts. The fields are those of OpenAI's Embeddings.
type EmbedRequest struct {
	Inputs         []events.JSON // each a text or a list of tokens
	EncodingFormat string
	Dimensions     *int64
	User           string
}

// Embedded is the answer to an EmbedRequest.
type Embedded struct {
	Embeddings []events.JSON // of the inputs, in their order, each as the endpoint has sent it
	Tokens     int64         // that were used
}

// embedAttempts is how often an endpoint is asked, unless Config.Attempts says it.
const embedAttempts = 3

// Embed asks the endpoint of a model for embeddings. No other model is asked in its place: vectors of
// two models cannot be compared. The error is an *events.Error: an invalid_request if the endpoint
// refuses the request, a queue_full if it has no more to offer now, and otherwise unavailable.
func (e *Endpoints) Embed(ctx context.Context, tenant string, m runtime.Model, q EmbedRequest) (*Embedded, error) {
	r, err := e.find(tenant, m)
	if err != nil {
		return nil, events.Invalid("/model", "%w", err)
	}
	if r.protocol.EmbeddingsPath == "" {
		return nil, events.Invalid("/model", "the model %.64q is at the endpoint %.64q, whose protocol messages has no embeddings; define a model at an endpoint of the protocol responses or chat", m.Name, r.config.Provider)
	}
	request, err := json.Marshal(struct {
		Model          string `json:"model"`
		Input          any    `json:"input"`
		EncodingFormat string `json:"encoding_format,omitzero"`
		Dimensions     *int64 `json:"dimensions,omitzero"`
		User           string `json:"user,omitzero"`
	}{m.Model, inputOf(q.Inputs), q.EncodingFormat, q.Dimensions, q.User}, json.Deterministic(true))
	if err != nil {
		return nil, events.Invalid("/input", "the input cannot be encoded: %w", err)
	}
	most := r.config.Attempts
	if most == 0 {
		most = embedAttempts
	}
	pauses := retry.Policy{First: 500 * time.Millisecond, Max: 8 * time.Second, Jitter: true}
	for attempt := 1; ; attempt++ {
		out, err := r.embed(ctx, request, len(q.Inputs))
		if err == nil {
			return out, nil
		}
		var later *runtime.RetryError
		if !errors.As(err, &later) || attempt >= most {
			return nil, embedRefusal(err)
		}
		pause := max(later.After, pauses.Delay(attempt))
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= pause || !retry.Sleep(ctx, pause) {
			return nil, embedRefusal(err)
		}
	}
}

// inputOf returns inputs as the protocol has them: one alone is no list.
func inputOf(inputs []events.JSON) any {
	if len(inputs) == 1 {
		return inputs[0]
	}
	return inputs
}

// embed asks once.
func (r *Reactor) embed(ctx context.Context, request []byte, inputs int) (*Embedded, error) {
	c := r.call(ctx)
	defer c.end()
	body, _, err := c.send(c.protocol.EmbeddingsPath, "application/json", request)
	if err != nil {
		return nil, c.broken(err)
	}
	defer func() { _ = body.Close() }() // it was read whole, or is not needed
	raw, err := io.ReadAll(&boundedBody{ReadCloser: body, call: c, left: c.config.MaxBytes})
	if err != nil {
		return nil, c.broken(err)
	}
	out, err := readEmbedded(raw, inputs)
	if err != nil {
		return nil, c.told(Unreadable(err.Error()))
	}
	return out, nil
}

// readEmbedded decodes an answer with an embedding for each input.
func readEmbedded(raw []byte, inputs int) (*Embedded, error) {
	var answer struct {
		Data []struct {
			Index     int         `json:"index"`
			Embedding events.JSON `json:"embedding"`
		} `json:"data"`
		Usage struct {
			PromptTokens int64 `json:"prompt_tokens"`
			TotalTokens  int64 `json:"total_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(raw, &answer, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, errors.New("it is not the JSON of embeddings")
	}
	if len(answer.Data) != inputs {
		return nil, fmt.Errorf("it has %d embeddings for %d inputs", len(answer.Data), inputs)
	}
	out := &Embedded{Embeddings: make([]events.JSON, inputs), Tokens: max(0, answer.Usage.PromptTokens, answer.Usage.TotalTokens)}
	for _, d := range answer.Data {
		kind := jsontext.Value(d.Embedding).Kind()
		if d.Index < 0 || d.Index >= inputs || out.Embeddings[d.Index] != nil || kind != '[' && kind != '"' {
			return nil, errors.New("its embeddings are not one for each input")
		}
		out.Embeddings[d.Index] = d.Embedding
	}
	return out, nil
}

// embedRefusal returns why there are no embeddings, as callers are told it.
func embedRefusal(err error) error {
	var (
		coded *runtime.FailureError
		later *runtime.RetryError
		broke *runtime.BrokenOffError
	)
	switch {
	case errors.As(err, &coded) && slices.Contains([]events.FailureCode{events.FailedRateLimit, events.FailedQuota}, coded.Code):
		return events.Errorf(events.QueueFull, "%s", err.Error())
	case errors.As(err, &coded) && coded.Code == events.FailedPolicy:
		return events.Invalid("/input", "%s", err.Error())
	case errors.As(err, &coded), errors.As(err, &later), errors.As(err, &broke), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return events.Errorf(events.Unavailable, "%s", err.Error())
	}
	return events.Invalid("/input", "%s", err.Error())
}
