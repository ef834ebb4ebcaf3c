package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// A tool whose patterns would cost too much is refused where it is defined.
func TestDefinition_RefusesLargePatterns(t *testing.T) {
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var pattern strings.Builder
	for i := range 450 {
		fmt.Fprintf(&pattern, "%c.{999}|", rune(0x100+i))
	}
	apply := func(pattern string) error {
		_, err := v.Definition(events.NewDefinition{Kind: events.ToolKind, Name: "t", Definition: events.JSON(
			`{"type":"nats","description":"d","parameters":{"type":"object","properties":{"x":{"type":"string","pattern":"` + pattern + `"}}}}`)})
		return err
	}
	if err := apply(pattern.String()); err == nil || !strings.Contains(err.Error(), "too large") || events.AsError(err).Details.Path != "/definition/parameters" {
		t.Errorf("%v", err)
	}
	if err := apply("^[a-z]{1,64}$"); err != nil {
		t.Error(err)
	}
}
