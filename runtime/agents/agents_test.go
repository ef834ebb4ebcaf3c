package agents_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// house is a server that runs agents, and a client of it.
type house struct {
	t   *testing.T
	c   *client.Client
	url string
}

// start starts a server whose reactor "say" answers with its input about the agent, and
// calls the first tool that it finds.
func start(t *testing.T, change func(*server.Config)) *house {
	t.Helper()
	cfg := server.Config{
		Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true,
		Register: func(r *runtime.Registry) error {
			if err := r.AddReactor("say", transcript.Chosen(say)); err != nil {
				return err
			}
			type in struct {
				N int64 `json:"n"`
			}
			double, err := runtime.DefineTool(runtime.ToolSpec{Name: "double", Description: "Doubles."},
				func(_ context.Context, _ *runtime.ToolInput, a in) (int64, error) { return 2 * a.N, nil })
			if err != nil {
				return err
			}
			return r.AddTool(double)
		},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := server.Start(t.Context(), cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	c, err := client.Connect(s.Addresses().NATS, client.Options{Tenant: "acme", Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &house{t, c, s.Addresses().NATS}
}

func say(in *runtime.StepInput) ([]transcript.Step, error) {
	told := in.Agent + "/" + in.Model.Model + "/" + in.Instructions + "/" + in.Side + in.SideLabel
	if len(in.Tools) == 0 {
		return []transcript.Step{transcript.Text(told), transcript.Text("over")}, nil
	}
	return []transcript.Step{
		transcript.Text(told, runtime.ToolCall{CallID: "c1", Name: in.Tools[0].Name, Arguments: events.JSON(`{"n":21}`)}), transcript.Text("over"),
	}, nil
}

// apply applies definitions, given as pairs: kind, then the definition as JSON.
func (h *house) apply(pairs ...string) {
	h.t.Helper()
	d := events.ApplyDefinitions{}
	for i := 0; i < len(pairs); i += 2 {
		d.Definitions = append(d.Definitions, events.NewDefinition{Kind: events.DefinitionKind(pairs[i]), Definition: events.JSON(pairs[i+1])})
	}
	if _, err := h.c.Send(h.t.Context(), "", d); err != nil {
		h.t.Fatal(err)
	}
}

// ask asks an agent on a new thread, and returns the execution and the answer.
func (h *house) ask(agent string) (*events.Execution, string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 5*time.Minute)
	defer cancel()
	made, err := h.c.Send(ctx, "", events.CreateThread{})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.react(ctx, made.ThreadID, agent)
}

// react asks an agent on a thread, and returns the execution and the answer.
func (h *house) react(ctx context.Context, thread, agent string) (*events.Execution, string) {
	h.t.Helper()
	reply, err := h.c.Send(ctx, thread, events.ReactThread{Text: new("hello"), AgentID: agent})
	if err != nil {
		h.t.Fatal(err)
	}
	seq := reply.Seq
	x, err := h.c.WaitRun(ctx, events.GetExecution{ThreadID: thread, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &seq}})
	if err != nil {
		h.t.Fatal(err)
	}
	seq = x.Seq
	item, err := client.Read(ctx, h.c, events.GetItem{ThreadID: thread, ItemID: x.ReactionItemID, Fresh: events.Fresh{MinSeq: &seq}})
	if err != nil {
		h.t.Fatal(err)
	}
	return x, string(item.Content)
}

// An agent consists of its definitions, and its run records their versions: SA-9,
// SA-55, SA-56, SA-57.
func TestAgentOfDefinitions(t *testing.T) {
	h := start(t, nil)
	h.apply("model", `{"name":"m","model":"big-1","reactor":"say"}`, "prompt", `{"name":"p","text":"Be brief."}`,
		"tool", `{"name":"double","description":"Doubles a number.","type":"go","readOnly":true}`,
		"agent", `{"name":"a","type":"ai_human","model":"m","prompt":"p","tools":["double"],"limits":{"iterations":5}}`)
	x, answer := h.ask("a")
	if x.Status != events.ExecutionCompleted || !strings.Contains(answer, "a/big-1/Be brief./") || !strings.Contains(answer, `"output":42`) {
		t.Errorf("%s %s: %s", x.Status, x.ErrorText, answer)
	}
	want := []events.DefinitionVersion{
		{Kind: "agent", Name: "a", Version: 1}, {Kind: "model", Name: "m", Version: 1}, {Kind: "prompt", Name: "p", Version: 1}, {Kind: "tool", Name: "double", Version: 1},
	}
	if len(x.Definitions) != len(want) {
		t.Fatalf("%v", x.Definitions)
	}
	for i := range want {
		if x.Definitions[i] != want[i] {
			t.Errorf("%v, not %v", x.Definitions[i], want[i])
		}
	}
	h.apply("prompt", `{"name":"p","text":"Be kind."}`)
	if x, answer := h.ask("a"); !strings.Contains(answer, "Be kind.") || x.Definitions[2].Version != 2 {
		t.Errorf("%v: %s", x.Definitions, answer)
	}
}

// The two sides of a dual_ai agent have their own model and prompt.
func TestSidesOfDefinitions(t *testing.T) {
	h := start(t, nil)
	h.apply("model", `{"name":"m","model":"big-1","reactor":"say"}`, "prompt", `{"name":"left","text":"I ask."}`, "prompt", `{"name":"right","text":"I answer."}`,
		"agent", `{"name":"talk","type":"dual_ai","sideA":{"model":"m","prompt":"left"},"sideB":{"model":"m","prompt":"right","stopOnResponse":true}}`)
	x, answer := h.ask("talk")
	if x.Status != events.ExecutionCompleted || !strings.Contains(answer, "I ask./a") || x.StoppedBy != events.SideB || x.SideASteps != 1 || x.SideBSteps != 1 {
		t.Errorf("%+v: %s", x, answer)
	}
}

// A name without a definition is a reactor; one that no process serves fails with its
// name.
func TestAgentWithoutDefinition(t *testing.T) {
	h := start(t, nil)
	if x, answer := h.ask("say"); x.Status != events.ExecutionCompleted || !strings.Contains(answer, "say///") {
		t.Errorf("%s: %s", x.Status, answer)
	}
	nc := natstest.Dial(t, h.url)
	far, err := remote.ServeReactor(nc, events.DefaultNames(), "far", transcript.Chosen(say))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = far.Close(context.Background()) }()
	if x, answer := h.ask("far"); x.Status != events.ExecutionCompleted || !strings.Contains(answer, "far///") {
		t.Errorf("%s: %s", x.Status, answer)
	}
	made, err := h.c.Send(t.Context(), "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.c.Send(t.Context(), made.ThreadID, events.ReactThread{Text: new("hello"), AgentID: "nobody"}); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("an agent that is neither defined nor served: %v", err)
	}
	if x, _ := h.ask("openai"); x.Status != events.ExecutionFailed || x.ErrorText == "" {
		t.Errorf("%s: %s", x.Status, x.ErrorText)
	}
}

// An agent with a model, and a model that is asked by its name, call the tools that they list and
// no others, whatever the tenant defines; a reactor without a model calls any of them, unless
// its agent lists some.
func TestAgentCallsItsOwnTools(t *testing.T) {
	h := start(t, func(c *server.Config) {
		register := c.Register
		c.Register = func(r *runtime.Registry) error {
			guess := transcript.Chosen(func(*runtime.StepInput) ([]transcript.Step, error) {
				return []transcript.Step{transcript.Text("", runtime.ToolCall{CallID: "c1", Name: "double", Arguments: events.JSON(`{"n":21}`)}), transcript.Text("over")}, nil
			})
			if err := r.AddReactor("guess", guess); err != nil {
				return err
			}
			return register(r)
		}
	})
	h.apply("model", `{"name":"m","model":"big-1","reactor":"guess"}`, "tool", `{"name":"double","description":"Doubles a number.","type":"go","readOnly":true}`,
		"tool", `{"name":"other","description":"Asks.","type":"agent","agent":"bare"}`,
		"agent", `{"name":"bare","type":"ai_human","model":"m"}`, "agent", `{"name":"another","type":"ai_human","model":"m","tools":["other"]}`,
		"agent", `{"name":"coded","type":"ai_human","reactor":"guess"}`, "agent", `{"name":"lists","type":"ai_human","reactor":"guess","tools":["other"]}`, "agent", `{"name":"has","type":"ai_human","model":"m","tools":["double"]}`,
		"agent", `{"name":"talk","type":"dual_ai","sideA":{"model":"m","maxSteps":2},"sideB":{"model":"m","tools":["double"],"maxSteps":1}}`)
	for agent, want := range map[string]string{
		"bare": "tool not found: double", "another": "tool not found: double", "lists": "tool not found: double", "m": "tool not found: double",
		"talk": "tool not found: double", "has": `"output":42`, "coded": `"output":42`, "guess": `"output":42`,
	} {
		if x, answer := h.ask(agent); x.Status != events.ExecutionCompleted || !strings.Contains(answer, want) {
			t.Errorf("%s: %s %s: %s", agent, x.Status, x.ErrorText, answer)
		}
	}
}

// A definition has no access to the process except what its operator permits.
func TestDefinitions_AreRestricted(t *testing.T) {
	t.Setenv("SHOP_TOKEN", "topsecret")
	var auth []string
	sells := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1.0.0"}, nil)
	mcp.AddTool(sells, &mcp.Tool{Name: "price", Description: "A price."}, func(context.Context, *mcp.CallToolRequest, struct {
		N int64 `json:"n"`
	}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "5 euros"}}}, nil, nil
	})
	web := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		auth = append(auth, r.Header.Get("Authorization"))
		return sells
	}, nil)
	shop := httptest.NewServer(web)
	defer shop.Close()
	define := func(h *house, serverOf string) {
		h.apply("tool", `{"name":"price","description":"A price.","type":"mcp","server":`+serverOf+`}`,
			"agent", `{"name":"a","type":"ai_human","reactor":"say","tools":["price"]}`)
	}
	h := start(t, nil)
	define(h, `{"command":"cat","args":["/etc/passwd"]}`)
	if x, _ := h.ask("a"); x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, "--mcp-programs") {
		t.Errorf("%s: %s", x.Status, x.ErrorText)
	}
	define(h, `{"url":"`+shop.URL+`","tokenEnv":"SHOP_TOKEN"}`)
	if x, _ := h.ask("a"); x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, "--mcp-variable") || strings.Contains(x.ErrorText, "topsecret") {
		t.Errorf("%s: %s", x.Status, x.ErrorText)
	}
	if len(auth) > 0 {
		t.Errorf("the server was asked: %v", auth)
	}
	inside := strings.TrimPrefix(shop.URL, "http://")
	h = start(t, func(c *server.Config) {
		c.MCPVariables = []string{"acme:SHOP_TOKEN=" + shop.URL + "/mcp"}
	})
	define(h, `{"url":"`+shop.URL+`/mcp","tokenEnv":"SHOP_TOKEN"}`)
	if x, _ := h.ask("a"); x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, "--egress-allow") {
		t.Errorf("%s: %s", x.Status, x.ErrorText)
	}
	h = start(t, func(c *server.Config) {
		c.MCPVariables = []string{"acme:SHOP_TOKEN=" + shop.URL + "/mcp"}
		c.EgressAllow = []string{inside}
	})
	define(h, `{"url":"`+shop.URL+`/other","tokenEnv":"SHOP_TOKEN"}`)
	if x, _ := h.ask("a"); x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, "--mcp-variable") {
		t.Errorf("%s: %s", x.Status, x.ErrorText)
	}
	if len(auth) > 0 {
		t.Errorf("the server was asked: %v", auth)
	}
	define(h, `{"url":"`+shop.URL+`/mcp","tokenEnv":"SHOP_TOKEN"}`)
	if x, answer := h.ask("a"); x.Status != events.ExecutionCompleted || !strings.Contains(answer, "5 euros") {
		t.Errorf("%s %s: %s", x.Status, x.ErrorText, answer)
	}
	if len(auth) == 0 || auth[0] != "Bearer topsecret" {
		t.Errorf("the server was asked with %q", auth)
	}
	asked := len(auth)
	other, err := client.Connect(h.url, client.Options{Tenant: "globex", Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	h.c = other // what is cached of the server for one tenant is not used for another
	define(h, `{"url":"`+shop.URL+`/mcp","tokenEnv":"SHOP_TOKEN"}`)
	if x, _ := h.ask("a"); x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, "--mcp-variable") || len(auth) != asked {
		t.Errorf("%s: %s; the server was asked %d times", x.Status, x.ErrorText, len(auth)-asked)
	}
}

