package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// shop is an MCP server on HTTP that comes and goes, at one address.
type shop struct {
	t       *testing.T
	address string
	calls   atomic.Int64 // of its tool
	asked   atomic.Int64 // times that the reactor "buyer" was asked
	refuses atomic.Bool  // with 401
	web     *httptest.Server
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, address: natstest.FreeAddress(t)}
	t.Cleanup(s.close)
	return s
}

// open opens the shop.
func (s *shop) open() {
	s.t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "price", Description: "A price."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		s.calls.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "5 euros"}}}, nil, nil
	})
	web := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s.web = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.refuses.Load() {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		web.ServeHTTP(w, r)
	}))
	s.web.Listener.Close()
	listener, err := new(net.ListenConfig).Listen(s.t.Context(), "tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.web.Listener = listener
	s.web.Start()
}

func (s *shop) close() {
	if s.web != nil {
		s.web.CloseClientConnections()
		s.web.Close()
		s.web = nil
	}
}

// desk permits the shop, and has the reactor "buyer", which asks for a price and then answers.
func (s *shop) desk(c *server.Config) {
	c.EgressAllow = []string{"127.0.0.1"}
	own := c.Register
	c.Register = func(r *runtime.Registry) error {
		return errors.Join(own(r), r.AddReactor("buyer", transcript.Chosen(func(in *runtime.StepInput) ([]transcript.Step, error) {
			s.asked.Add(1)
			return []transcript.Step{transcript.Text("I ask.", runtime.ToolCall{CallID: "c1", Name: in.Tools[0].Name, Arguments: events.JSON(`{}`)}), transcript.Text("done")}, nil
		})))
	}
}

// define defines the shop as a whole server and as one tool, each with more of its definition, and
// an agent for each.
func (s *shop) define(d *desk, more string) {
	d.t.Helper()
	url := `"type":"mcp","description":"A shop.","server":{"url":"http://` + s.address + `/mcp"`
	d.apply("tool", `{"name":"shop",`+url+`,"include":["*"]}`+more+`}`, "tool", `{"name":"price",`+url+`}`+more+`}`,
		"agent", `{"name":"whole","type":"ai_human","reactor":"buyer","tools":["shop"]}`,
		"agent", `{"name":"single","type":"ai_human","reactor":"buyer","tools":["price"]}`)
}

// lists waits until the tenant's list of runs shows what a run waits for.
func (d *desk) lists(reply *events.Reply, name string) {
	d.t.Helper()
	if w := d.waits(reply, events.RunWaitsWorker); w.Name != name || w.Worker != events.ToolWorker || w.CallID != "" {
		d.t.Errorf("the list shows that it waits for %+v", w)
	}
}

// completes checks that a run has asked for a price, once, and answered.
func (d *desk) completes(s *shop, reply *events.Reply, calls int64) {
	d.t.Helper()
	if x := d.ends(reply); x.Status != events.ExecutionCompleted || len(x.WaitingFor) > 0 {
		d.t.Errorf("the run ended %s: %s; it waits for %v", x.Status, x.ErrorText, x.WaitingFor)
	}
	if got := result(d.t, d.c, reply.ThreadID); !strings.Contains(got, "5 euros") || s.calls.Load() != calls {
		d.t.Errorf("%d calls, which came to %s", s.calls.Load(), got)
	}
}

// A run whose agent needs an MCP server that is down waits for it without a place, and its model
// is not asked meanwhile; it goes on when the server is back.
func TestMCP_RunWaitsForServerThatIsDown(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	d := newDesk(t, s.desk, func(c *server.Config) { c.Workers = 1 })
	s.define(d, "")
	whole := d.react(d.thread("whole"), events.ReactThread{Text: new("hello")})
	d.parks(whole)
	d.lists(whole, "mcp:shop")
	single := d.react(d.thread("single"), events.ReactThread{Text: new("hello")})
	d.parks(single)
	d.lists(single, "mcp:price")
	told, _ := d.watch(single)
	d.until(told, waitsForWorker("mcp:price"))
	other := d.react(d.thread("slow"), events.ReactThread{Text: new("hello")})
	d.answer <- "done"
	if x := d.ends(other); x.Status != events.ExecutionCompleted {
		t.Errorf("the other run ended %s: %s", x.Status, x.ErrorText)
	}
	if x := must(client.Read(d.ctx, must(d.c.UpToDate(d.ctx))(t), events.GetExecution{ThreadID: whole.ThreadID, ExecutionID: whole.Result.ExecutionID}))(t); s.asked.Load() != 0 || x.StepCount != 0 {
		t.Errorf("while it waits the model was asked %d times, in %d steps", s.asked.Load(), x.StepCount)
	}
	s.open()
	d.ends(whole)
	d.completes(s, single, 2)
	d.completes(s, whole, 2)
}

