package client

import (
	"context"
	"errors"
	"time"

	"github.com/skein-threads/skein/events"
)

// EmbedRequest is the name of the request for embeddings, on skein.file.{tenant}.
const EmbedRequest = "model.embed"

// EmbedTime is how long a request for embeddings may take.
const EmbedTime = 50 * time.Second

// Embed asks for the embeddings of texts by a model of the tenant. What its endpoint makes of the
// fields is the endpoint's.
type Embed struct {
	Model          string        `json:"model"`  // the name of its definition
	Inputs         []events.JSON `json:"inputs"` // each a text or a list of tokens
	EncodingFormat string        `json:"encodingFormat,omitzero"`
	Dimensions     *int64        `json:"dimensions,omitzero"`
	User           string        `json:"user,omitzero"`
}

// Embeddings is the answer to an Embed.
type Embeddings struct {
	Embeddings []events.JSON `json:"embeddings"` // of the inputs, in their order: a list of numbers, or base64
	Tokens     int64         `json:"tokens"`     // that were used
}

// Embed returns the embeddings of texts, as the endpoint of the model makes them. It sends the request
// once: a repeat is paid again. An answer is at most as large as a message. The error is a not_found
// for a model that is not defined, a queue_full if the tenant has used its tokens or the endpoint asks
// for a pause, and an invalid_request if the endpoint refuses the texts.
func (c *Client) Embed(ctx context.Context, q Embed) (*Embeddings, error) {
	body, err := encode(q)
	if err != nil {
		return nil, err
	}
	r := c.serviceRequest(events.KindFile, EmbedRequest)
	answer, err := c.guarded(ctx, c.subject(r), body, func(body []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, EmbedTime)
		defer cancel()
		r.Body = body
		answer, err := natsService{c, false}.Request(ctx, r)
		var refusal *events.Error
		if err != nil && !errors.As(err, &refusal) {
			err = events.Errorf(events.Unavailable, "no answer on %s: %w", c.subject(r), err)
		}
		return answer.Body, err
	})
	if err != nil {
		return nil, events.AsError(err)
	}
	return decode[Embeddings](answer)
}
