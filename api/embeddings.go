package api

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Bounds of a request.
const (
	mostInputs  = 2048    // as at OpenAI
	firstInputs = 16      // of the first part
	partBytes   = 2 << 20 // of the texts, and about of the vectors, of a part
)

// embeddingsRoutes adds OpenAI's Embeddings at /v1/embeddings.
//
// The edge has no endpoints of models and no keys of theirs: it asks the service that has them, over
// NATS, as it asks for everything. A request with many texts is divided, so that each answer fits into
// a message; the first part is small, and shows how large a vector is.
func embeddingsRoutes(e *edge.Edge) {
	e.Handle("POST /v1/embeddings", openresponses.Refusals(createEmbeddings))
}

// embeddingsRequest is the body of POST /v1/embeddings. Unknown fields are ignored.
type embeddingsRequest struct {
	Model          string      `json:"model"`
	Input          events.JSON `json:"input"`
	EncodingFormat *string     `json:"encoding_format"`
	Dimensions     *int64      `json:"dimensions"`
	User           *string     `json:"user"`

	inputs []events.JSON
}

// embedding is the vector of an input.
type embedding struct {
	Object    string      `json:"object"`
	Index     int         `json:"index"`
	Embedding events.JSON `json:"embedding"`
}

// embeddingsAnswer is the answer to a request.
type embeddingsAnswer struct {
	Object string      `json:"object"`
	Data   []embedding `json:"data"`
	Model  string      `json:"model"`
	Usage  struct {
		PromptTokens int64 `json:"prompt_tokens"`
		TotalTokens  int64 `json:"total_tokens"`
	} `json:"usage"`
}

// createEmbeddings answers POST /v1/embeddings.
func createEmbeddings(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	body, err := edge.Body(r, edge.MaxBody)
	if err != nil {
		return err
	}
	if len(body) > edge.MaxBody {
		return events.TooLarge("the body", int64(len(body)), edge.MaxBody)
	}
	d, err := readEmbeddingsRequest(body)
	if err != nil {
		return err
	}
	if err := c.Awaits(false); err != nil { // as a run of the model
		return err
	}
	out := embeddingsAnswer{Object: "list", Data: make([]embedding, 0, len(d.inputs)), Model: d.Model}
	for size := firstInputs; len(out.Data) < len(d.inputs); {
		part := partOf(d.inputs[len(out.Data):], size)
		got, err := c.Client.Embed(r.Context(), d.embed(part))
		if err != nil {
			return d.refused(err)
		}
		if len(got.Embeddings) != len(part) {
			return events.Errorf(events.Unavailable, "the answer has %d embeddings for %d inputs; send the request again", len(got.Embeddings), len(part))
		}
		bytes := 1
		for _, one := range got.Embeddings {
			bytes += len(one)
			out.Data = append(out.Data, embedding{"embedding", len(out.Data), one})
		}
		out.Usage.PromptTokens += got.Tokens
		size = max(1, partBytes*len(part)/bytes)
	}
	out.Usage.TotalTokens = out.Usage.PromptTokens
	edge.WriteJSON(w, http.StatusOK, out)
	return nil
}

// readEmbeddingsRequest decodes a request.
func readEmbeddingsRequest(body []byte) (*embeddingsRequest, error) {
	var d embeddingsRequest
	if err := json.Unmarshal(body, &d, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, edge.NotObject(err)
	}
	switch {
	case d.Model == "":
		return nil, events.Invalid("/model", "embeddings need a model: the name of a model that is defined")
	case d.EncodingFormat != nil && !slices.Contains([]string{"float", "base64"}, *d.EncodingFormat):
		return nil, events.Invalid("/encoding_format", "encoding_format is float or base64, not %.32q", *d.EncodingFormat)
	case d.Dimensions != nil && *d.Dimensions < 1:
		return nil, events.Invalid("/dimensions", "dimensions is a number of at least 1, not %d", *d.Dimensions)
	}
	return &d, d.divide()
}

// divide reads the inputs: a text, a list of texts, a list of tokens, or a list of such lists.
func (d *embeddingsRequest) divide() error {
	var list []events.JSON
	switch jsontext.Value(d.Input).Kind() {
	case '"':
		list = []events.JSON{d.Input}
	case '[':
		_ = json.Unmarshal(d.Input, &list) // it is a list
		if len(list) > 0 && jsontext.Value(list[0]).Kind() == '0' {
			list = []events.JSON{d.Input}
		}
	}
	switch {
	case len(list) == 0:
		return events.Invalid("/input", "input is a text, a list of texts, or tokens, and not empty")
	case len(list) > mostInputs:
		return events.Invalid("/input", "input has at most %d texts; this one has %d", mostInputs, len(list))
	}
	for i, one := range list {
		path := "/input/" + strconv.Itoa(i)
		if len(list) == 1 {
			path = "/input"
		}
		if !embeddable(one) {
			return events.Invalid(path, "each input is a text or a list of tokens, and not empty")
		}
		if len(one) > partBytes {
			large := events.TooLarge("the input "+strconv.Itoa(i), int64(len(one)), partBytes)
			large.Details.Path = path
			return large
		}
	}
	d.inputs = list
	return nil
}

// embeddable reports whether a value is a text or a list of whole numbers, and not empty.
func embeddable(v events.JSON) bool {
	var tokens []int64
	switch jsontext.Value(v).Kind() {
	case '"':
		return string(v) != `""`
	case '[':
		return json.Unmarshal(v, &tokens) == nil && len(tokens) > 0
	}
	return false
}

// partOf returns the first inputs, at most so many, of at most partBytes.
func partOf(inputs []events.JSON, most int) []events.JSON {
	n, bytes := 0, 0
	for n < min(most, len(inputs)) && (n == 0 || bytes+len(inputs[n]) <= partBytes) {
		bytes += len(inputs[n])
		n++
	}
	return inputs[:n]
}

// embed returns the request for some of the inputs.
func (d *embeddingsRequest) embed(inputs []events.JSON) client.Embed {
	q := client.Embed{Model: d.Model, Inputs: inputs, Dimensions: d.Dimensions}
	if d.EncodingFormat != nil {
		q.EncodingFormat = *d.EncodingFormat
	}
	if d.User != nil {
		q.User = *d.User
	}
	return q
}

// refused returns a refusal in the words of the protocol.
func (d *embeddingsRequest) refused(err error) error {
	if e := events.AsError(err); e.Code == events.NotFound && e.Details != nil && e.Details.Entity == "model" {
		return openresponses.NoModel(d.Model)
	}
	return err
}
