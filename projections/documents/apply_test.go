package documents

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// commitOf makes a commit of events of an aggregate, whatever they say.
func commitOf(aggregate string, seq uint64, version int64, list ...events.Event) *events.Commit {
	for i := range list {
		e := &list[i]
		e.Tenant, e.ThreadID, e.Version, e.Time = tenant, aggregate, version+int64(i)-int64(len(list))+1, 1771581600_123456
	}
	return &events.Commit{Tenant: tenant, Thread: aggregate, Seq: seq, Version: version, Events: list}
}

func placesOf(slots []*Slot) (list []Place) {
	for _, s := range slots {
		list = append(list, s.Place)
	}
	return list
}

func TestFolds(t *testing.T) {
	for aggregate, want := range map[string]bool{
		"T-00000000-0000-7000-8000-000000000001": true, events.TenantAggregate: true, events.KeyAggregate("k"): false, "": false,
	} {
		if Folds(aggregate) != want {
			t.Errorf("%q is folded: %v", aggregate, !want)
		}
	}
}

// TestApply_SaysWhatIsMissing: a document that an event should change, and that is not
// there, is named. A definition that is removed may be unknown.
func TestApply_SaysWhatIsMissing(t *testing.T) {
	m := NewModels()
	h := newHistory(t, 30)
	thread := ThreadName(tenant, h.id)
	s := m.NewMemory(nil)
	out := m.Apply(commitOf(h.id, 7, 5,
		events.Event{Type: events.ItemStatusChangedType, Subject: "i", Data: events.ItemStatusChanged{To: events.ItemCompleted}},
		events.Event{Type: events.FileDeletedType, Subject: h.id, Data: events.FileDeleted{Path: "/a"}},
	), s, AllKinds, nil)
	if len(out.Changed) > 0 || out.Err != nil || out.Deleted != nil {
		t.Errorf("%+v", out)
	}
	missed := placesOf(out.Missed)
	for _, p := range []Place{{Kind: Items, Thread: thread, ID: "i"}, {Kind: Files, Thread: thread, ID: FileID("/a")}, {Thread: thread}} {
		if !slices.Contains(missed, p) {
			t.Errorf("%+v is not missed: %+v", p, missed)
		}
	}
	// What is not folded now is not missed.
	if out = m.Apply(commitOf(h.id, 8, 6, events.Event{Type: events.ItemStatusChangedType, Subject: "i", Data: events.ItemStatusChanged{}}), s, Mask(0).With(Steps), nil); len(out.Missed) > 0 {
		t.Errorf("%+v", placesOf(out.Missed))
	}
	out = m.Apply(commitOf(events.TenantAggregate, 9, 1, events.Event{
		Type: events.DefinitionChangedType, Data: events.DefinitionChanged{Kind: events.AgentKind, Name: "a", Version: 2, Previous: 1},
	}), s, AllKinds, nil)
	if len(out.Missed) > 0 || len(out.Changed) != 1 || out.Changed[0].Doc != nil || out.Changed[0].Seq != 9 {
		t.Errorf("%+v", out)
	}
}

// TestApply_EndsAThread: the thread's own document goes, and the caller is told to
// remove the others. Folding the end again changes nothing.
func TestApply_EndsAThread(t *testing.T) {
	m := NewModels()
	for _, purge := range []bool{false, true} {
		h := newHistory(t, 31)
		h.do(events.CreateThread{})
		h.do(events.DeleteThread{Purge: purge})
		s := m.NewMemory(nil)
		place := Place{Thread: ThreadName(tenant, h.id)}
		if out := m.Apply(h.commits[0], s, AllKinds, nil); out.Deleted != nil {
			t.Errorf("%+v", out.Deleted)
		}
		end := h.commits[1]
		out := m.Apply(end, s, AllKinds, nil)
		if out.Deleted == nil || *out.Deleted != (Deletion{Tenant: tenant, Thread: h.id, Seq: end.Seq, Version: end.Version, Purge: purge}) {
			t.Fatalf("%+v", out.Deleted)
		}
		if !slices.Contains(placesOf(out.Changed), place) || s.Get(place) != nil {
			t.Errorf("the thread's document is %+v; changed: %+v", s.Get(place), placesOf(out.Changed))
		}
		if out = m.Apply(end, s, AllKinds, nil); len(out.Changed) > 0 || out.Deleted == nil {
			t.Errorf("again: %+v", out)
		}
		s = m.NewMemory(nil)
		m.Apply(h.commits[0], s, AllKinds, nil)
		if out = m.Apply(end, s, AllKinds&^Mask(0).With(Threads), nil); s.Get(place) == nil || out.Deleted == nil {
			t.Errorf("where threads are not folded: %+v, %+v", s.Get(place), out.Deleted)
		}
	}
}

// TestApply_Archive: a thread that goes to the archive stays where it was in lists, until
// something happens to it.
func TestApply_Archive(t *testing.T) {
	h := newHistory(t, 32)
	h.do(events.CreateThread{})
	h.do(message("i", "x"))
	was := int64(h.seq)
	for i, want := range []int64{was, was, 0, 0} {
		if i < 2 {
			h.add(events.Event{Type: events.LifecycleArchivedType, Data: events.LifecycleArchived{}})
		} else {
			h.do(message("m"+PageID(int64(i)), "x"))
		}
		if doc := fold(t, h, Until{}).Get(Place{Thread: ThreadName(tenant, h.id)}).(*events.Thread); doc.ListedSeq != want || doc.Seq != int64(h.seq) {
			t.Errorf("%d: listed at %d, want %d; shows %d of %d", i, doc.ListedSeq, want, doc.Seq, h.seq)
		}
	}
}

