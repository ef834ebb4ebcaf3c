package happened

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// Every event of the catalog has a line that controls nothing, whatever it contains.
func TestLine_EveryEvent(t *testing.T) {
	for _, row := range events.Catalog() {
		e := events.Event{Type: row.Type, Data: row.Example}
		if got := Line(&e); strings.ContainsAny(got, "\n\x1b") {
			t.Errorf("%s: %q", row.Type, got)
		}
	}
	e := events.Event{Data: events.ThreadCreated{Title: "\x1b[31mred\u202e\nnext " + strings.Repeat("x", 200)}}
	if got := Line(&e); !strings.HasPrefix(got, "[31mred next xxx") || len([]rune(got)) != Width {
		t.Errorf("%q", got)
	}
}