// A run that waits for an MCP server goes on waiting after Skein was restarted, and one that was in
// the middle of its work begins to wait: a call that was approved meanwhile is made once, and nobody
// is asked again.
func TestMCP_RestartedWhileRunsWait(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	store := t.TempDir()
	keep := func(c *server.Config) { c.Store, c.Volatile = store, false }
	d := newDesk(t, s.desk, keep)
	s.define(d, `,"auto":false`)
	s.open()
	approved := d.react(d.thread("single"), events.ReactThread{Text: new("hello")})
	d.waits(approved, events.RunWaitsApproval)
	s.close()
	waits := d.react(d.thread("whole"), events.ReactThread{Text: new("hello")})
	d.parks(waits)
	d.stop()

	d = newDesk(t, s.desk, keep)
	must(d.c.Send(d.ctx, approved.ThreadID, events.GrantApproval{CallID: "c1"}))(t)
	d.lists(approved, "mcp:price")
	d.lists(waits, "mcp:shop")
	s.open()
	d.completes(s, approved, 1)
	d.waits(waits, events.RunWaitsApproval)
	must(d.c.Send(d.ctx, waits.ThreadID, events.GrantApproval{CallID: "c1"}))(t)
	d.completes(s, waits, 2)
	if got := s.asked.Load(); got != 4 {
		t.Errorf("the model was asked %d times", got)
	}
}

// The wait ends with the time that the tool's definition has, and the error says what to do. A
// definition with a time of 0 fails at once, as does a server that answers and refuses.
func TestMCP_WaitIsOver(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	d := newDesk(t, s.desk)
	fails := func(reply *events.Reply, want string) {
		t.Helper()
		x := d.ends(reply)
		if x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, want) || !strings.Contains(x.ErrorText, "MCP server") {
			t.Errorf("it ended %s: %s", x.Status, x.ErrorText)
		}
		if s.asked.Load() != 0 {
			t.Error("the model was asked")
		}
	}
	s.define(d, `,"workerWaitMs":2500`)
	over := d.react(d.thread("whole"), events.ReactThread{Text: new("hello")})
	d.parks(over)
	fails(over, "could not be reached for ")
	fails(over, "start the server, or change the tool's definition, and retry the run")
	s.define(d, `,"workerWaitMs":0`)
	fails(d.react(d.thread("whole"), events.ReactThread{Text: new("hello")}), "could not be reached: tool shop: ")
	s.define(d, "")
	s.refuses.Store(true)
	waits := d.react(d.thread("single"), events.ReactThread{Text: new("hello")})
	d.parks(waits)
	s.open()
	fails(waits, "does not answer as an MCP server does") // it is back, and refuses
	fails(d.react(d.thread("whole"), events.ReactThread{Text: new("hello")}), "does not answer as an MCP server does")
	s.refuses.Store(false)
	d.apply("tool", `{"name":"cost","type":"mcp","description":"A shop.","server":{"url":"http://`+s.address+`/mcp"}}`, "agent", `{"name":"unknown","type":"ai_human","reactor":"buyer","tools":["cost"]}`)
	fails(d.react(d.thread("unknown"), events.ReactThread{Text: new("hello")}), "tool of the MCP server not found: cost")
}