// A tenant that has used its tokens of the day is refused, and a run that uses the last
// of them calls no model again; another tenant is not affected.
func TestTokensPerDay(t *testing.T) {
	h := start(t, func(c *server.Config) {
		c.TokensPerDay = []string{"1000000", "acme=50", "globex=100"}
		register := c.Register
		c.Register = func(r *runtime.Registry) error {
			return errors.Join(register(r), r.AddReactor("eater", runtime.ReactorFunc(func(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
				got := &runtime.Reaction{Usage: &runtime.Usage{InputTokens: 40, OutputTokens: 20}, AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(`{"type":"output_text","text":"fed"}`)}}}
				if in.Iteration == 0 {
					got.ToolCalls = []runtime.ToolCall{{CallID: "c1", Name: "double", Arguments: events.JSON(`{"n":1}`)}}
				}
				return got, nil
			})))
		}
	})
	define := func() {
		h.apply("tool", `{"name":"double","description":"Doubles a number.","type":"go","readOnly":true}`, "agent", `{"name":"a","type":"ai_human","reactor":"eater","tools":["double"]}`)
	}
	refused := func() error {
		made, err := h.c.Send(t.Context(), "", events.CreateThread{})
		if err != nil {
			t.Fatal(err)
		}
		one, err := client.Sub("thread.react", events.ReactThread{Text: new("hello"), AgentID: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = h.c.Commit(t.Context(), made.ThreadID, []events.SubCommand{one}); !events.HasCode(err, events.QueueFull) {
			t.Errorf("in a commit: %v", err)
		}
		_, err = h.c.Send(t.Context(), made.ThreadID, events.ReactThread{Text: new("hello"), AgentID: "a"})
		return err
	}
	define()
	if x, _ := h.ask("a"); x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, "has used 60 of its 50 tokens of today") {
		t.Errorf("%s: %s", x.Status, x.ErrorText)
	}
	if err := refused(); !errors.Is(err, &events.Error{Code: events.QueueFull}) || !strings.Contains(err.Error(), "midnight UTC") {
		t.Errorf("%v", err)
	}
	other, err := client.Connect(h.url, client.Options{Tenant: "globex", Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	h.c = other
	define()
	if x, answer := h.ask("a"); x.Status != events.ExecutionCompleted || !strings.Contains(answer, "fed") {
		t.Errorf("%s %s: %s", x.Status, x.ErrorText, answer)
	}
	if err := refused(); !errors.Is(err, &events.Error{Code: events.QueueFull}) {
		t.Errorf("%v", err)
	}
}

// A tool that is an ai_human agent may answer in a thread of its own, and its answer is
// the call's result; agents that call themselves this way come to an end.
func TestAgentInAThreadOfItsOwn(t *testing.T) {
	h := start(t, nil)
	h.apply("agent", `{"name":"clerk","type":"ai_human","reactor":"say"}`,
		"tool", `{"name":"ask_clerk","description":"Asks the clerk.","type":"agent","agent":"clerk","ownThread":true}`,
		"agent", `{"name":"boss","type":"ai_human","reactor":"say","tools":["ask_clerk"]}`)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	made, err := h.c.Send(ctx, "", events.CreateThread{AgentID: "boss", UserID: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	x, answer := h.react(ctx, made.ThreadID, "boss")
	if x.Status != events.ExecutionCompleted || !strings.Contains(answer, `"text":"clerk///"`) {
		t.Fatalf("%s %s: %s", x.Status, x.ErrorText, answer)
	}
	fresh, err := h.c.UpToDate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	main, err := client.Read(ctx, fresh, events.GetThread{ThreadID: made.ThreadID})
	if err != nil || main.AgentID != "boss" {
		t.Errorf("the thread is of %q: %v", main.AgentID, err)
	}
	all, err := client.Read(ctx, fresh, events.ListThreads{})
	if err != nil || len(all.Threads) != 2 {
		t.Fatalf("%+v %v", all, err)
	}
	for _, one := range all.Threads {
		if one.UserID != "ann" || one.ID != made.ThreadID && one.MainThreadID != made.ThreadID {
			t.Errorf("%+v", one)
		}
	}
	h.apply("tool", `{"name":"again","description":"Asks itself.","type":"agent","agent":"echo","ownThread":true}`, "agent", `{"name":"echo","type":"ai_human","reactor":"say","tools":["again"]}`)
	if x, answer := h.ask("echo"); x.Status != events.ExecutionCompleted || !strings.Contains(answer, "again") {
		t.Errorf("%s %s: %s", x.Status, x.ErrorText, answer)
	}
	if fresh, err = h.c.UpToDate(ctx); err != nil {
		t.Fatal(err)
	}
	if all, err = client.Read(ctx, fresh, events.ListThreads{}); err != nil || len(all.Threads) > 12 || len(all.Threads) < 5 {
		t.Errorf("%d threads: %v", len(all.Threads), err)
	}
}

// One definition provides the tools of a whole MCP server, with its name as their
// prefix.
func TestWholeServer(t *testing.T) {
	sells := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1.0.0"}, nil)
	for _, name := range []string{"price", "stock", "refund"} {
		mcp.AddTool(sells, &mcp.Tool{Name: name, Description: "Does it."}, func(context.Context, *mcp.CallToolRequest, struct {
			N int64 `json:"n"`
		}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "the " + name}}}, nil, nil
		})
	}
	shop := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sells }, nil))
	defer shop.Close()
	var told []string
	h := start(t, func(c *server.Config) {
		c.EgressAllow = egress.Loopback()
		register := c.Register
		c.Register = func(r *runtime.Registry) error {
			return errors.Join(register(r), r.AddReactor("look", runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
				told = nil
				for _, t := range in.Tools {
					told = append(told, t.Name)
				}
				got := &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(`{"type":"output_text","text":"done"}`)}}}
				if in.Iteration == 0 && len(told) > 0 {
					got.ToolCalls = []runtime.ToolCall{{CallID: "c1", Name: told[0], Arguments: events.JSON(`{"n":1}`)}}
				}
				return got, nil
			})))
		}
	})
	define := func(server string) {
		h.apply("tool", `{"name":"shop","description":"The shop.","type":"mcp","server":{"url":"`+shop.URL+`",`+server+`}}`, "agent", `{"name":"a","type":"ai_human","reactor":"look","tools":["shop"]}`)
	}
	for server, want := range map[string]string{
		`"include":["*"]`: "shop__price shop__refund shop__stock", `"include":["*"],"exclude":["re*"]`: "shop__price shop__stock", `"include":["s*k","refund"]`: "shop__refund shop__stock",
	} {
		define(server)
		x, answer := h.ask("a")
		if got := strings.Join(told, " "); x.Status != events.ExecutionCompleted || got != want || !strings.Contains(answer, "the "+strings.TrimPrefix(told[0], "shop__")) {
			t.Errorf("%s: %q, %s %s: %s", server, got, x.Status, x.ErrorText, answer)
		}
	}
	define(`"include":["gone"]`)
	if x, _ := h.ask("a"); x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, "gone") {
		t.Errorf("%s: %s", x.Status, x.ErrorText)
	}
	for _, wrong := range []string{
		`{"name":"shop","description":"x","type":"mcp","server":{"url":"https://x.example","exclude":["a"]}}`, `{"name":"shop","description":"x","type":"mcp","server":{"url":"https://x.example","include":["*"],"tool":"a"}}`,
		`{"name":"a__b","description":"x","type":"mcp","server":{"url":"https://x.example","include":["*"]}}`, `{"name":"shop","description":"x","type":"mcp","parameters":{"type":"object"},"server":{"url":"https://x.example","include":["*"]}}`,
		`{"name":"shop","description":"x","type":"nats","ownThread":true}`,
	} {
		if _, err := h.c.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{{Kind: events.ToolKind, Definition: events.JSON(wrong)}}}); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
