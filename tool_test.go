package skein_test

import (
	"context"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// Each option of a tool sets its field of the spec, and none changes the name.
func TestNewTool_OptionsSetTheSpec(t *testing.T) {
	tool := skein.NewTool("find_order", func(context.Context, struct{}) (string, error) { return "", nil },
		skein.Description("Finds an order."), skein.Manual(), skein.Idempotent(),
		skein.Spec(func(s *skein.ToolSpec) { s.Name, s.Timeout = "other", time.Minute }))
	got := tool.Spec()
	if got.Name != "find_order" || got.Description != "Finds an order." || !got.Manual || !got.Idempotent || got.ReadOnly || got.Timeout != time.Minute {
		t.Errorf("%+v", got)
	}
	if got := skein.NewTool("list", func(context.Context, struct{}) (string, error) { return "", nil }, skein.ReadOnly()).Spec(); !got.ReadOnly || got.Manual {
		t.Errorf("%+v", got)
	}
}

// A tool without a function is refused when it is registered, and does not panic in a call; and so
// is an endpoint.
func TestRegister_NilFunctions(t *testing.T) {
	s := skeintest.Start(t)
	var plain func(context.Context, struct{}) (string, error)
	var inThread func(context.Context, *skein.ToolInput, struct{}) (string, error)
	for name, err := range map[string]error{
		"a tool":              s.Tool(skein.NewTool("a", plain)),
		"a tool with a state": s.Tool(skein.NewThreadTool("b", inThread)),
		"no tool":             s.Tool(nil),
		"a reactor":           s.Reactor("c", nil),
		"an effect":           s.Effect("d", nil),
		"a hook":              s.Hook("e", skein.Hooks{}),
		"a loop policy":       s.Continue("f", nil),
		"an endpoint":         s.Endpoint("g", nil),
		"a defined endpoint":  s.Endpoint("h", api.DefineThreadEndpoint(nil)),
	} {
		if e := events.AsError(err); err == nil || e.Code != events.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}