// A run that waits for an MCP server ends when it is stopped, and goes on without the server if its
// definition no longer names it.
func TestMCP_WaitIsEndedByPeople(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	d := newDesk(t, s.desk)
	s.define(d, "")
	stopped := d.react(d.thread("whole"), events.ReactThread{Text: new("hello")})
	d.parks(stopped)
	must(d.c.Send(d.ctx, stopped.ThreadID, events.StopRun{}))(t)
	if x := d.ends(stopped); x.Status != events.ExecutionCompleted || !x.Stopped {
		t.Errorf("a run that was stopped ended %s: %s", x.Status, x.ErrorText)
	}
	freed := d.react(d.thread("whole"), events.ReactThread{Text: new("hello")})
	d.parks(freed)
	d.apply("tool", `{"name":"shop","type":"nats","description":"A shop.","workerWaitMs":0}`)
	x := d.ends(freed)
	if got := result(t, d.c, freed.ThreadID); x.Status != events.ExecutionCompleted || !strings.Contains(got, "no process answers") {
		t.Errorf("a run whose server is no longer named ended %s %s, and its call came to %s", x.Status, x.ErrorText, got)
	}
}

// An agent that takes the thread over in the middle of a run waits for its MCP server, too, before
// its first step.
func TestMCP_AgentTakesOverWhileItsServerIsDown(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var steps atomic.Int64
	d := newDesk(t, s.desk, func(c *server.Config) {
		own := c.Register
		c.Register = func(r *runtime.Registry) error {
			return errors.Join(own(r), r.AddReactor("porter", transcript.Fixed(transcript.Text("Over.", runtime.ToolCall{CallID: "p1", Name: "ask_whole", Arguments: events.JSON(`{}`)}))),
				r.AddReactor("late", runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
					out := runtime.Answer("done")
					if steps.Add(1) == 1 {
						out.ToolCalls = []runtime.ToolCall{{CallID: "c1", Name: in.Tools[0].Name, Arguments: events.JSON(`{}`)}}
					}
					return out, nil
				})))
		}
	})
	s.define(d, "")
	d.apply("agent", `{"name":"whole","type":"ai_human","reactor":"late","tools":["shop"]}`, "tool", `{"name":"ask_whole","type":"agent","description":"Asks.","agent":"whole"}`,
		"agent", `{"name":"front","type":"ai_human","reactor":"porter","tools":["ask_whole"]}`)
	reply := d.react(d.thread("front"), events.ReactThread{Text: new("hello")})
	d.parks(reply)
	d.lists(reply, "mcp:shop")
	if steps.Load() != 0 {
		t.Error("the agent was asked before its server was back")
	}
	s.open()
	if x := d.ends(reply); x.Status != events.ExecutionCompleted || x.AgentID != "whole" || s.calls.Load() != 1 || steps.Load() != 2 {
		t.Errorf("it ended %s (%s) with agent %s after %d calls and %d steps", x.Status, x.ErrorText, x.AgentID, s.calls.Load(), steps.Load())
	}
}

// An agent that names very many servers which accept connections and never answer has few at the
// same time.
func TestMCP_ManySilentServersOfAnAgent(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	var open atomic.Int64
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			context.AfterFunc(t.Context(), func() { conn.Close() })
		}
	}()
	s := newShop(t)
	d := newDesk(t, s.desk)
	a := events.AgentDefinition{Name: "many", Type: events.AIHuman, Reactor: "buyer"}
	for i := range 60 {
		name := fmt.Sprint("silent", i)
		a.Tools = append(a.Tools, name)
		d.apply("tool", fmt.Sprintf(`{"name":%q,"type":"mcp","description":"Silent.","server":{"url":"http://%s/%d"}}`, name, silent.Addr(), i))
	}
	d.apply("agent", string(must(json.Marshal(a))(t)))
	reply := d.react(d.thread("many"), events.ReactThread{Text: new("hello")})
	d.parks(reply)
	x := must(client.Read(d.ctx, must(d.c.UpToDate(d.ctx))(t), events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID}))(t)
	if len(x.WaitingFor) != len(a.Tools) {
		t.Errorf("it waits for %d", len(x.WaitingFor))
	}
	if n := open.Load(); n == 0 || n > 16 {
		t.Errorf("%d connections at the same time", n)
	}
}
