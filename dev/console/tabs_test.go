package console_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// order is a server with a conversation about an order: an agent that asked a tool and another
// agent, waits for an approval, and has been forked.
type order struct {
	*skeintest.Server
	t         testing.TB
	client    *client.Client
	thread    string
	execution string
}

// says returns an answer of a model that calls tools.
func says(text string, calls ...events.ToolCall) *skein.Reaction {
	r := skein.Answer(text)
	r.ToolCalls = calls
	r.Usage = &events.Usage{Model: "gpt-5-mini", InputTokens: 812, OutputTokens: 96, TotalTokens: 908}
	return r
}

func call(id, name, arguments string) events.ToolCall {
	return events.ToolCall{CallID: id, Name: name, Arguments: events.JSON(arguments)}
}

func startOrder(t *testing.T, options ...func(*skein.Options)) *order {
	t.Helper()
	s := skeintest.Start(t, append(options, func(o *skein.Options) { o.HTTPListen = "127.0.0.1:0" })...)
	s.Must(s.Tool(skein.NewTool("find_order", func(context.Context, struct {
		Number int `json:"number"`
	}) (map[string]any, error) {
		time.Sleep(40 * time.Millisecond)
		return map[string]any{"number": 42, "status": "lost"}, nil
	}, skein.Description("Finds an order."), skein.ReadOnly())))
	s.Must(s.Tool(skein.NewTool("refund", func(context.Context, struct {
		Number int `json:"number"`
	}) (bool, error) {
		return true, nil
	}, skein.Description("Pays an order back."), skein.Manual())))
	s.Must(s.Reactor("clerk", func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		time.Sleep(30 * time.Millisecond)
		switch in.Iteration {
		case 0:
			return says("I look it up, and ask the carrier.", call("c1", "find_order", `{"number":42}`), call("c2", "ask_carrier", `{"prompt":"Where is parcel 4471?"}`)), nil
		case 1:
			return says("It is lost; I pay it back.", call("c3", "refund", `{"number":42}`)), nil
		}
		return says("The money is on its way."), nil
	}))
	s.Must(s.Reactor("carrier-desk", func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
		time.Sleep(50 * time.Millisecond)
		return says("Lost in <b>Lisbon</b>."), nil
	}))
	o := &order{Server: s, t: t, client: s.Client("acme")}
	define := func(kind events.DefinitionKind, name, body string) events.NewDefinition {
		return events.NewDefinition{Kind: kind, Name: name, Definition: events.JSON(body)}
	}
	_, err := o.client.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		define("tool", "find_order", `{"name":"find_order","type":"go","description":"Finds an order."}`),
		define("tool", "refund", `{"name":"refund","type":"go","description":"Pays an order back.","auto":false}`),
		define("tool", "ask_carrier", `{"name":"ask_carrier","type":"agent","agent":"carrier","ownThread":true,"description":"Asks the carrier."}`),
		define("agent", "carrier", `{"name":"carrier","type":"ai_human","reactor":"carrier-desk"}`),
		define("agent", "support", `{"name":"support","type":"ai_human","reactor":"clerk","tools":["find_order","refund","ask_carrier"]}`),
	}})
	s.Must(err)
	reply, err := o.client.Send(t.Context(), "", events.CreateThread{Key: "order:42", Title: "Order 42 <never> came", AgentID: "support"})
	s.Must(err)
	o.thread = reply.ThreadID
	reply, err = o.client.Send(t.Context(), o.thread, events.ReactThread{Text: new("Where is my order 42?")})
	s.Must(err)
	o.execution = o.waitFor(events.ApprovalRequestedType, reply.Version).Correlation
	o.waitFor(events.RunParkedType, reply.Version)
	reply, err = o.client.Send(t.Context(), o.thread, events.ForkThread{MessageIndex: new(int64(0))})
	s.Must(err)
	o.settle(reply.Seq)
	return o
}

// settle waits until the read models show a commit: pages show what these show.
func (o *order) settle(seq int64) {
	o.t.Helper()
	shown := o.client.WithMinSeq(seq)
	_, err := client.Read(o.t.Context(), shown, events.GetThread{ThreadID: o.thread})
	o.Must(err)
	_, err = client.Read(o.t.Context(), shown, events.ListItems{ThreadID: o.thread})
	o.Must(err)
	_, err = client.Read(o.t.Context(), shown, events.ListExecutions{ThreadID: o.thread})
	o.Must(err)
	_, err = client.Read(o.t.Context(), shown, events.ListRelationships{ThreadID: o.thread})
	o.Must(err)
	_, err = client.Read(o.t.Context(), shown, events.ListThreads{}) // lists of threads are followed by themselves
	o.Must(err)
}

// waitFor returns the first event of a type after a version of the thread.
func (o *order) waitFor(kind events.Type, after int64) events.Event {
	o.t.Helper()
	line, err := o.client.Timeline(o.t.Context(), client.SubscribeOptions{Thread: o.thread, From: client.Start(), Types: []string{string(kind)}})
	o.Must(err)
	defer line.Close()
	for e, err := range line.All(o.t.Context()) {
		o.Must(err)
		if e.Version > after {
			return e.Event
		}
	}
	o.t.Fatalf("there was no %s", kind)
	return events.Event{}
}

