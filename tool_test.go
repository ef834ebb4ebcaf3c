package skein_test

import (
	"context"
	"testing"
	"time"

	"github.com/skein-threads/skein"
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
