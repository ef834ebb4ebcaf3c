package documents

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// anEffect returns the id of the n-th effect.
func anEffect(n int) string { return fmt.Sprintf("0195e5d0-3c1a-4b2e-9f44-%012d", n) }

// random writes a random but legal history of n commits.
func random(t testing.TB, seed uint64, n int) *history {
	h := newHistory(t, int(seed))
	rnd := rand.New(rand.NewPCG(seed, 3))
	h.do(events.CreateThread{Title: "t"}, message("i0", "x"), message("i1", "y"))
	for k := range n {
		var parts []thread.Part
		var odd []events.Event
		for range 1 + rnd.IntN(4) {
			item, exe, step := fmt.Sprintf("i%d", rnd.IntN(k+2)), fmt.Sprintf("e%d", rnd.IntN(k+1)), fmt.Sprintf("s%d", rnd.IntN(k+1))
			var d any
			switch file := fmt.Sprintf("/d%d/f%d", rnd.IntN(2), rnd.IntN(2)); rnd.IntN(25) {
			case 0, 1, 2:
				d = message(fmt.Sprintf("i%d", k+2), "x")
			case 3:
				d = events.DeleteMessage{ItemID: item}
			case 4:
				d = events.SetItemStatus{ItemID: item, To: events.ItemCompleted}
			case 5:
				d = events.EditMessage{ItemID: item, Metadata: raw(`{"k":` + fmt.Sprint(k) + `}`)}
			case 6:
				d = events.CreateExecution{ID: fmt.Sprintf("e%d", k), TriggerItemID: item}
			case 7:
				d = events.CreateStep{ID: fmt.Sprintf("s%d", k), ExecutionID: exe}
			case 8:
				d = events.PutPart{StepID: step, Idx: to(int64(rnd.IntN(3))), Part: raw(fmt.Sprint(k))}
			case 9:
				d = events.SetStepStatus{StepID: step, To: events.StepCompleted}
			case 10:
				d = events.SetContext{Patch: raw(fmt.Sprintf(`{"k%d":%d}`, rnd.IntN(4), k))}
			case 13:
				d = events.ScheduleEffect{ID: anEffect(k), Name: "remind", EveryMs: to(int64(1000)), Retries: to(int64(1))}
			case 14:
				d = events.CancelEffect{EffectID: anEffect(rnd.IntN(k + 1))}
			case 15:
				id, firing := anEffect(rnd.IntN(k+1)), int64(1+rnd.IntN(2))
				d = thread.StartEffect{ID: id, Firing: firing, Attempt: 1, Claim: 1}
				switch rnd.IntN(3) {
				case 0:
					d = thread.CompleteEffect{ID: id, Firing: firing, Attempt: 1}
				case 1:
					d = thread.FailEffect{ID: id, Firing: firing, Attempt: 1, ErrorText: "no"}
				}
			case 11:
				odd = append(odd, events.Event{Type: events.HistoryTruncatedType, Data: events.HistoryTruncated{FromIndex: int64(rnd.IntN(80))}})
				continue
			case 12:
				odd = append(odd, events.Event{Type: events.TraceRecordedType, Data: events.TraceRecorded{Kind: "usage", ExecutionID: exe, Data: raw(`{}`)}})
				continue
			case 16:
				d = events.UpdateMessage{MessageID: item, MessageUpdates: events.MessageUpdates{Silent: to(rnd.IntN(2) == 0)}}
			case 17:
				d = events.AddMessage{
					ID: fmt.Sprintf("m%d", k), Role: events.FromAssistant, Depth: to(int64(rnd.IntN(12))), Silent: rnd.IntN(3) == 0,
					ToolCalls: `[{"id":"a","function":{"name":"n","arguments":""}},{"id":"b","function":{"name":"n","arguments":""}}]`,
				}
			case 18:
				m := fmt.Sprintf("m%d", rnd.IntN(k+1))
				d = events.UpdateMessage{MessageID: m, MessageUpdates: events.MessageUpdates{Silent: to(rnd.IntN(2) == 0)}}
				if rnd.IntN(3) == 0 {
					d = events.DeleteMessage{ItemID: m}
				}
			case 19:
				d = events.SetExecutionStatus{ExecutionID: exe, To: events.ExecutionFailed}
			case 20, 21:
				d = events.WriteFile{Path: file, External: fmt.Sprint("s3://b/", k)}
			case 22, 23:
				d = events.DeleteFile{Path: file}
			case 24:
				d = events.RemoveDirectory{Path: file[:3]}
			}
			parts = append(parts, thread.Part{Name: "x", Data: d})
		}
		// What is refused is not in the history.
		h.n++
		h.now += 500
		draft := thread.NewDraft(h.state)
		var made []events.Event
		for _, p := range parts {
			c := &thread.Command{ID: fmt.Sprintf("c-%d", h.n), Tenant: tenant, ThreadID: h.id, Time: h.now, Parts: []thread.Part{p}}
			if list, err := draft.Do(c); err == nil {
				made = append(made, list...)
			} else if e := (*events.Error)(nil); !errors.As(events.AsError(err), &e) {
				t.Fatal(err)
			}
		}
		if len(made) > 0 {
			h.store(made)
		}
		if len(odd) > 0 {
			h.add(odd...)
		}
	}
	return h
}