// TestDefinitions: each event makes, replaces or removes its definition, in the tenant's
// own aggregate alone.
func TestDefinitions(t *testing.T) {
	m := NewModels()
	s := m.NewMemory(nil)
	changed := func(aggregate string, seq uint64, d events.DefinitionChanged) {
		m.Apply(commitOf(aggregate, seq, int64(seq), events.Event{Type: events.DefinitionChangedType, Data: d}), s, AllKinds, nil)
	}
	check := func(want map[string]int64) {
		t.Helper()
		got := map[string]int64{}
		for _, slot := range s.All(AllKinds) {
			doc := slot.Doc.(*events.Definition)
			got[slot.Place.Key()] = doc.Version
			if int64(slot.Seq) != doc.Seq || doc.Digest != events.DefinitionDigest(doc.Definition) || doc.UpdatedAt != "2026-02-20T10:00:00.123Z" {
				t.Errorf("%+v", doc)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%v, want %v", got, want)
		}
		for key, version := range want {
			if got[key] != version {
				t.Errorf("%s: version %d, want %d", key, got[key], version)
			}
		}
	}
	one := events.DefinitionChanged{Kind: events.AgentKind, Name: "a", Version: 1, Definition: raw(`{"model":"m"}`)}
	changed(events.TenantAggregate, 1, one)
	changed(events.TenantAggregate, 2, events.DefinitionChanged{Kind: events.ModelKind, Name: "a", Version: 1, Definition: raw(`{}`)})
	check(map[string]int64{"acme.agent.a": 1, "acme.model.a": 1})
	two := one
	two.Version, two.Previous = 2, 1
	changed(events.TenantAggregate, 3, two)
	check(map[string]int64{"acme.agent.a": 2, "acme.model.a": 1})
	changed(events.TenantAggregate, 3, one) // folded before
	check(map[string]int64{"acme.agent.a": 2, "acme.model.a": 1})
	changed(events.TenantAggregate, 4, events.DefinitionChanged{Kind: events.ModelKind, Name: "a", Version: 2, Previous: 1})
	check(map[string]int64{"acme.agent.a": 2})
	two.Version = 9
	changed("T-00000000-0000-7000-8000-000000000001", 5, two) // none of a thread
	two.Name = ""
	changed(events.TenantAggregate, 6, two)
	check(map[string]int64{"acme.agent.a": 2})
}

// TestFold_Broken: a commit that cannot be read is counted and left out; any other error
// ends the fold.
func TestFold_Broken(t *testing.T) {
	m := NewModels()
	h := newHistory(t, 33)
	h.do(events.CreateThread{})
	h.do(message("i", "x"))
	feed := func(err error) iter.Seq2[*events.Commit, error] {
		return func(yield func(*events.Commit, error) bool) {
			_ = yield(h.commits[0], nil) && yield(nil, err) && yield(nil, err) && yield(h.commits[1], nil)
		}
	}
	s, err := m.Fold(feed(&events.BrokenError{Seq: 4, Cause: errors.New("torn")}), Until{}, nil)
	if err != nil || s.Broken != 2 || s.Version != h.state.Version || s.Seq != h.seq {
		t.Errorf("%+v, %v", s, err)
	}
	lost := errors.New("connection lost")
	if s, err = m.Fold(feed(lost), Until{}, nil); !errors.Is(err, lost) || s != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestPieces: the keys of pieces are those of no document, and name their thread.
func TestPieces(t *testing.T) {
	key := PieceKey("acme.T-1", "ab12")
	if thread, ok := ParsePiece(key); !ok || thread != "acme.T-1" {
		t.Errorf("%s is a piece of %q: %v", key, thread, ok)
	}
	for _, kind := range []Kind{Threads, Items, Steps, Definitions} {
		if p, ok := ParsePlace(kind, key); ok {
			t.Errorf("%s is parsed as %+v", key, p)
		}
	}
	for _, other := range []string{"", "acme.T-1", "acme.T-1.itm", "acme.T-1.exe.stp", "acme.T-1./.", "acme./.ab12", "./.ab12", "acme.T-1.ab12"} {
		if thread, ok := ParsePiece(other); ok {
			t.Errorf("%q is parsed as a piece of %q", other, thread)
		}
	}
}

// TestPlace_Keys: where each kind of document lies, and what holds what is in a folder.
func TestPlace_Keys(t *testing.T) {
	for want, p := range map[string]Place{
		"p.acme.T-1":         {Kind: Threads, Thread: "acme.T-1"},
		"p.acme.T-1.itm":     {Kind: Items, Thread: "acme.T-1", ID: "itm"},
		"p.acme.T-1.exe.stp": {Kind: Steps, Thread: "acme.T-1", ID: "exe.stp"},
		"p.acme.agent.a":     {Kind: Definitions, Thread: ThreadName("acme", events.TenantAggregate), ID: "agent.a"},
	} {
		if got := p.Under("p."); got != want || p.Key() != strings.TrimPrefix(want, "p.") {
			t.Errorf("%+v lies at %s, and at %s", p, got, p.Key())
		}
	}
	in, ok := strings.CutSuffix(FileIDIn("/a", "b.txt"), token("b.txt"))
	if !ok || !strings.HasPrefix(FileID("/a/b.txt"), in) || strings.HasPrefix(FileID("/a/c/d"), in) || strings.HasPrefix(FileID("/a"), in) {
		t.Errorf("%s, %s", in, FileID("/a/b.txt"))
	}
}
