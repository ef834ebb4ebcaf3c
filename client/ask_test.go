package client_test

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// startAgent starts a server with an agent that calls a tool before it answers, and fails on
// request.
func startAgent(t *testing.T) *client.Client {
	t.Helper()
	s, err := server.Start(t.Context(), server.Config{
		Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true,
		Register: func(r *runtime.Registry) error {
			double, err := runtime.DefineTool(runtime.ToolSpec{Name: "double", Description: "Doubles."}, func(ctx context.Context, in *runtime.ToolInput, a struct {
				N int64 `json:"n"`
			}) (int64, error) {
				meanwhile := "another user says this during the run"
				_, err := in.State.InjectMessage(ctx, events.AddMessage{Role: events.FromSystem, Content: &meanwhile})
				return 2 * a.N, err
			})
			return errors.Join(err, r.AddTool(double), r.AddReactor("clerk", transcript.Chosen(func(in *runtime.StepInput) ([]transcript.Step, error) {
				if strings.Contains(string(in.Items[len(in.Items)-1].Content), "fail") {
					return nil, errors.New("the clerk is out")
				}
				return []transcript.Step{transcript.Text("I look.", runtime.ToolCall{CallID: "c-" + in.ExecutionID, Name: "double", Arguments: events.JSON(`{"n":21}`)}), transcript.Text("It is 42.")}, nil
			})))
		},
	}, zerolog.Nop())
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
	_, err = c.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.ToolKind, Definition: events.JSON(`{"name":"double","description":"Doubles a number.","type":"go"}`)},
		{Kind: events.AgentKind, Definition: events.JSON(`{"name":"desk","type":"ai_human","reactor":"clerk","tools":["double"]}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAsk_ReturnsTextAndItems(t *testing.T) {
	t.Parallel()
	c := startAgent(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if _, err := c.Send(ctx, "", events.CreateThread{Key: "desk/1", AgentID: "desk"}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // earlier messages are not part of the second answer
		a, err := c.Ask(ctx, "key:desk/1", `Twice "21"?`)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, item := range a.Items {
			kinds = append(kinds, string(item.Type))
		}
		if a.Text != "I look.\n\nIt is 42." || a.Execution.Status != events.ExecutionCompleted || strings.Join(kinds, " ") != "message action_execute action_result message" { // what another says stands before the second message
			t.Errorf("%q, %v", a.Text, kinds)
		}
	}
	var failed *client.RunFailedError
	if _, err := c.Ask(ctx, "key:desk/1", "fail"); !errors.As(err, &failed) || !strings.Contains(failed.Text, "the clerk is out") {
		t.Errorf("%v", err)
	}
	if _, err := c.Ask(ctx, "key:nowhere", "hello"); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("%v", err)
	}
}

// A json.RawMessage of the standard library is accepted wherever a value is written as
// JSON.
func TestRawMessage_AcceptedAsIs(t *testing.T) {
	t.Parallel()
	c := startAgent(t)
	raw := stdjson.RawMessage(`{"title":"Orders","metadata":{"n":1.50}}`)
	reply, err := c.Do(t.Context(), "thread.create", client.Request{Data: raw})
	if err != nil {
		t.Fatal(err)
	}
	if made, err := client.Read(t.Context(), c.WithMinSeq(reply.Seq), events.GetThread{ThreadID: reply.ThreadID}); err != nil || made.Title != "Orders" || string(made.Metadata) != `{"n":1.50}` {
		t.Errorf("%+v %v", made, err)
	}
	if got, err := client.Arguments(stdjson.RawMessage(`{"n": 21}`)); err != nil || string(got) != `{"n":21}` {
		t.Errorf("%s %v", got, err)
	}
	if _, err := c.Query(t.Context(), "thread.list", stdjson.RawMessage(`{"limit":1}`)); err != nil {
		t.Error(err)
	}
}

// Chunks are encoded with names in camelCase, like everything else.
func TestChunk_EncodesInCamelCase(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(client.Chunk{ChunkEmitted: events.ChunkEmitted{ExecutionID: "exe_1", Attempt: 1, Type: "finish"}, Time: time.Unix(0, 0).UTC(), Derived: true})
	if want := `{"executionId":"exe_1","index":0,"attempt":1,"type":"finish","time":"1970-01-01T00:00:00Z","derived":true}`; err != nil || string(raw) != want {
		t.Errorf("%s %v, not %s", raw, err, want)
	}
}
