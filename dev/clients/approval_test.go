package clients_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
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

// A request that openai-go repeats, because it did not get the answer, has the run of the first
// attempt, whose approval the client then answers.
func TestOpenResponses_GoRetriesAndApproves(t *testing.T) {
	var asked atomic.Int64
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing makes another answer
		asked.Add(1)
		item := `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"refund","arguments":"{\"eur\":5}","status":"completed"}`
		if strings.Contains(string(body), "function_call_output") {
			item = `{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Refunded."}]}`
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":0,\"response\":{\"id\":\"r\",\"status\":\"completed\",\"model\":\"m\",\"output\":[%s]}}\n\n", item)
	}))
	t.Cleanup(endpoint.Close)
	s := skeintest.Start(t, func(o *skein.Options) { o.HTTPListen, o.Tenant = "127.0.0.1:0", "acme" })
	r, err := upstream.New(model.Config{BaseURL: endpoint.URL + "/v1", APIKey: "sk-test", Timeout: 5 * time.Minute, Idle: 5 * time.Minute})
	s.Must(err)
	s.Must(s.Reactor("test", r.React))
	s.Must(s.Tool(skein.NewTool("refund", func(context.Context, struct {
		EUR int `json:"eur"`
	}) (any, error) {
		return "done", nil
	}, skein.Description("Refunds."))))
	_, err = s.Client("acme").Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.ModelKind, Definition: []byte(`{"name":"m","model":"test-1","reactor":"test"}`)},
		{Kind: events.ToolKind, Definition: []byte(`{"name":"refund","description":"Refunds.","type":"go","auto":false}`)},
		{Kind: events.AgentKind, Definition: []byte(`{"name":"careful","type":"ai_human","model":"m","tools":["refund"]}`)},
	}})
	s.Must(err)
	tries := 0
	c := openaigo.NewClient(option.WithBaseURL(s.Addresses().HTTP+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(2),
		option.WithMiddleware(func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			tries++
			res, err := next(req)
			if tries == 1 && err == nil {
				_ = res.Body.Close()
				return nil, errors.New("the connection was lost")
			}
			return res, err
		}))
	first, err := c.Responses.New(t.Context(), responses.ResponseNewParams{Model: "careful", Input: responses.ResponseNewParamsInputUnion{OfString: openaigo.String("refund it")}})
	if err != nil || tries != 2 || first.Status != responses.ResponseStatusIncomplete || len(first.Output) != 1 || first.Output[0].Type != "mcp_approval_request" || asked.Load() != 1 {
		t.Fatalf("%v: after %d tries %+v; the model was asked %d times", err, tries, first, asked.Load())
	}
	second, err := c.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: "careful", PreviousResponseID: openaigo.String(first.ID),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			{OfMcpApprovalResponse: &responses.ResponseInputItemMcpApprovalResponseParam{ApprovalRequestID: first.Output[0].ID, Approve: true}},
		}},
	})
	if err != nil || second.OutputText() != "Refunded." || second.Output[0].Type != "mcp_call" {
		t.Errorf("%v: %+v", err, second)
	}
}
