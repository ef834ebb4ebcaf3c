package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// world is a server with agents: triage answers, careful refunds, which a person approves, and asking
// asks a person how much.
type mcpWorld struct {
	t       *testing.T
	url     string
	c       *client.Client
	proceed chan struct{} // closed: who is asked to wait answers
}

func startMCP(t *testing.T) *mcpWorld {
	t.Helper()
	s := skeintest.Start(t, func(o *skein.Options) { o.HTTPListen, o.Tenant = "127.0.0.1:0", "acme" })
	w := &mcpWorld{t: t, url: s.Addresses().HTTP, c: s.Client("acme"), proceed: make(chan struct{})}
	s.Must(s.Reactor("test", func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		if in.LastText(events.User) == "wait" {
			<-w.proceed
		}
		if in.Iteration == 0 && len(in.Tools) > 0 {
			r := &skein.Reaction{}
			for n, tool := range in.Tools {
				r.ToolCalls = append(r.ToolCalls, skein.ToolCall{CallID: fmt.Sprint("c", n+1), Name: tool.Name, Arguments: events.JSON(`{"eur":5}`)})
			}
			return r, nil
		}
		if last := in.Items[len(in.Items)-1]; in.Iteration > 0 {
			return skein.Answer("got " + string(last.Content)), nil
		}
		return skein.Answer("answer to " + in.LastText(events.User)), nil
	}))
	s.Must(s.Tool(skein.NewTool("refund", func(context.Context, struct {
		EUR int `json:"eur"`
	}) (any, error) {
		return "refunded", nil
	}, skein.Description("Refunds."))))
	d := events.ApplyDefinitions{}
	for _, one := range [][2]string{
		{"tool", `{"name":"refund","description":"Refunds.","type":"go","auto":false}`},
		{"tool", `{"name":"how_much","description":"Asks.","type":"person","question":"How much?","answer":{"type":"object","properties":{"eur":{"type":"integer"}},"required":["eur"]}}`},
		{"agent", `{"name":"triage","type":"ai_human","reactor":"test"}`},
		{"agent", `{"name":"careful","type":"ai_human","reactor":"test","tools":["refund"]}`},
		{"agent", `{"name":"asking","type":"ai_human","reactor":"test","tools":["how_much"]}`},
		{"agent", `{"name":"both","type":"ai_human","reactor":"test","tools":["how_much","refund"]}`},
	} {
		d.Definitions = append(d.Definitions, events.NewDefinition{Kind: events.DefinitionKind(one[0]), Definition: events.JSON(one[1])})
	}
	_, err := w.c.Send(t.Context(), "", d)
	s.Must(err)
	return w
}

