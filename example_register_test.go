package skein_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// exampleServer returns a Skein in this process with a client, and a function that stops it.
func exampleServer() (s *skein.Server, c *client.Client, stop func()) {
	dir, err := os.MkdirTemp("", "skein")
	check(err)
	s, err = skein.Start(context.Background(), skein.Options{Store: dir, NATSListen: skein.None, HTTPListen: skein.None})
	check(err)
	c, err = s.Client("acme")
	check(err)
	return s, c, func() {
		check(s.Stop(context.Background()))
		check(os.RemoveAll(dir))
	}
}

// A tool in Go: the schema of its arguments is that of their type.
func ExampleNewTool() {
	s, _, stop := exampleServer()
	defer stop()
	type order struct {
		Number int `json:"number" jsonschema:"the number on the receipt"`
	}
	find := skein.NewTool("find_order", func(_ context.Context, o order) (string, error) {
		return fmt.Sprintf("order %d is on its way", o.Number), nil
	}, skein.Description("Finds an order."), skein.ReadOnly())
	check(s.Tool(find))
	fmt.Println(find.Spec().Name, string(find.Spec().Parameters))
	// Output: find_order {"type":"object","properties":{"number":{"type":"integer","description":"the number on the receipt"}},"required":["number"],"additionalProperties":false}
}

// An effect happens later, also when the process was restarted meanwhile.
func ExampleServer_Effect() {
	s, c, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	reminded := make(chan string, 1)
	check(s.Effect("remind", func(_ context.Context, in *skein.EffectInput) error {
		reminded <- string(in.Args)
		return nil
	}))
	thread, err := c.Send(ctx, "", events.CreateThread{})
	check(err)
	_, err = c.Send(ctx, thread.ThreadID, events.ScheduleEffect{Name: "remind", Args: events.JSON(`{"of":"tea"}`)})
	check(err)
	fmt.Println(<-reminded)
	// Output: {"of":"tea"}
}

// Hooks see runs, steps and calls, and may change them.
func ExampleServer_Hook() {
	s, c, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	check(s.Reactor("echo", func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		return skein.Answer(in.LastText(events.User)), nil
	}))
	check(s.Hook("audit", skein.Hooks{AfterRun: func(_ context.Context, st skein.ThreadState, failed string) {
		fmt.Println("the run of", st.AgentID(), "has ended:", failed == "")
	}}))
	_, err := c.Apply(ctx, events.AgentDefinition{Name: "echo", Type: events.AIHuman, Reactor: "echo", Hooks: []string{"audit"}})
	check(err)
	thread, err := c.Send(ctx, "", events.CreateThread{AgentID: "echo"})
	check(err)
	answer, err := c.Ask(ctx, thread.ThreadID, "hello")
	check(err)
	check(s.WaitIdle(ctx))
	fmt.Println(answer.Text)
	// Output:
	// the run of echo has ended: true
	// hello
}

// A thread endpoint answers HTTP requests about one thread.
func ExampleServer_Endpoint() {
	s, c, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	check(s.Endpoint("greet", api.DefineThreadEndpoint(func(w http.ResponseWriter, _ *http.Request, st *client.ThreadState) error {
		_, err := fmt.Fprintln(w, "hello,", st.ThreadID() != "")
		return err
	})))
	thread, err := c.Send(ctx, "", events.CreateThread{})
	check(err)

	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/threads/"+thread.ThreadID+"/greet", http.NoBody)
	req.Header.Set("Skein-Tenant", "acme")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, req)
	fmt.Print(w.Code, " ", w.Body)
	// Output: 200 hello, true
}

// A reactor answers for the agents whose definition names it, and for an undefined agent of its name.
func ExampleServer_Reactor() {
	s, c, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	check(s.Reactor("count", func(_ context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		said := fmt.Sprint(len(in.LastText(events.User)), " characters")
		// To those who read the run's chunks now:
		out.Chunk(skein.Chunk{Type: events.ChunkTextDelta, Data: events.JSON(`{"id":"1","delta":` + string(events.Quote(said)) + `}`)})
		return skein.Answer(said), nil
	}))
	thread, err := c.Send(ctx, "", events.CreateThread{AgentID: "count"})
	check(err)
	answer, err := c.Ask(ctx, thread.ThreadID, "hello")
	check(err)
	fmt.Println(answer.Text)
	// Output: 5 characters
}