// get returns a page of the thread, whose status must be 200.
func (o *order) get(path string) string {
	o.t.Helper()
	status, page := o.ask("acme", "/console/threads/"+o.thread+path)
	if status != http.StatusOK {
		o.t.Fatalf("%s: %d %.2000s", path, status, page)
	}
	if got := regexp.MustCompile(`(?i)<[^>]+ (style|on[a-z]+)=|<style|<script[^>]*>[^<]`).FindString(page); got != "" {
		o.t.Errorf("%s has %s, which the content security policy forbids", path, got)
	}
	if dir := os.Getenv("SKEIN_PAGES"); dir != "" {
		o.Must(os.WriteFile(dir+"/"+strings.NewReplacer("/", "_", "?", "_", "=", "_").Replace(o.t.Name()+path)+".html", []byte(page), 0o644))
	}
	return page
}

func (o *order) ask(tenant, path string) (int, string) {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, o.Addresses().HTTP+path, nil)
	o.Must(err)
	req.Header.Set("Skein-Tenant", tenant)
	r, err := http.DefaultClient.Do(req)
	o.Must(err)
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	o.Must(err)
	return r.StatusCode, string(raw)
}

// has checks that a page has these texts, and none of those after "not".
func has(t testing.TB, page string, texts ...string) {
	t.Helper()
	wanted := true
	for _, text := range texts {
		if text == "not" {
			wanted = false
		} else if strings.Contains(page, text) != wanted {
			t.Errorf("has %q: %v, want %v, in %.200s", text, !wanted, wanted, page)
		}
	}
}

func TestTabs(t *testing.T) {
	t.Parallel()
	o := startOrder(t, func(o *skein.Options) { o.Prices = []string{"gpt-5-mini*=0.25/2"} })
	t.Run("Timeline", func(t *testing.T) { timeline(t, o) })
	t.Run("Run", func(t *testing.T) { run(t, o) })
	t.Run("Family", func(t *testing.T) { family(t, o) })
	t.Run("State", func(t *testing.T) { state(t, o) })
	t.Run("Audit", func(t *testing.T) { audit(t, o) })
	t.Run("Share", func(t *testing.T) { sharedCalls(t, o) })
	t.Run("OtherTenant", func(t *testing.T) {
		for _, tab := range []string{"/timeline", "/run", "/family", "/state", "/audit?verify=now", "/share"} {
			if status, page := o.ask("other", "/console/threads/"+o.thread+tab); status != http.StatusNotFound || strings.Contains(page, "Order 42") {
				t.Errorf("%s of another tenant: %d", tab, status)
			}
		}
	})
}

// The timeline shows each event with what caused it, can be filtered, and at an earlier version
// nothing that came later.
func timeline(t *testing.T, o *order) {
	page := o.get("/timeline")
	has(t, page, `id="v1"`, "thread.created", "approval.requested", "led to", `"specversion": "1.0"`, `<a href="#v`, "not", "Order 42 <never>")
	has(t, o.get("/timeline?type=approval"), "approval.requested", "not", "step.created")
	has(t, o.get("/timeline?at=3"), `id="v3"`, "not", `id="v4"`)
	has(t, o.get("/timeline?before=3"), `id="v2"`, "Newest events", "not", `id="v3"`)
	has(t, o.get("/timeline?type=%3Cscript%3E"), "No such events", "not", "<script>")
}

// The waterfall has the run's steps, calls and waits, and the run of the other agent inside.
func run(t *testing.T, o *order) {
	page := o.get("/run")
	has(t, page, "step 1", "step 2", "find_order", "another thread", "approval of refund", ">support</", ">carrier</a>", "gpt-5-mini", "812", `class="k-wait lasts"`, "running for",
		`<td class="num">0.0004</td>`, `<span class="quiet">cost</span> 0.0008`)
	has(t, o.get("/run?at=2"), "Nothing has run here")
	early := o.waitFor(events.StepCreatedType, 0).Version
	has(t, o.get("/run?at="+strconv.FormatInt(early, 10)), "step 1", "not", "step 2", "approval of refund")
}

func family(t *testing.T, o *order) {
	page := o.get("/family")
	has(t, page, "Forked: Order 42", "r-fork", "r-subagent", "carrier", `class="node s-streaming here"`, "As a list", "not", "<never>")
	has(t, o.get("/family?at=1"), "Order 42", "not", "Forked: Order 42")
}

func state(t *testing.T, o *order) {
	has(t, o.get("/state"), "Thread", "&#34;title&#34;: &#34;Order 42", "&#34;status&#34;: &#34;streaming&#34;", "the default one")
	has(t, o.get("/state?from=1"), `class="ins"`, `class="del"`, "What differs between version 1 and")
	has(t, o.get("/state?at=1"), "&#34;version&#34;: 1", "not", "&#34;run&#34;")
	has(t, o.get("/state?from=x"), "it takes a version of the thread", "not", "&#34;title&#34;")
}

func audit(t *testing.T, o *order) {
	has(t, o.get("/audit"), "Verify this thread now", "desk", "thread.created", "not", "Nothing is wrong")
	has(t, o.get("/audit?verify=now"), "Nothing is wrong", "events were")
	has(t, o.get("/audit?at=1"), "thread.created", "not", "step.created")
}