// connect connects a client, which answers forms if it has an answer.
func (w *mcpWorld) connect(answer func(*sdk.ElicitParams) *sdk.ElicitResult) *sdk.ClientSession {
	w.t.Helper()
	var o sdk.ClientOptions
	if answer != nil {
		o.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) { return answer(r.Params), nil }
	}
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &o).Connect(w.t.Context(), &sdk.StreamableClientTransport{Endpoint: w.url + "/mcp"}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

type asked struct {
	ThreadID, ExecutionID, Status string
	Waiting                       []struct{ CallID, Tool, Kind, Question string }
}

// call calls a tool, and returns its text and what it says besides.
func call[R any](t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) (string, R) {
	t.Helper()
	var out R
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err == nil && !res.IsError {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatalf("%s: %v %s", tool, err, raw)
	}
	return res.Content[0].(*sdk.TextContent).Text, out
}

// An agent is asked in a new thread, and again in it; what it said is found, and fetched whole, with
// the page of the thread.
func TestAskAgent_AnswersAndIsFound(t *testing.T) {
	t.Parallel()
	w := startMCP(t)
	s := w.connect(nil)
	text, first := call[asked](t, s, "ask_agent", map[string]any{"agent": "triage", "text": "hello"})
	if text != "answer to hello" || first.Status != "completed" {
		t.Fatalf("%q %+v", text, first)
	}
	if text, again := call[asked](t, s, "ask_agent", map[string]any{"thread": first.ThreadID, "text": "more"}); text != "answer to more" || again.ThreadID != first.ThreadID {
		t.Errorf("%q %+v", text, again)
	}
	if text, same := call[asked](t, s, "ask_agent", map[string]any{"thread": first.ThreadID, "execution": first.ExecutionID}); text != "answer to hello" || same.ExecutionID != first.ExecutionID {
		t.Errorf("a run that has ended: %q %+v", text, same)
	}
	_, found := call[struct {
		Results []struct{ ID, Title, URL string }
	}](t, s, "search", map[string]any{"query": "triage"})
	if len(found.Results) != 1 || found.Results[0].ID != first.ThreadID {
		t.Fatalf("%+v", found)
	}
	_, got := call[struct{ ID, Title, Text, URL string }](t, s, "fetch", map[string]any{"id": found.Results[0].ID})
	if got.ID != first.ThreadID || got.URL != found.Results[0].URL || strings.Count(got.Text, "answer to ") != 2 || strings.Count(got.Text, "# Thread") != 1 {
		t.Errorf("%+v", got)
	}
	if res, err := http.Get(got.URL); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the page: %v %v", res, err)
	}
	// A long text continues where its end says, and each message is there once.
	for i := range 8 {
		_, err := w.c.Send(t.Context(), first.ThreadID, events.AddMessage{Role: events.FromUser, Content: new(strings.Repeat("x", 30<<10) + " end " + string(rune('a'+i)))})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, id := "", first.ThreadID
	for id != "" {
		_, got := call[struct{ Text string }](t, s, "fetch", map[string]any{"id": id})
		all += got.Text
		_, id, _ = strings.Cut(got.Text, "\nContinues at ")
		id = strings.TrimSpace(id)
	}
	for i := range 8 {
		if n := strings.Count(all, " end "+string(rune('a'+i))); n != 1 {
			t.Errorf("message %d is there %d times", i, n)
		}
	}
}

// A call that waits for approval is reported at once, and the decision leads to the answer.
func TestAskAgent_WaitsForApproval(t *testing.T) {
	t.Parallel()
	w := startMCP(t)
	s := w.connect(func(*sdk.ElicitParams) *sdk.ElicitResult {
		t.Error("an approval is no question")
		return &sdk.ElicitResult{Action: "cancel"}
	})
	for decision, want := range map[string]string{"grant": "refunded", "deny": "no", "result": `5 euros`} {
		_, first := call[asked](t, s, "ask_agent", map[string]any{"agent": "careful", "text": "refund"})
		if first.Status != "waiting" || len(first.Waiting) != 1 || first.Waiting[0].Tool != "refund" || first.Waiting[0].Kind != "approval" {
			t.Fatalf("%+v", first)
		}
		args := map[string]any{"thread": first.ThreadID, "call": first.Waiting[0].CallID, "decision": decision, "reason": "no"}
		if decision == "result" {
			args["value"] = "5 euros"
			delete(args, "reason")
		}
		call[struct{ ThreadID string }](t, s, "approve", args)
		call[struct{ ThreadID string }](t, s, "approve", args) // the same again
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "approve", Arguments: map[string]any{"thread": first.ThreadID, "call": first.Waiting[0].CallID, "decision": "result", "value": "other"}})
		if err != nil || !res.IsError || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, "answered before") {
			t.Errorf("%s, and then another answer: %+v %v", decision, res, err)
		}
		if text, last := call[asked](t, s, "ask_agent", map[string]any{"thread": first.ThreadID, "execution": first.ExecutionID}); !strings.Contains(text, want) || last.Status != "completed" {
			t.Errorf("%s: %q %+v", decision, text, last)
		}
	}
}

