package clients_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// filesServer returns a server with the agent reads, which answers with the content of the last file
// that it was sent, and the model vectors, at an endpoint that embeds a text as 0.5 and its length.
func filesServer(t *testing.T) *skeintest.Server {
	t.Helper()
	endpoint := httptest.NewServer(http.HandlerFunc(embedTexts))
	t.Cleanup(endpoint.Close)
	s := skeintest.Start(t, func(o *skein.Options) {
		o.HTTPListen, o.Tenant, o.ModelEndpoints = "127.0.0.1:0", "acme", []string{"local=chat," + endpoint.URL + "/v1"}
	})
	data := regexp.MustCompile(`"data:text/plain;base64,([^"]*)"`)
	s.Must(s.Reactor("reads", func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		for _, item := range slices.Backward(in.Items) {
			if found := data.FindSubmatch(item.Content); found != nil {
				content, err := base64.StdEncoding.DecodeString(string(found[1]))
				return skein.Answer(string(content)), err
			}
		}
		return skein.Answer("no file"), nil
	}))
	_, err := s.Client("acme").Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.AgentKind, Definition: []byte(`{"name":"reads","type":"ai_human","reactor":"reads"}`)},
		{Kind: events.ModelKind, Definition: []byte(`{"name":"vectors","model":"text-small","endpoint":"local"}`)},
	}})
	s.Must(err)
	return s
}

// embedTexts answers a request for embeddings.
func embedTexts(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Input          any
		EncodingFormat string `json:"encoding_format"`
	}
	_ = json.NewDecoder(r.Body).Decode(&q) // no input has no vectors
	texts, many := q.Input.([]any)
	if !many {
		texts = []any{q.Input}
	}
	var list []string
	for i, text := range texts {
		n := float32(len(fmt.Sprint(text)))
		vector := fmt.Sprintf("[0.5,%g]", n)
		if q.EncodingFormat == "base64" {
			raw := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.5)), math.Float32bits(n))
			vector = `"` + base64.StdEncoding.EncodeToString(raw) + `"`
		}
		list = append(list, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, vector))
	}
	fmt.Fprintf(w, `{"object":"list","data":[%s],"model":"text-small","usage":{"prompt_tokens":%d,"total_tokens":%d}}`, strings.Join(list, ","), len(list), len(list))
}

// Clients of OpenAI, of LangChain and of the AI SDK upload files and ask for embeddings, as they do of
// OpenAI's own server.
func TestFilesAndEmbeddings_Node(t *testing.T) {
	dir, node := installFrom(t, "files/package.json", "files/files.mjs")
	s := filesServer(t)
	runScript(t, node, dir, "files.mjs", "SKEIN_URL="+s.Addresses().HTTP)
}

// openai-go does the same.
func TestFilesAndEmbeddings_Go(t *testing.T) {
	s := filesServer(t)
	c := openaigo.NewClient(option.WithBaseURL(s.Addresses().HTTP+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	file, err := c.Files.New(t.Context(), openaigo.FileNewParams{
		File: openaigo.File(strings.NewReader("the notes"), "notes.txt", "text/plain"), Purpose: openaigo.FilePurposeUserData,
		ExpiresAfter: openaigo.FileNewParamsExpiresAfter{Seconds: 3600},
	})
	if err != nil || file.Filename != "notes.txt" || file.Bytes != 9 || file.ExpiresAt != file.CreatedAt+3600 {
		t.Fatalf("%v: %+v", err, file)
	}
	listed := 0
	pages := c.Files.ListAutoPaging(t.Context(), openaigo.FileListParams{Limit: param.NewOpt[int64](1)})
	for pages.Next() {
		listed++
	}
	if pages.Err() != nil || listed != 1 {
		t.Errorf("%v: %d files", pages.Err(), listed)
	}
	content, err := c.Files.Content(t.Context(), file.ID)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(content.Body)
	_ = content.Body.Close() // it was read whole
	if err != nil || string(raw) != "the notes" {
		t.Errorf("%v: %s", err, raw)
	}
	made, err := c.Responses.New(t.Context(), responses.ResponseNewParams{Model: "reads", Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage(responses.ResponseInputMessageContentListParam{{OfInputFile: &responses.ResponseInputFileParam{FileID: openaigo.String(file.ID)}}}, responses.EasyInputMessageRoleUser),
	}}})
	if err != nil || made.OutputText() != "the notes" {
		t.Errorf("%v: %+v", err, made)
	}
	if gone, err := c.Files.Delete(t.Context(), file.ID); err != nil || !gone.Deleted {
		t.Errorf("%v: %+v", err, gone)
	}
	vectors, err := c.Embeddings.New(t.Context(), openaigo.EmbeddingNewParams{Model: "vectors", Input: openaigo.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "bcd"}}})
	if err != nil || len(vectors.Data) != 2 || !slices.Equal(vectors.Data[1].Embedding, []float64{0.5, 3}) || vectors.Usage.TotalTokens != 2 {
		t.Errorf("%v: %+v", err, vectors)
	}
}