func texts(t testing.TB, s *Memory) map[Place]string {
	t.Helper()
	all := map[Place]string{}
	for _, slot := range s.All(AllKinds) {
		b, err := Encode(slot.Doc)
		if err != nil {
			t.Fatal(err)
		}
		all[slot.Place] = string(b)
	}
	return all
}

func equal(t testing.TB, what string, got, want map[Place]string) {
	t.Helper()
	for p, doc := range want {
		if got[p] != doc {
			t.Errorf("%s, %v:\nis   %s\nwant %s", what, p, got[p], doc)
		}
	}
	for p, doc := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%s, %v should not be there: %s", what, p, doc)
		}
	}
}

// TestAnyMixtureOfStatesConverges takes each document as it was after a commit of
// its own, and folds the whole history again: whatever a crash left of a batch,
// the end is the same. (A document that was removed may have left no trace.)
func TestAnyMixtureOfStatesConverges(t *testing.T) {
	m := NewModels()
	for seed := range uint64(30) {
		h := random(t, seed, 60)
		rnd := rand.New(rand.NewPCG(seed, 4))
		whole := m.NewMemory(nil)
		mixture := m.NewMemory(nil)
		for _, c := range h.commits {
			if err := whole.Apply(c); err != nil {
				t.Fatal(err)
			}
			for _, slot := range whole.changed {
				if rnd.IntN(3) > 0 {
					continue
				}
				copied := mixture.Slot(slot.Place)
				copied.Doc, copied.Seq = nil, slot.Seq
				if slot.Doc == nil {
					if rnd.IntN(2) == 0 {
						copied.Seq = 0
					}
					continue
				}
				b, err := Encode(slot.Doc)
				if err != nil {
					t.Fatal(err)
				}
				doc, seq, err := m.Of(slot.Place.Kind).Decode(b)
				if err != nil || seq != slot.Seq {
					t.Fatalf("%s: %d, %v", b, seq, err)
				}
				copied.Doc = doc
			}
		}
		for _, c := range h.commits {
			if err := mixture.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
		equal(t, fmt.Sprintf("history %d", seed), texts(t, mixture), texts(t, whole))
		// A repeat changes nothing.
		for _, c := range h.commits {
			if out := m.Apply(c, whole, AllKinds, nil); len(out.Changed) > 0 {
				t.Fatalf("folding %d again changed %v", c.Seq, out.Changed[0].Place)
			}
		}
	}
}

// TestEveryVersion folds up to each version and each time, and in one go: the
// same commits give the same documents.
func TestEveryVersion(t *testing.T) {
	m := NewModels()
	h := random(t, 99, 60)
	step := m.NewMemory(nil)
	for _, c := range h.commits {
		if err := step.Apply(c); err != nil {
			t.Fatal(err)
		}
		want := texts(t, step)
		equal(t, "by version", texts(t, fold(t, h, Until{Version: c.Version})), want)
		equal(t, "by sequence", texts(t, fold(t, h, Until{Seq: c.Seq})), want)
		equal(t, "by time", texts(t, fold(t, h, Until{Time: c.Events[len(c.Events)-1].Time})), want)
		// Amid a commit, the documents bear the version that was asked for.
		if c.First() > 0 && len(c.Events) > 1 {
			s := fold(t, h, Until{Version: c.Version - 1})
			doc := s.Get(Place{Thread: ThreadName(tenant, h.id)}).(*events.Thread)
			if doc.Version != c.Version-1 || s.Version != doc.Version {
				t.Errorf("version %d shows %d", c.Version-1, doc.Version)
			}
		}
	}
}

// TestNeedsIsEnough folds with nothing in the store but what Needs told.
func TestNeedsIsEnough(t *testing.T) {
	m := NewModels()
	for seed := range uint64(10) {
		h := random(t, 200+seed, 60)
		want := m.NewMemory(nil)
		s := &guarded{Memory: m.NewMemory(nil), t: t}
		for _, c := range h.commits {
			if err := want.Apply(c); err != nil {
				t.Fatal(err)
			}
			s.known = map[Place]bool{}
			for {
				before := len(s.known)
				m.Needs(c, AllKinds, func(p Place) any {
					if !s.known[p] {
						return nil
					}
					return s.Get(p)
				}, func(n Need) {
					if n.Made && s.Get(n.Place) != nil {
						t.Errorf("%v is said to be new", n.Place)
					}
					s.known[n.Place] = true
				})
				if len(s.known) == before {
					break
				}
				if !Deep(c) {
					break
				}
			}
			m.Apply(c, s, AllKinds, nil)
		}
		equal(t, "guarded", texts(t, s.Memory), texts(t, want))
	}
}

// guarded is a store that knows what it was told to make ready.
type guarded struct {
	*Memory
	t     *testing.T
	known map[Place]bool
}

func (g *guarded) Slot(p Place) *Slot {
	slot := g.Memory.Slot(p)
	// An item is removed without a look at it.
	if !g.known[p] && p.Kind != Items && slot.Doc != nil {
		g.t.Errorf("%v was not asked for", p)
	}
	return slot
}

// A read model that has a document after some commit is one of those that a commit so far touched,
// so that nothing is left where only these are emptied.
func TestTouched_NamesAllThatHaveDocuments(t *testing.T) {
	few := false
	for seed := range uint64(20) {
		h := random(t, seed, 60)
		m := NewModels().NewMemory(nil)
		touched := Mask(0)
		for _, c := range h.commits {
			touched |= NewModels().Touched(c, AllKinds)
			if err := m.Apply(c); err != nil {
				t.Fatal(err)
			}
			few = few || touched != AllKinds
			for _, slot := range m.All(AllKinds) {
				if !touched.Has(slot.Place.Kind) {
					t.Fatalf("seed %d: %s has a document after commit %d", seed, slot.Place.Key(), c.Seq)
				}
			}
		}
	}
	if !few {
		t.Error("every history touched all read models at once")
	}
}

// TestOddEvents: what no command makes must not stop a fold.
func TestOddEvents(t *testing.T) {
	m := NewModels()
	h := newHistory(t, 300)
	h.do(events.CreateThread{})
	h.add(
		events.Event{Type: events.ItemCreatedType, Subject: "a b", Data: events.ItemCreated{ID: "a b", Type: events.Message, Index: 0, ContextID: "x y"}},
		events.Event{Type: events.ItemCreatedType, Subject: "i", Data: events.ItemCreated{ID: "i", Type: "strange", Index: -1, ContextID: h.state.Default}},
		events.Event{Type: events.ItemStatusChangedType, Subject: "nobody", Data: events.ItemStatusChanged{To: events.ItemCompleted}},
		events.Event{Type: events.MessageDeletedType, Subject: "nobody", Data: events.MessageDeleted{Index: 77}},
		events.Event{Type: "new.kind", Data: events.Unknown{Raw: raw(`{}`)}},
		events.Event{Type: events.StateChangedType, Subject: h.state.Default, Data: events.StateChanged{Patch: raw(`{"a":1}`)}},
		events.Event{Type: events.ThreadStatusChangedType, Data: events.Unknown{Schema: "urn:skein:event:thread.status.changed:99", Raw: raw(`{}`)}},
	)
	var bad *PlaceError
	s := m.NewMemory(nil)
	for _, c := range h.commits {
		if out := m.Apply(c, s, AllKinds, nil); out.Err != nil && !errors.As(out.Err, &bad) {
			t.Fatal(out.Err)
		}
	}
	if bad == nil {
		t.Error("nobody was told of an id that can be no key")
	}
	doc := s.Get(Place{Thread: ThreadName(tenant, h.id)}).(*events.Thread)
	if doc.Version != h.state.Version {
		t.Errorf("%+v", doc)
	}
	// A thread whose beginning cannot be read has no document, and stops nothing.
	s = m.NewMemory(nil)
	for _, c := range h.commits[1:] {
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if s.Get(Place{Thread: ThreadName(tenant, h.id)}) != nil {
		t.Error("half a thread has a document")
	}
}