// A question is asked of the user of a client that has forms, and reported to others.
func TestAskAgent_AsksTheUser(t *testing.T) {
	t.Parallel()
	w := startMCP(t)
	for _, c := range []struct {
		action, want, status string
	}{{"accept", `{"eur":7}`, "completed"}, {"decline", "declined", "completed"}, {"cancel", "approve", "waiting"}} {
		s := w.connect(func(p *sdk.ElicitParams) *sdk.ElicitResult {
			if p.Message != "How much?" {
				t.Errorf("%+v", p)
			}
			return &sdk.ElicitResult{Action: c.action, Content: map[string]any{"eur": 7}}
		})
		if text, out := call[asked](t, s, "ask_agent", map[string]any{"agent": "asking", "text": "x"}); !strings.Contains(text, c.want) || out.Status != c.status {
			t.Errorf("%s: %q %+v", c.action, text, out)
		}
	}
	if _, out := call[asked](t, w.connect(nil), "ask_agent", map[string]any{"agent": "asking", "text": "x"}); out.Status != "waiting" || out.Waiting[0].Kind != "question" || out.Waiting[0].Question != "How much?" {
		t.Errorf("without forms: %+v", out)
	}
	form := w.connect(func(p *sdk.ElicitParams) *sdk.ElicitResult {
		t.Errorf("%q is asked, though an approval waits with it", p.Message)
		return &sdk.ElicitResult{Action: "cancel"}
	})
	if _, out := call[asked](t, form, "ask_agent", map[string]any{"agent": "both", "text": "x"}); out.Status != "waiting" || len(out.Waiting) != 2 {
		t.Errorf("a question and an approval: %+v", out)
	}
}

// Answers that were sent twice are told once; what comes with them is not trusted.
func TestAskAgent_AnswersAreRepeatable(t *testing.T) {
	t.Parallel()
	w := startMCP(t)
	rounds := 0
	s := w.connect(func(*sdk.ElicitParams) *sdk.ElicitResult {
		rounds++
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"eur": 7}}
	})
	text, first := call[asked](t, s, "ask_agent", map[string]any{"agent": "asking", "text": "x"})
	if rounds != 1 || first.Status != "completed" {
		t.Fatalf("%q %+v after %d rounds", text, first, rounds)
	}
	x, err := client.Read(t.Context(), w.c, events.GetExecution{ThreadID: first.ThreadID, ExecutionID: first.ExecutionID})
	if err != nil {
		t.Fatal(err)
	}
	state, _ := json.Marshal(map[string]any{"thread": first.ThreadID, "execution": first.ExecutionID})
	again, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"agent": "asking", "text": "x"}, RequestState: string(state), InputResponses: sdk.InputResponseMap{
		x.Approvals[0].CallID: &sdk.ElicitResult{Action: "accept", Content: map[string]any{"eur": 7}},
	}})
	if err != nil || again.IsError || again.Content[0].(*sdk.TextContent).Text != text {
		t.Errorf("repeated: %+v, %v; want %q", again, err, text)
	}
	// Another answer is refused, as is a position that no log has come to.
	for name, c := range map[string]struct {
		said  *sdk.ElicitResult
		state map[string]any
		want  string
	}{
		"another value": {&sdk.ElicitResult{Action: "accept", Content: map[string]any{"eur": 8}}, nil, "answered otherwise"},
		"a refusal":     {&sdk.ElicitResult{Action: "decline"}, nil, "answered otherwise"},
		"put away":      {&sdk.ElicitResult{Action: "cancel"}, nil, text},
		"beyond":        {&sdk.ElicitResult{Action: "cancel"}, map[string]any{"seq": int64(1) << 40}, "is not one of ask_agent's"},
		"before":        {&sdk.ElicitResult{Action: "cancel"}, map[string]any{"seq": -1}, "is not one of ask_agent's"},
	} {
		forged := map[string]any{"thread": first.ThreadID, "execution": first.ExecutionID}
		maps.Copy(forged, c.state)
		raw, _ := json.Marshal(forged)
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"agent": "asking", "text": "x"}, RequestState: string(raw), InputResponses: sdk.InputResponseMap{x.Approvals[0].CallID: c.said}})
		if err != nil || res.IsError != (c.want != text) || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, c.want) {
			t.Errorf("%s: %+v, %v; want %q", name, res, err, c.want)
		}
	}
}

