package documents

import (
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// Every event changes a document, but for these: of the thread's document they change
// the version and the time alone.
func TestModels_EventsWithoutReadModel(t *testing.T) {
	hidden := []events.Type{
		events.ThreadResolvedType, events.ContextResolvedType,
		events.WriterClaimedType, events.WriterRenewedType, events.WriterReleasedType,
		events.RunTurnedType, events.RunLimitedType, events.QueueEditedType, events.QueueMovedType,
		events.SessionStartedType, events.SessionCompletedType,
		events.CommandRejectedType, events.LifecycleArchivedType, events.SubthreadAddedType,
		events.ChunkEmittedType, // never in the log
	}
	shown := map[events.Type]bool{}
	for _, p := range NewModels().List() {
		for _, r := range p.reactions {
			shown[r.on] = true
		}
	}
	for _, row := range events.Catalog() {
		if listed := slices.Contains(hidden, row.Type); shown[row.Type] == listed {
			t.Errorf("%s: in a read model: %v, listed here: %v; name it in a read model, or list it as one that nobody shows", row.Type, shown[row.Type], listed)
		}
		delete(shown, row.Type)
	}
	for typ := range shown {
		t.Errorf("a read model names %s, which is not in the catalog", typ)
	}
}

// TestNames holds what is stored: EK-151..EK-159, the index and the effects.
func TestNames(t *testing.T) {
	want := map[string]string{
		"threads": "thread_threads", "contexts": "thread_contexts", "items": "thread_items", "executions": "thread_executions",
		"steps": "thread_steps", "parts": "thread_parts", "trace_events": "thread_trace_events", "trace_runs": "thread_trace_runs",
		"trace_spans": "thread_trace_spans", "index": "thread_index", "files": "thread_file_records", "effects": "thread_effects",
		"definitions": "thread_definitions",
	}
	m := NewModels()
	for i, p := range m.List() {
		bucket, stored := want[p.Name]
		if !stored { // it came later
			bucket = "thread_" + p.Name
		}
		if bucket != p.Bucket || int(p.Kind) != i || p.Version < 1 {
			t.Errorf("%d: %s is in %s at version %d", i, p.Name, p.Bucket, p.Version)
		}
		delete(want, p.Name)
		for _, name := range []string{p.Name, p.Bucket} {
			if got, ok := m.Named(name); !ok || got.Kind != p.Kind {
				t.Errorf("%s is not found", name)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
	if _, ok := m.Named("nothing"); ok {
		t.Error("there is a read model of no name")
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		key  string
		ok   bool
	}{
		{Threads, "acme.T-1", true}, {Threads, "acme.T-1.x", false}, {Threads, "acme", false}, {Threads, "_.checkpoint", false},
		{Items, "acme.T-1.itm", true}, {Items, "acme.T-1", false}, {Steps, "acme.T-1.exe.stp", true}, {Items, "_.deletion.acme.T-1", false},
		{Items, "acme..itm", false}, {Items, "", false},
		{Definitions, "acme.agent.support", true}, {Definitions, "acme.model.gpt-4=2E1", true}, {Definitions, "acme.model.gpt-4.1", false},
		{Definitions, "acme.agent.", false}, {Definitions, "acme.agent", false}, {Definitions, "_.checkpoint", false}, {Definitions, "acme.agent.a=2", false},
		{Definitions, "acme.agent.a=2e", false},
	} {
		p, ok := ParsePlace(c.kind, c.key)
		if ok != c.ok || ok && (p.Key() != c.key || p.Kind != c.kind) {
			t.Errorf("%s: %+v %v", c.key, p, ok)
		}
	}
	for id, want := range map[string]bool{
		"itm_1": true, "exe-1.stp": true, "": false, "a..b": false, ".a": false, "a.": false, "a b": false, "a>": false, "*": false, "ä": false,
		"azAZ09_-=": true, "`": false, "{": false, "@": false, "[": false, "/": false, ":": false, "a.b.c": true,
		strings.Repeat("a", 256): true, strings.Repeat("a", 257): false,
	} {
		if validID(id) != want {
			t.Errorf("validID(%q) is %v", id, !want)
		}
	}
	if PageID(7) != "00000007" || PageID(123456789) != "123456789" {
		t.Errorf("%s %s", PageID(7), PageID(123456789))
	}
}
