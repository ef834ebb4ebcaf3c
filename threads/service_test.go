package threads_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
	"github.com/skein-threads/skein/threads"
)

const unknownID = "T-5928a90d-d53b-488f-a829-4e36442142ee"

func service(t *testing.T) *threads.Service {
	t.Helper()
	return threads.New(skeintest.Start(t).Client("acme"))
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestIDs(t *testing.T) { // AM-4 AM-5 AM-6
	for id, want := range map[string]bool{
		unknownID: true, strings.ToUpper(unknownID): true, "t" + unknownID[1:]: false, unknownID[2:]: false, unknownID + "0": false, "T-" + strings.ReplaceAll(unknownID[2:], "-", "") + "0000": false,
		"T-5928a90g-d53b-488f-a829-4e36442142ee": false, "": false, "T-": false,
	} {
		if got := threads.ValidID(id); got != want {
			t.Errorf("%q is valid: %v", id, got)
		}
	}
	if a, b := threads.NewID(), threads.NewID(); a == b || !threads.ValidID(a) || a[16] != '4' {
		t.Errorf("new ids are %s and %s", a, b)
	}
}

func TestForkTitle(t *testing.T) { // AM-55 AM-56 AM-114
	for title, want := range map[string]string{
		"X": "Forked: X", "Forked: X": "Forked(2): X", "Forked(2): X": "Forked(3): X", "": "Forked: Untitled", "Forked: ": "Forked: Forked: ",
		"Forked(9): a: b": "Forked(10): a: b", "Forked: a\nb": "Forked: Forked: a\nb", "forked: X": "Forked: forked: X", "Forked(): X": "Forked: Forked(): X",
		"Forked(999999999999999999999): X": "Forked(1e+21): X",
	} {
		if got := threads.ForkTitle(title); got != want {
			t.Errorf("a fork of %q is %q, want %q", title, got, want)
		}
	}
}

// A new thread is what createThread returns, stored or not.
func TestCreate(t *testing.T) { // AM-26
	s := service(t)
	for _, made := range []*threads.Thread{threads.NewThread(unknownID), must(s.Create(t.Context(), unknownID))(t)} {
		raw, err := json.Marshal(made)
		if want := fmt.Sprintf(`{"v":0,"id":%q,"created":%d,"messages":[]}`, unknownID, made.Created); err != nil || string(raw) != want || made.Created == 0 {
			t.Errorf("a new thread is %s, want %s", raw, want)
		}
	}
	if _, err := s.Get(t.Context(), threads.NewID()); !strings.HasPrefix(said(err), "Thread T-") || !strings.HasSuffix(said(err), " not found") {
		t.Errorf("an unknown thread: %v", err)
	}
}

// Update stores what its function changed in one commit, and returns the new thread and the
// patches.
func TestUpdate_StoresChanges(t *testing.T) { // AM-58 AM-110
	s := service(t)
	id := must(s.Create(t.Context(), ""))(t).ID
	limit := int64(99)
	got, patches, err := s.Update(t.Context(), id, func(t *threads.Thread) error {
		t.Title, t.Draft, t.AgentMode, t.MaxTokens, t.Env = "Order 42", "And", "smart", &limit, events.JSON(`{"initial":{"tags":["model:gpt-5"]}}`)
		t.Messages = append(t.Messages, threads.InfoMessage("Be brief"), threads.UserMessage("Where?"), threads.Message{
			Role: events.DocumentAssistant, Content: []threads.Block{threads.Text("Let me see"), {Type: events.ToolUseBlock, ID: "c1", Name: "find", Input: events.JSON(`{"order":42}`)}},
		}, threads.Message{
			Role: events.DocumentUser, Content: []threads.Block{{Type: events.ToolResultBlock, ToolUseID: "c1", Run: &events.ToolResult{Status: events.ToolSuccess, Result: events.JSON(`"here"`)}}},
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Title != "Order 42" || len(got.Messages) != 4 || got.V != 6 || got.NextMessageID != 3 || *got.Messages[2].MessageID != 2 || len(patches) < 5 {
		t.Errorf("at v %d: %+v, by %v", got.V, got, patches)
	}
	raw := must(json.Marshal(got.Messages[2].Content))(t)
	if want := `[{"type":"text","text":"Let me see"},{"type":"tool_use","id":"c1","name":"find","input":{"order":42}}]`; string(raw) != want {
		t.Errorf("the assistant says %s, want %s", raw, want)
	}
	got, _, err = s.Update(t.Context(), id, func(t *threads.Thread) error {
		*t.Messages[1].Content[0].Text = "Where is it?"
		t.Messages = append(t.Messages[:2], threads.UserMessage("Never mind"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Messages) != 3 || *got.Messages[1].Content[0].Text != "Where is it?" || *got.Messages[1].MessageID != 1 || *got.Messages[2].MessageID != 3 {
		t.Errorf("the messages are %s", must(json.Marshal(got.Messages))(t))
	}
	same, patches, err := s.Update(t.Context(), id, func(*threads.Thread) error { return nil })
	if err != nil || len(patches) != 0 || same.V != got.V {
		t.Errorf("nothing changed, and v is %d after %d, by %v (%v)", same.V, got.V, patches, err)
	}
}

// What no command makes is refused whole, and nothing is stored.
func TestUpdate_Refusals(t *testing.T) { // AM-59
	s := service(t)
	id := must(s.Create(t.Context(), ""))(t).ID
	limit := int64(5)
	before, _, err := s.Update(t.Context(), id, func(t *threads.Thread) error {
		t.Title, t.MaxTokens, t.Env = "Order 42", &limit, events.JSON(`{}`)
		t.Messages = append(t.Messages, threads.UserMessage("Where?"), threads.AssistantMessage("Here"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*threads.Thread){
		"v":             func(t *threads.Thread) { t.V++ },
		"id":            func(t *threads.Thread) { t.ID = unknownID },
		"created":       func(t *threads.Thread) { t.Created++ },
		"relationships": func(t *threads.Thread) { t.Relationships = []threads.Relationship{{ThreadID: unknownID}} },
		"origin":        func(t *threads.Thread) { t.OriginThreadID = unknownID },
		"main":          func(t *threads.Thread) { t.MainThreadID = unknownID },
		"skills":        func(t *threads.Thread) { t.ActivatedSkills = []threads.Skill{{Name: "pdf"}} },
		"the counter":   func(t *threads.Thread) { t.NextMessageID = 77 },
		"no limit":      func(t *threads.Thread) { t.MaxTokens = nil },
		"no env":        func(t *threads.Thread) { t.Env = nil },
		"the queue": func(t *threads.Thread) {
			t.QueuedMessages = []threads.Queued{{ID: "q", QueuedMessage: threads.UserMessage("x")}}
		},
		"the order": func(t *threads.Thread) { t.Messages[0], t.Messages[1] = t.Messages[1], t.Messages[0] },
		"a role":    func(t *threads.Thread) { t.Messages[0].Role = events.DocumentInfo },
		"a block": func(t *threads.Thread) {
			t.Messages[0].Content[0] = threads.Block{Type: events.ThinkingBlock, Thinking: new("x")}
		},
		"an unknown role": func(t *threads.Thread) { t.Messages = append(t.Messages, threads.Message{Role: "robot"}) },
		"an empty block": func(t *threads.Thread) {
			t.Messages = append(t.Messages, threads.Message{Role: "user", Content: []threads.Block{{Type: "image"}}})
		},
		"a user's call": func(t *threads.Thread) {
			t.Messages = append(t.Messages, threads.Message{Role: "user", Content: []threads.Block{{Type: "tool_use", ID: "c", Name: "n"}}})
		},
		"a mixed result": func(t *threads.Thread) {
			t.Messages = append(t.Messages, threads.Message{Role: "user", Content: []threads.Block{threads.Text("x"), {Type: "tool_result", ToolUseID: "c"}}})
		},
	} {
		_, _, err := s.Update(t.Context(), id, func(t *threads.Thread) error {
			t.Title = "changed"
			change(t)
			return nil
		})
		if refused := (*threads.UnsupportedError)(nil); !errors.As(err, &refused) || refused.Path == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	mine := errors.New("mine")
	if _, _, err := s.Update(t.Context(), id, func(t *threads.Thread) error { t.Title = "changed"; return mine }); !errors.Is(err, mine) {
		t.Errorf("an error of the function: %v", err)
	}
	if now := must(s.Get(t.Context(), id))(t); len(threads.Diff(before, now)) != 0 {
		t.Errorf("a refusal changed %v", threads.Diff(before, now))
	}
	if _, _, err := s.Update(t.Context(), unknownID, func(*threads.Thread) error { return nil }); said(err) != "Thread not loaded" {
		t.Errorf("an unknown thread: %v", err)
	}
}

// Of many updates at once none is lost.
func TestUpdate_Concurrent(t *testing.T) { // AM-7
	s := service(t)
	id := must(s.Create(t.Context(), ""))(t).ID
	const writers = 8
	failed := make(chan error, writers)
	for n := range writers {
		go func() {
			_, _, err := s.Update(t.Context(), id, func(t *threads.Thread) error {
				t.Draft += fmt.Sprint(n)
				return nil
			})
			failed <- err
		}()
	}
	for range writers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if got := must(s.Get(t.Context(), id))(t); len(got.Draft) != writers || got.V != writers {
		t.Errorf("at v %d the draft is %q", got.V, got.Draft)
	}
}

func TestSave(t *testing.T) {
	s := service(t)
	made := threads.NewThread(threads.NewID())
	made.Title = "Order 42"
	made.Messages = append(made.Messages, threads.UserMessage("Where?"))
	first := must(s.Save(t.Context(), made))(t)
	if first.V != 2 || first.Title != "Order 42" || len(first.Messages) != 1 {
		t.Errorf("it is saved as %+v", first)
	}
	first.Title = "Order 43"
	second := must(s.Save(t.Context(), first))(t)
	if second.V != 3 || second.Title != "Order 43" {
		t.Errorf("it is saved as %+v", second)
	}
	if _, err := s.Save(t.Context(), first); !errors.Is(err, &events.Error{Code: events.VersionConflict}) {
		t.Errorf("an old thread is saved: %v", err)
	}
}

// AM-58: a new thread that cannot be saved whole is not there afterwards, and the corrected one is
// saved in one commit; what Save returns can be saved again.
func TestSave_RefusedStoresNothing(t *testing.T) {
	s := service(t)
	for name, spoil := range map[string]func(*threads.Thread){
		"refused by the service": func(t *threads.Thread) { t.Title = strings.Repeat("x", 2000) },
		"no command makes it":    func(t *threads.Thread) { t.OriginThreadID = threads.NewID() },
	} {
		doc := threads.NewThread(threads.NewID())
		doc.Messages = append(doc.Messages, threads.UserMessage("Where?"))
		spoil(doc)
		if got, err := s.Save(t.Context(), doc); err == nil {
			t.Fatalf("%s: saved as %+v", name, got)
		}
		if got, err := s.Get(t.Context(), doc.ID); said(err) != "Thread "+doc.ID+" not found" {
			t.Errorf("%s: the thread is there: %+v, %v", name, got, err)
		}
		doc.Title, doc.OriginThreadID = "Order", ""
		saved := must(s.Save(t.Context(), doc))(t)
		again := must(s.Save(t.Context(), saved))(t)
		if len(again.Messages) != 1 || again.Title != "Order" || again.V != saved.V {
			t.Errorf("%s: it is saved as %+v, and again as %+v", name, saved, again)
		}
	}
}

func TestArchiveHistoryDelete(t *testing.T) { // AM-87 AM-89
	s := service(t)
	id := must(s.Create(t.Context(), ""))(t).ID
	if err := s.Archive(t.Context(), id, true); err != nil {
		t.Fatal(err)
	}
	if err := s.FlushVersion(t.Context(), id, 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	if !must(s.Get(t.Context(), id))(t).Archived {
		t.Error("it is not archived")
	}
	if err := s.Archive(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Archive(t.Context(), unknownID, true); said(err) != "Thread "+unknownID+" not found" {
		t.Errorf("an unknown thread: %v", err)
	}
	for range 2 {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}

// A full queue takes no message, and says so without an error.
func TestEnqueue_Full(t *testing.T) { // AM-79 AM-80 AM-83 AM-107
	server := skeintest.Start(t)
	release := make(chan struct{})
	server.Must(server.Reactor("slow", func(ctx context.Context, _ *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return skein.Answer("done"), nil
	}))
	c := server.Client("acme")
	s := threads.New(c)
	id := must(c.Send(t.Context(), "", events.CreateThread{AgentID: "slow"}))(t).ThreadID
	for n := range 1 + events.MaxQueuedMessages {
		queued, taken, err := s.Enqueue(t.Context(), id, threads.UserMessage(fmt.Sprint(n)))
		if err != nil || !taken || (queued == "") != (n == 0) {
			t.Errorf("message %d: %q, %v, %v", n, queued, taken, err)
		}
	}
	before := must(s.Get(t.Context(), id))(t)
	if queued, taken, err := s.Enqueue(t.Context(), id, threads.UserMessage("too many")); err != nil || taken || queued != "" {
		t.Errorf("one more: %q, %v, %v", queued, taken, err)
	}
	full := must(s.Get(t.Context(), id))(t)
	if len(full.QueuedMessages) != events.MaxQueuedMessages || full.NextMessageID != before.NextMessageID {
		t.Errorf("%d wait, and the next number is %d after %d", len(full.QueuedMessages), full.NextMessageID, before.NextMessageID)
	}
	for n, q := range full.QueuedMessages {
		if *q.QueuedMessage.Content[0].Text != fmt.Sprint(n+1) || *q.QueuedMessage.MessageID != int64(n+1) {
			t.Errorf("%d waits at place %d", *q.QueuedMessage.MessageID, n)
		}
	}
	last := full.QueuedMessages[len(full.QueuedMessages)-1].ID
	now, _, err := s.Update(t.Context(), id, func(t *threads.Thread) error {
		t.QueuedMessages = t.QueuedMessages[:len(t.QueuedMessages)-1]
		return nil
	})
	if err != nil || len(now.QueuedMessages) != events.MaxQueuedMessages-1 {
		t.Errorf("%s was removed: %v", last, err)
	}
	if _, _, err := s.Enqueue(t.Context(), id, threads.Message{Role: events.DocumentUser, Content: []threads.Block{{Type: events.ToolResultBlock, ToolUseID: "c", Run: &events.ToolResult{Status: events.ToolSuccess}}}}); err == nil {
		t.Error("a result waits")
	}
	close(release)
}

// The first value comes at once with no patches, each change with its own, and the deletion
// ends it.
func TestObserveRaw(t *testing.T) { // AM-3 AM-67 AM-69 AM-71
	s := service(t)
	id := threads.NewID()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	steps := []func() error{
		func() error {
			_, _, err := s.Update(ctx, id, func(t *threads.Thread) error { t.Title = "one"; return nil })
			return err
		},
		func() error {
			_, _, err := s.Update(ctx, id, func(t *threads.Thread) error { t.Title = "two"; return nil })
			return err
		},
		func() error { return s.Delete(ctx, id) },
	}
	must(s.Create(ctx, id))(t)
	var seen []string
	for c, err := range s.ObserveRaw(ctx, id) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, fmt.Sprintf("%q%d", c.Thread.Title, len(c.Patches)))
		if len(steps) == 0 {
			t.Fatalf("more than was done: %v", seen)
		}
		if err := steps[0](); err != nil {
			t.Fatal(err)
		}
		steps = steps[1:]
	}
	if got := strings.Join(seen, " "); got != `""0 "one"2 "two"2` {
		t.Errorf("it shows %s", got)
	}
}

// Observe shows the last value, whatever it leaves out, and a thread that is created later.
func TestObserve_LastValue(t *testing.T) { // AM-68 AM-70
	s := service(t)
	id := threads.NewID()
	done := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		defer close(done)
		for c, err := range s.Observe(t.Context(), id) {
			if err != nil {
				done <- err
				return
			}
			if c.V == 0 {
				close(begun)
			}
			if c.Title == "30" {
				return
			}
		}
		done <- errors.New("it ended")
	}()
	must(s.Create(t.Context(), id))(t)
	<-begun
	for n := range 31 {
		if _, _, err := s.Update(t.Context(), id, func(t *threads.Thread) error { t.Title = fmt.Sprint(n); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// AM-106: a caller that names no time waits for five seconds, no less.
func TestFlushVersion_WaitsFiveSeconds(t *testing.T) {
	t.Parallel()
	s := service(t)
	id := must(s.Create(t.Context(), ""))(t).ID
	begun := time.Now()
	err := s.FlushVersion(t.Context(), id, 1, 0)
	waited := time.Since(begun)
	if _, late := errors.AsType[*threads.TimeoutError](err); !late || waited < 5*time.Second || threads.FlushVersionTimeout != 5*time.Second {
		t.Errorf("it waited for %v: %v", waited, err)
	}
}

// The version of Amp Code that the documents follow is told (AM-1).
func TestAmpVersion(t *testing.T) {
	if threads.AmpVersion != "0.0.1769212917" {
		t.Errorf("it is %q", threads.AmpVersion)
	}
}

func TestFlushVersion(t *testing.T) { // AM-64 AM-66
	s := service(t)
	id := must(s.Create(t.Context(), ""))(t).ID
	if err := s.FlushVersion(t.Context(), id, 0, time.Minute); err != nil {
		t.Error(err)
	}
	done := make(chan error)
	go func() { done <- s.FlushVersion(t.Context(), id, 2, time.Minute) }()
	for range 2 {
		if _, _, err := s.Update(t.Context(), id, func(t *threads.Thread) error { t.Draft += "x"; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.FlushVersion(t.Context(), id, 99, time.Millisecond); said(err) != "Timeout waiting for thread "+id+" to reach version 99" {
		t.Errorf("a version that never comes: %v", err)
	}
}

// One who begins to wait for a version while another commits it sees it, whether or not the read
// model shows it yet: no later event would say so.
func TestFlushVersion_OfAnother(t *testing.T) {
	server := skeintest.Start(t)
	writer, reader := threads.New(server.Client("acme")), threads.New(server.Client("acme"))
	id := must(writer.Create(t.Context(), ""))(t).ID
	for version := int64(1); version <= 100; version++ {
		waited := make(chan error, 1)
		written, err := server.Client("acme").Timeline(t.Context(), client.SubscribeOptions{Thread: id, From: client.Now()})
		server.Must(err)
		go func() {
			defer written.Close()
			if _, err := written.Next(t.Context()); err != nil {
				waited <- err
				return
			}
			waited <- reader.FlushVersion(t.Context(), id, version, time.Minute)
		}()
		if _, _, err := writer.Update(t.Context(), id, func(t *threads.Thread) error { t.Draft += "x"; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; err != nil {
			t.Fatal(err)
		}
	}
}

// One reader-writer holds a thread; others are refused until it is disposed.
func TestExclusiveReadWriter(t *testing.T) { // AM-72 AM-73 AM-74 AM-75 AM-76 AM-77 AM-78
	s := service(t)
	id := threads.NewID()
	w := must(s.ExclusiveReadWriter(t.Context(), id))(t)
	if got := must(w.Read())(t); got.ID != id || got.V != 0 {
		t.Errorf("it begins with %+v", got)
	}
	if _, err := s.ExclusiveReadWriter(t.Context(), id); said(err) != "Thread "+id+" already has an exclusive reader-writer" {
		t.Errorf("a second one: %v", err)
	}
	if _, _, err := s.Update(t.Context(), id, func(t *threads.Thread) error { t.Title = "other"; return nil }); !errors.Is(err, &events.Error{Code: events.Held}) {
		t.Errorf("another writer: %v", err)
	}
	got := must(w.Update(t.Context(), func(t *threads.Thread) error { t.Title = "mine"; return nil }))(t)
	if got.Title != "mine" || must(w.Read())(t).Title != "mine" {
		t.Errorf("it writes %+v", got)
	}
	got.Draft = "written"
	if err := w.Write(t.Context(), got); err != nil || must(w.Read())(t).Draft != "written" {
		t.Errorf("it writes whole: %v", err)
	}
	for range 2 {
		if err := w.Dispose(t.Context()); err != nil {
			t.Error(err)
		}
	}
	_, readErr := w.Read()
	_, updateErr := w.Update(t.Context(), func(*threads.Thread) error { return nil })
	if said(readErr) != "Disposed" || said(updateErr) != "Disposed" || said(w.Write(t.Context(), got)) != "Disposed" {
		t.Errorf("after disposal: %v, %v", readErr, updateErr)
	}
	again := must(s.ExclusiveReadWriter(t.Context(), id))(t)
	if err := again.Dispose(t.Context()); err != nil {
		t.Error(err)
	}
}

// A thread is forked, truncated and mentioned, and both threads show it.
func TestForkTruncateMention(t *testing.T) { // AM-3 AM-46 AM-47 AM-50 AM-51
	s := service(t)
	id := must(s.Create(t.Context(), ""))(t).ID
	if _, _, err := s.Update(t.Context(), id, func(t *threads.Thread) error {
		t.Title = "Order 42"
		t.Messages = append(t.Messages, threads.UserMessage("one"), threads.AssistantMessage("two"), threads.UserMessage("three"))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	child := must(s.Fork(t.Context(), id, 1))(t)
	forked, parent := must(s.Get(t.Context(), child))(t), must(s.Get(t.Context(), id))(t)
	if forked.V != 0 || len(forked.Messages) != 2 || forked.Title != "Forked: Order 42" || forked.OriginThreadID != id || forked.ForkPointIndex == nil || *forked.ForkPointIndex != 1 {
		t.Errorf("the fork is %s", must(json.Marshal(forked))(t))
	}
	if parent.V != 5 || len(parent.Relationships) != 1 || parent.Relationships[0].ThreadID != child || parent.Relationships[0].Role != events.ParentRole {
		t.Errorf("the parent is %s", must(json.Marshal(parent))(t))
	}
	if err := s.Mention(t.Context(), id, child, "an exploration"); err != nil {
		t.Error(err)
	}
	if err := s.Truncate(t.Context(), id, 0); err != nil {
		t.Error(err)
	}
	cut := must(s.Get(t.Context(), id))(t)
	if len(cut.Messages) != 1 || len(cut.Relationships) != 0 || len(must(s.Get(t.Context(), child))(t).Messages) != 2 {
		t.Errorf("after the cut the parent is %s", must(json.Marshal(cut))(t))
	}
	if _, err := s.Fork(t.Context(), unknownID, 0); said(err) != "Thread "+unknownID+" not found" {
		t.Errorf("an unknown parent: %v", err)
	}
}

// What waits is answered in order, first in, first out, unless it is moved; it can be listed,
// edited and removed until then; each message keeps the number with which it waited.
func TestQueue_OrderAndNumbers(t *testing.T) { // AM-79 AM-81 AM-83 AM-84 AM-115 AM-117
	server := skeintest.Start(t)
	release := make(chan struct{})
	server.Must(server.Reactor("slow", func(ctx context.Context, _ *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return skein.Answer("done"), nil
	}))
	c := server.Client("acme")
	s, ctx := threads.New(c), t.Context()
	id := must(c.Send(ctx, "", events.CreateThread{AgentID: "slow"}))(t).ThreadID
	var queued []string
	for n := range 1 + events.MaxQueuedMessages {
		one, taken, err := s.Enqueue(ctx, id, threads.UserMessage(fmt.Sprint(n)))
		if err != nil || !taken {
			t.Fatal(n, taken, err)
		}
		queued = append(queued, one)
	}
	for _, one := range queued[1:] {
		if !strings.HasPrefix(one, "queued-") || !threads.ValidID("T-"+strings.TrimPrefix(one, "queued-")) {
			t.Errorf("the queued id is %s", one)
		}
	}
	must(c.Send(ctx, id, events.MoveQueued{QueuedID: queued[5], Before: queued[1]}))(t)
	must(c.Send(ctx, id, events.EditQueued{QueuedID: queued[2], Item: events.UserText("two")}))(t)
	must(c.Send(ctx, id, events.RemoveQueued{QueuedID: queued[3]}))(t)
	list := must(c.ListQueue(ctx, events.ListQueue{ThreadID: id}))(t).Queued
	var order []string
	for _, q := range list {
		order = append(order, q.ID)
	}
	if want := []string{queued[5], queued[1], queued[2], queued[4]}; fmt.Sprint(order) != fmt.Sprint(want) {
		t.Fatalf("%v wait, want %v", order, want)
	}
	close(release)
	last := list[len(list)-1]
	for ended := false; !ended; {
		doc := must(s.Get(ctx, id))(t)
		ended = len(doc.QueuedMessages) == 0
	}
	must(c.WaitRun(ctx, events.GetExecution{ThreadID: id, ExecutionID: last.ExecutionID}))(t)
	doc := must(s.Get(ctx, id))(t)
	said, numbers := "", map[int64]bool{}
	for _, m := range doc.Messages {
		if m.MessageID == nil || numbers[*m.MessageID] || *m.MessageID >= doc.NextMessageID {
			t.Fatalf("a message has the number %v, and the next one is %d", m.MessageID, doc.NextMessageID)
		}
		numbers[*m.MessageID] = true
		if m.Role == events.DocumentUser {
			said += fmt.Sprintf("%d:%s ", *m.MessageID, *m.Content[0].Text)
		}
	}
	if want := "0:0 5:5 1:1 2:two 4:4 "; said != want {
		t.Errorf("the messages are %s, want %s", said, want)
	}
	if doc.NextMessageID != 11 || numbers[3] || len(numbers) != 10 {
		t.Errorf("of the numbers before %d, these are in use: %v", doc.NextMessageID, numbers)
	}
}