// A client that asks for the progress of a call is told that it goes on, more than once, before it ends;
// others are answered whole.
func TestAskAgent_TellsProgress(t *testing.T) {
	t.Parallel()
	w := startMCP(t)
	told := make(chan *sdk.ProgressNotificationParams, 100)
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params },
	}).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: w.url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	ended := make(chan *sdk.CallToolResult, 1)
	go func() {
		p := &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"agent": "triage", "text": "wait"}}
		p.SetProgressToken("mine")
		res, err := s.CallTool(t.Context(), p)
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	last := -1.0
	for range 2 {
		select {
		case p := <-told:
			if p.ProgressToken != "mine" || p.Progress <= last || p.Message == "" {
				t.Errorf("%+v after %v", p, last)
			}
			last = p.Progress
		case res := <-ended:
			t.Fatalf("it ended: %+v", res)
		}
	}
	close(w.proceed)
	if res := <-ended; res == nil || res.IsError || res.Content[0].(*sdk.TextContent).Text != "answer to wait" {
		t.Errorf("%+v", res)
	}
}

// Who asks in a thread whose run waits for a person is told so at once.
func TestAskAgent_BehindAWaitingRun(t *testing.T) {
	t.Parallel()
	w := startMCP(t)
	s := w.connect(nil)
	_, first := call[asked](t, s, "ask_agent", map[string]any{"agent": "careful", "text": "refund"})
	_, second := call[asked](t, s, "ask_agent", map[string]any{"thread": first.ThreadID, "text": "and?"})
	if second.Status != "waiting" || len(second.Waiting) != 1 || second.Waiting[0].CallID != first.Waiting[0].CallID || second.ExecutionID == first.ExecutionID {
		t.Errorf("%+v after %+v", second, first)
	}
}

// A refusal is the tool's, and says what to do; nothing is made by it.
func TestAskAgent_Refusals(t *testing.T) {
	t.Parallel()
	w := startMCP(t)
	s := w.connect(nil)
	for name, c := range map[string]struct {
		tool string
		args map[string]any
		want string
	}{
		"no text":          {"ask_agent", map[string]any{"agent": "triage"}, "a text is needed"},
		"no agent":         {"ask_agent", map[string]any{"text": "x"}, "name an agent"},
		"an unknown agent": {"ask_agent", map[string]any{"agent": "nobody", "text": "x"}, "nobody"},
		"no thread":        {"ask_agent", map[string]any{"thread": "T-0190a3c5-0000-7000-8000-000000000000", "text": "x"}, "not_found"},
		"a run alone":      {"ask_agent", map[string]any{"execution": "exe_1"}, "belongs to a thread"},
		"no value":         {"approve", map[string]any{"thread": "key:x", "call": "c", "decision": "result"}, "value is needed"},
		"no id":            {"fetch", map[string]any{"id": "nothing"}, "invalid_request: id: must be a thread"},
		"no thread's id":   {"read_thread", map[string]any{"thread": "nothing"}, "invalid_request: thread: must be a thread"},
		"no id to ask in":  {"ask_agent", map[string]any{"thread": "nothing", "text": "x"}, "invalid_request: thread: must be a thread"},
		"no page":          {"fetch", map[string]any{"id": "skein://threads/x?from=y"}, "number"},
	} {
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: c.args})
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if text := res.Content[0].(*sdk.TextContent).Text; !res.IsError || !strings.Contains(text, c.want) {
			t.Errorf("%s: %v %s, want %s", name, res.IsError, text, c.want)
		}
	}
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"agent": "triage", "text": "x"}, RequestState: "{}"})
	if err != nil || !res.IsError {
		t.Errorf("a state that nobody made: %+v %v", res, err)
	}
	if _, list := call[struct{ Threads []any }](t, s, "list_threads", nil); len(list.Threads) != 0 {
		t.Errorf("threads were made: %v", list)
	}
}
