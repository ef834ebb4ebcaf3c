package eventtext

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

// What happens to files and effects is named.
func TestLine_OutsideTheConversation(t *testing.T) {
	for want, data := range map[string]any{
		"/a/b.txt, 12 bytes of text/plain": events.FileWritten{Path: "/a/b.txt", Size: 12, MimeType: "text/plain"},
		"/a":                               events.DirectoryCreated{Path: "/a"},
		"remind, by cron 0 6 * * *":        events.EffectScheduled{Name: "remind", Cron: "0 6 * * *"},
		"remind at 2026-02-20T10:00:00Z":   events.EffectScheduled{Name: "remind", ScheduledAt: "2026-02-20T10:00:00Z"},
	} {
		if got := Line(&events.Event{Data: data}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
