package model

import (
	"net/http"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runtime"
)

// Codec translates between threads and one protocol of model endpoints. It does no I/O, reads no
// clock, and is safe for concurrent use.
type Codec interface {
	// Protocol describes the protocol.
	Protocol() Protocol
	// Encode returns the request of a turn. The same turn returns the same bytes. An error is final.
	Encode(t *Turn) (*Request, error)
	// Decode returns what reads the events of one answer into out.
	Decode(out *Output) Decoder
}

// Decoder reads an event of an answer, in order, and reports whether the answer has no further
// ones. What the endpoint reports as its failure is returned as a *[Failure]. It belongs to one
// goroutine. An answer is whole if [Output.End] was called, even if its stream broke off then.
type Decoder func(e Event) (last bool, err error)

// Protocol is what an endpoint has to know of its protocol.
type Protocol struct {
	Name           string // for errors: "is it a Responses endpoint?"
	Path           string // of requests, after the base URL
	EmbeddingsPath string // of requests for embeddings; empty: it has none
	LastName       string // the name of the event that ends an answer, for errors
	TooLong        string // what the error of a conversation that is too long for its model contains
	Steps          bool   // the calls of a step are one message of it
	Stops          bool   // the endpoint takes a param stop, or what the codec makes of it
	Params         Rules  // which params of a model's definition may be sent

	BaseURL  string // the default of Config.BaseURL
	Provider string // the default of Config.Provider
	Setting  string // the prefix of the environment variables that set an endpoint, for errors

	// Authorize sets the headers of a request, besides those of its content. key may be empty.
	Authorize func(h http.Header, key string)
	// Returns reports whether an item that an endpoint has made itself is shown to it again.
	Returns func(o openresponses.Item) bool
}

// Request is the request of a turn.
type Request struct {
	Body  []byte
	Shown []byte // what of the body shows the thread, exactly as in it; its digest is recorded
}

// Turn is what a model is asked.
type Turn struct {
	Model           string // the provider's name of it
	Instructions    string
	Items           []Item             // oldest first; never empty
	Tools           []runtime.ToolSpec // each with its parameters
	MaxOutputTokens int64              // 0: the endpoint's default
	Temperature     *float64
	Params          map[string]events.JSON // of the model's definition, all permitted
	Store           bool                   // the endpoint may store the answer
	RawReasoning    bool                   // the endpoint takes the text of reasoning

	definition string // the model's name in its tenant, for errors
}

// Item is one thing that a model is shown: a [Message], [Reasoning], [Call], [Result] or [Own].
type Item interface{ item() }

// Message is a message of at least one part. An assistant's has only texts and refusals.
type Message struct {
	Role  events.Role
	Parts []Part
	Phase string // of an assistant's
}

// Part is a part of a message.
type Part struct {
	Type     string      `json:"type"`
	Text     *string     `json:"text,omitzero"`
	Refusal  string      `json:"refusal,omitzero"`
	ImageURL string      `json:"image_url,omitzero"`
	Detail   events.JSON `json:"detail,omitzero"`
	FileID   events.JSON `json:"file_id,omitzero"`
	FileURL  events.JSON `json:"file_url,omitzero"`
	FileData events.JSON `json:"file_data,omitzero"`
	Filename events.JSON `json:"filename,omitzero"`

	Annotations events.JSON `json:"annotations,omitzero"` // of an assistant's text
}

// Reasoning is reasoning that the endpoint can be sent back: what it led to follows, and it has
// Encrypted or, if the endpoint takes text, Content.
type Reasoning struct {
	ID        string        // as its provider named it; it may occur twice
	Summary   []events.JSON // never nil
	Content   events.JSON   // a list of parts reasoning_text
	Encrypted string
}

// Call is a call of a tool. Its result follows, not always at once.
type Call struct {
	ID        string // once in a turn, at most 64 characters
	Name      string // of at most 64 letters, digits, "_" and "-"
	Arguments string // usually a JSON object
	Step      string // which step made it, of a protocol with Protocol.Steps; empty: unknown
}

// Result is the result of the call with that id, of which there is one.
type Result struct {
	CallID string
	Output events.JSON // a text, or a list of parts that a model sees
	Failed bool        // the output says why the call failed
}

// Own is an item that the endpoint has made itself, as it was.
type Own struct{ openresponses.Item }

func (Message) item()   {}
func (Reasoning) item() {}
func (Call) item()      {}
func (Result) item()    {}
func (Own) item()       {}
