package remote_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model/responses"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/runtime/transcript"
)

func shout(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
	text := strings.ToUpper(transcript.Trigger(in)) + "!" // call the model here, with ctx
	part, err := json.Marshal(map[string]string{"type": events.OutputText, "text": text})
	if err != nil {
		return nil, err
	}
	return &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{part}}}, nil
}

type adder struct{}

func (adder) Spec() runtime.ToolSpec {
	return runtime.ToolSpec{
		Name: "add", Description: "Adds two numbers.", ReadOnly: true,
		Parameters: events.JSON(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}`),
	}
}

func (adder) Call(_ context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
	var n struct {
		A int64 `json:"a"`
		B int64 `json:"b"`
	}
	if err := json.Unmarshal(in.Arguments, &n); err != nil {
		return runtime.Failed("a and b are whole numbers"), nil
	}
	return runtime.Done(strconv.AppendInt(nil, n.A+n.B, 10)), nil
}

// serveBoth makes a process the reactor and the tool, until ctx ends.
func serveBoth(ctx context.Context, nc *nats.Conn) error {
	names := events.DefaultNames()
	reactor, err := remote.ServeReactor(nc, names, "shout", runtime.ReactorFunc(shout))
	if err != nil {
		return err
	}
	tool, err := remote.ServeTool(nc, names, adder{})
	if err != nil {
		return err
	}
	<-ctx.Done()
	_ = reactor.Close(context.Background()) // finishes the calls in flight
	return tool.Close(context.Background())
}

// A reactor and a tool in a process of their own: EK-102, SA-66.
func Example() {
	nc, stop, err := exampleServer()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- serveBoth(ctx, nc) }()

	in := &runtime.StepInput{Items: []events.Item{{Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"hey you"}]`)}}}
	for { // until it has subscribed
		reactor, _ := remote.Reactor(nc, events.DefaultNames(), "shout") // the name is valid
		if reaction, err := reactor.React(ctx, in, nil); err == nil {
			fmt.Println(string(jsontext.Value(reaction.AssistantEvent.Content[0]).Kind()), len(reaction.AssistantEvent.Content))
			fmt.Println(strings.Contains(string(reaction.AssistantEvent.Content[0]), `"HEY YOU!"`))
			break
		}
	}
	for {
		tool, _ := remote.Tool(nc, events.DefaultNames(), adder{}.Spec()) // the name is valid
		if result, err := tool.Call(ctx, &runtime.ToolInput{Arguments: events.JSON(`{"a":40,"b":2}`)}); err == nil {
			fmt.Println(result.Status, string(result.Result))
			break
		}
	}
	cancel()
	fmt.Println(<-done)
	// Output:
	// { 1
	// true
	// success 42
	// <nil>
}

// The endpoint that the environment names is a reactor.
func Example_openAI() {
	reactor, err := responses.New(responses.FromEnv(os.Getenv))
	fmt.Println(reactor != nil, err)
	// Output: true <nil>
}

// A reactor and a tool are functions, and can be called as such.
func Example_inProcess() {
	in := &runtime.StepInput{Items: []events.Item{{Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"hey"}]`)}}}
	reaction, err := runtime.ReactorFunc(shout).React(context.Background(), in, nil)
	fmt.Println(strings.Contains(string(reaction.AssistantEvent.Content[0]), `"HEY!"`), err)
	result, err := adder{}.Call(context.Background(), &runtime.ToolInput{Arguments: events.JSON(`{"a":1,"b":"x"}`)})
	fmt.Println(result.Error, err)
	// Output:
	// true <nil>
	// a and b are whole numbers <nil>
}

// exampleServer returns a connection to a Skein in this process, and a function that ends
// both. Your program calls nats.Connect with the URL of its server.
func exampleServer() (*nats.Conn, func(), error) {
	dir, err := os.MkdirTemp("", "skein-example")
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	s, err := skein.Start(ctx, skein.Options{Store: dir, NATSListen: "127.0.0.1:0", HTTPListen: skein.None, Volatile: true})
	if err != nil {
		return nil, nil, err
	}
	nc, err := nats.Connect(s.Addresses().NATS)
	if err != nil {
		_ = s.Stop(ctx)
		return nil, nil, err
	}
	return nc, func() {
		nc.Close()
		_ = s.Stop(ctx)
		_ = os.RemoveAll(dir)
	}, nil
}
