package operator

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// DemoAgent is the agent of the demo. It needs no model: its reactors are functions.
const DemoAgent = "support"

// pace is how long the agent thinks about a word.
const pace = 25 * time.Millisecond

// order is the arguments of the tool find_order.
type order struct {
	ID int64 `json:"id"`
}

// refund is what the tool refund is told.
type refund struct {
	Order  int64   `json:"order"`
	Amount float64 `json:"amount"`
}

// RegisterDemo registers the agent and its tools.
func RegisterDemo(r *runtime.Registry) error {
	find, err := runtime.DefineTool(runtime.ToolSpec{Name: "find_order", Description: "Finds an order by its number.", ReadOnly: true},
		func(_ context.Context, _ *runtime.ToolInput, o order) (map[string]any, error) {
			return map[string]any{"id": o.ID, "status": "shipped", "carrier": "Parcel Express", "expected": "tomorrow", "items": []string{"Kettle", "Two cups"}}, nil
		})
	if err != nil {
		return err
	}
	pay, err := runtime.DefineTool(runtime.ToolSpec{Name: "refund", Description: "Refunds an order.", Manual: true, Idempotent: true},
		func(_ context.Context, _ *runtime.ToolInput, o refund) (map[string]any, error) {
			return map[string]any{"order": o.Order, "refunded": o.Amount, "currency": "EUR"}, nil
		})
	if err != nil {
		return err
	}
	return errors.Join(r.AddTool(find), r.AddTool(pay), r.AddReactor(DemoAgent, runtime.ReactorFunc(react)))
}

// react answers as its scripts say.
func react(ctx context.Context, in *runtime.StepInput, s runtime.Stream) (*runtime.Reaction, error) {
	said := strings.ToLower(in.LastText(events.User))
	switch {
	case strings.Contains(said, "warehouse"):
		return nil, errors.New("the warehouse's inventory service answered 502 Bad Gateway")
	case in.Iteration > 0:
		return stream(ctx, s, after(said))
	case strings.Contains(said, "refund"):
		return call("refund", `{"order":42,"amount":39.9}`, "A refund over 20 EUR needs a person's consent. I ask for it."), nil
	case strings.Contains(said, "order"):
		return call("find_order", `{"id":42}`, "They want to know where an order is. The number is 42, so I look it up."), nil
	}
	return stream(ctx, s, guide)
}

func after(said string) string {
	if strings.Contains(said, "refund") {
		return "The refund of **39.90 EUR** is on its way. It takes two to three days to arrive."
	}
	return "Your order 42 is **shipped**:\n\n| what | value |\n|---|---|\n| Carrier | Parcel Express |\n| Expected | tomorrow |\n| Items | Kettle, two cups |\n\nI can tell you when it arrives, if you like."
}

const guide = "Here is how to follow a thread from a program:\n\n1. Open the stream of its events.\n2. Note the `id` of what you have seen.\n3. After a lost connection, resume with it.\n\n```go\nfor e, err := range timeline.All(ctx) {\n\tif err != nil {\n\t\treturn err\n\t}\n\tfmt.Println(e.Version, e.Type)\n}\n```\n\nNothing is missed, and nothing comes twice."

// call asks for a call of a tool.
func call(tool, arguments, thought string) *runtime.Reaction {
	reasoning, _ := json.Marshal(map[string]string{"type": events.Reasoning, "text": thought}) // cannot fail
	return &runtime.Reaction{
		AssistantEvent: runtime.Assistant{Content: []events.JSON{reasoning}},
		ToolCalls:      []runtime.ToolCall{{CallID: "call_" + tool, Name: tool, Arguments: events.JSON(arguments)}},
		Usage:          used(120, 30),
	}
}

// stream says a text word by word.
func stream(ctx context.Context, s runtime.Stream, text string) (*runtime.Reaction, error) {
	for word := range strings.SplitAfterSeq(text, " ") {
		data, err := json.Marshal(map[string]string{"id": "text", "delta": word})
		if err != nil {
			return nil, err
		}
		s.Chunk(runtime.Chunk{Type: runtime.ChunkTextDelta, Data: data})
		select {
		case <-time.After(pace):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	answer := runtime.Answer(text)
	answer.Usage = used(180, int64(len(text)/4))
	return answer, nil
}

// used is what a model of that size would have used.
func used(in, out int64) *runtime.Usage {
	return &runtime.Usage{Provider: "demo", Model: "script", InputTokens: in, OutputTokens: out, TotalTokens: in + out}
}
