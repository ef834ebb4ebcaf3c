package clients_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime/model"
	upstream "github.com/skein-threads/skein/runtime/model/responses"
	"github.com/skein-threads/skein/skeintest"
)

// answerModel is a model that speaks the protocol: it greets, and asks for the weather where it
// has a tool for it.
func answerModel(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind, rest string) {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,\"sequence_number\":0,%s}\n\n", kind, kind, rest) // a client that is gone reads nothing
		w.(http.Flusher).Flush()
	}
	item := ""
	text := "Hello, you."
	if strings.Contains(string(body), `"type":"function_call_output"`) {
		text = "It rains."
	}
	asked := strings.LastIndex(string(body), "weather?") > strings.LastIndex(string(body), "hello")
	if strings.Contains(string(body), `"name":"weather"`) && asked && !strings.HasSuffix(lastItem(string(body)), "output") {
		item = `{"type":"function_call","id":"fc_1","call_id":"call_` + fmt.Sprint(strings.Count(string(body), "call_id")) + `","name":"weather","arguments":"{\"city\":\"Paris\"}","status":"completed"}`
		send("response.output_item.done", `"output_index":0,"item":`+item)
	} else {
		for piece := range strings.SplitAfterSeq(text, " ") {
			send("response.output_text.delta", fmt.Sprintf(`"item_id":"msg_1","output_index":0,"content_index":0,"delta":%q`, piece))
		}
		item = fmt.Sprintf(`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":%q}]}`, text)
	}
	send("response.completed", `"response":{"id":"resp_1","status":"completed","model":"m","output":[`+item+`],"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":7}}`)
}

// lastItem returns output if the last item of a request's input is the output of a call.
func lastItem(body string) string {
	if strings.LastIndex(body, `"function_call_output"`) > strings.LastIndex(body, `"type":"message"`) {
		return "output"
	}
	return ""
}

// openResponses starts a server whose agent triage asks such a model.
func openResponses(t *testing.T) *skeintest.Server {
	t.Helper()
	endpoint := httptest.NewServer(http.HandlerFunc(answerModel))
	t.Cleanup(endpoint.Close)
	s := skeintest.Start(t, func(o *skein.Options) { o.HTTPListen, o.Tenant = "127.0.0.1:0", "acme" })
	r, err := upstream.New(model.Config{BaseURL: endpoint.URL + "/v1", APIKey: "sk-test", Timeout: 5 * time.Minute, Idle: 5 * time.Minute})
	s.Must(err)
	s.Must(s.Reactor("test", r.React))
	_, err = s.Client("acme").Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.ModelKind, Definition: []byte(`{"name":"m","model":"test-1","reactor":"test"}`)},
		{Kind: events.AgentKind, Definition: []byte(`{"name":"triage","type":"ai_human","model":"m"}`)},
	}})
	s.Must(err)
	return s
}

// Clients of OpenAI, the AI SDK's providers and the Agents SDK work against a server as they do
// against their own.
func TestOpenResponses_Node(t *testing.T) {
	dir, node := install(t, "openresponses.mjs")
	s := openResponses(t)
	cmd := exec.CommandContext(t.Context(), node, "--test", "--test-reporter=spec", "--test-timeout=300000", "openresponses.mjs")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SKEIN_URL="+s.Addresses().HTTP)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("clients of Open Responses: %v", err)
	}
}

// openai-go creates, streams, and resumes a stream.
func TestOpenResponses_Go(t *testing.T) {
	s := openResponses(t)
	c := openaigo.NewClient(option.WithBaseURL(s.Addresses().HTTP+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	ask := responses.ResponseNewParams{Model: "triage", Input: responses.ResponseNewParamsInputUnion{OfString: openaigo.String("hello")}}
	made, err := c.Responses.New(t.Context(), ask)
	if err != nil || made.OutputText() != "Hello, you." || made.Usage.TotalTokens != 7 {
		t.Fatalf("%v: %+v", err, made)
	}
	read := func(next func() bool, current func() responses.ResponseStreamEventUnion) (text string, first int64, ended bool) {
		first = -1
		for next() {
			e := current()
			if first < 0 {
				first = e.SequenceNumber
			}
			if e.Type == "response.output_text.delta" {
				text += e.Delta
			}
			ended = ended || e.Type == "response.completed"
		}
		return text, first, ended
	}
	stream := c.Responses.NewStreaming(t.Context(), ask)
	if text, first, ended := read(stream.Next, stream.Current); text != "Hello, you." || first != 0 || !ended || stream.Err() != nil {
		t.Errorf("%q from %d: %v, %v", text, first, ended, stream.Err())
	}
	again := c.Responses.GetStreaming(t.Context(), made.ID, responses.ResponseGetParams{StartingAfter: openaigo.Int(1)})
	if text, first, ended := read(again.Next, again.Current); text != "Hello, you." || first != 2 || !ended || again.Err() != nil {
		t.Errorf("%q from %d: %v, %v", text, first, ended, again.Err())
	}
}
