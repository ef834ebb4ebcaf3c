package remote

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// streamOf limits the total size of one answer, in messages of the largest size: 64 MiB
// by default.
const streamOf = 16

// callee is the other side of calls: the processes on a subject, or those behind a URL.
type callee struct {
	address string // the subject or the URL, for errors
	settings
}

// written returns a request as JSON.
func (c *callee) written(request any) ([]byte, error) {
	body, err := json.Marshal(request, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode the request on %s: %w", c.address, err)
	}
	return body, nil
}

// fitted returns a request whose items are reduced to fit into most bytes.
func (c *callee) fitted(in *runtime.StepInput, p protocol, most int64) ([]byte, []events.Item, error) {
	less := *in
	less.Items, less.Omitted = nil, &events.Omitted{Outputs: math.MaxInt32, Items: math.MaxInt32, Bytes: math.MaxInt64}
	around, err := c.written(&reactorRequest{less, p})
	if err != nil {
		return nil, nil, err
	}
	less.Items, less.Omitted = events.FitItems(in.Items, int(most)-len(around))
	less.Omitted = less.Omitted.And(in.Omitted)
	body, err := c.written(&reactorRequest{less, p})
	return body, less.Items, err
}

// shownIn describes what the model was shown if the reactor received only these items.
func shownIn(items []events.Item) *runtime.Shown {
	shown := &runtime.Shown{Items: make([]string, len(items))}
	for i := range items {
		shown.Items[i] = items[i].ID
	}
	return shown
}

// reportedError is a final error that a process reported.
type reportedError struct{ text string }

func (e *reportedError) Error() string { return e.text }

// streamed passes chunks on, and notes whether there were any.
type streamed struct {
	out runtime.Stream
	any bool
}

func (s *streamed) chunk(c runtime.Chunk) {
	s.any = true
	if s.out != nil {
		s.out.Chunk(c)
	}
}

// brokeOff returns the error of an answer. One that ends after it has begun to stream, without a
// final error of the process, broke off: what was streamed of it is kept.
func (s *streamed) brokeOff(err error) error {
	var reported *reportedError
	if err == nil || !s.any || errors.As(err, &reported) {
		return err
	}
	return &runtime.BrokenOffError{Err: err}
}

// told returns the error that a process reported.
func (c *callee) told(m message) error {
	text := clip(m.Message)
	if text == "" {
		text = c.address + " returned an error without a message"
	}
	if !m.Retry {
		return &reportedError{text}
	}
	after := min(max(m.AfterMs, 0), math.MaxInt64/int64(time.Millisecond))
	return &runtime.RetryError{After: time.Duration(after) * time.Millisecond, Err: errors.New(text)}
}

func (c *callee) retry(format string, args ...any) error {
	return &runtime.RetryError{Err: fmt.Errorf("%s: "+format, append([]any{c.address}, args...)...)}
}

// notMade returns the error of a request that no process received.
func (c *callee) notMade(format string, args ...any) error {
	return &runtime.RetryError{NotMade: true, Err: fmt.Errorf("%s: "+format, append([]any{c.address}, args...)...)}
}

// wrong returns the error of an invalid answer.
func (c *callee) wrong(format string, args ...any) error {
	return fmt.Errorf("the answer of %s "+format, append([]any{c.address}, args...)...)
}

// answer is one answer as it arrives, message by message.
type answer struct {
	from  *callee
	most  int64               // bytes of one message
	chunk func(runtime.Chunk) // nil: chunks are dropped
	piece func(n int) error   // nil: the request has no pieces

	total int64
	over  bool // the process sent its last message
}

// take reads the next message. It returns the body of the result, if it is the result.
// The error ends the answer.
func (a *answer) take(data []byte) (result []byte, err error) {
	if a.total += int64(len(data)); int64(len(data)) > a.most || a.total > streamOf*a.most {
		return nil, a.tooLarge()
	}
	var m message
	if err := json.Unmarshal(data, &m, lenient()); err != nil {
		return nil, a.from.wrong("%w", shape(err))
	}
	switch m.Kind {
	case kindHeartbeat:
		return nil, nil
	case kindPiece:
		if err := a.sendPiece(m.Piece); err != nil {
			return nil, a.from.wrong("%w", err)
		}
		return nil, nil
	case kindChunk:
		if m.Type == "" || len(m.Type) > 128 {
			return nil, a.from.wrong("has a chunk without a type of 1 to 128 letters")
		}
		if a.chunk != nil {
			a.chunk(runtime.Chunk{Type: m.Type, Data: m.Data})
		}
		return nil, nil
	case kindResult:
		a.over = true
		return data, nil
	case kindError:
		a.over = true
		return nil, a.from.told(m)
	default:
		return nil, a.from.wrong("has a message of kind %q, not heartbeat, chunk, result or error", clip(m.Kind))
	}
}

func (a *answer) sendPiece(n int) error {
	if a.piece == nil {
		return errors.New("asks for a piece of a request that has none")
	}
	return a.piece(n)
}

func (a *answer) tooLarge() error {
	return a.from.wrong("is too large: the limit is %d bytes a message and %d together", a.most, streamOf*a.most)
}

// shape returns an error of the JSON library without the names of Go types.
func shape(err error) error {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return errors.New("is not JSON: " + clip(err.Error()))
	}
	where := string(semantic.JSONPointer)
	if where == "" {
		where = "it"
	}
	kind := "value"
	if semantic.JSONKind != jsontext.Kind(0) {
		kind = semantic.JSONKind.String()
	}
	return fmt.Errorf("has the wrong shape: %s is a JSON %s", clip(where), kind)
}
