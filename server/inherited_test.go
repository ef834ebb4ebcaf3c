package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/projections/rebuild"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/schema"
)

// long returns a thread with some 260 items of 4 KB: messages of both roles, calls and results,
// silent ones, one that was deleted, and one that was edited long after it was made.
func (s *stage) long() (thread, edited string) {
	s.t.Helper()
	ctx := s.t.Context()
	thread = must(s.Send(ctx, "", events.CreateThread{Title: "Long", AgentID: "count"}))(s.t).ThreadID
	var first, gone string
	for round := range 13 {
		var batch events.CommitThread
		add := func(name string, data any) {
			batch.Commands = append(batch.Commands, events.SubCommand{Command: name, Data: must(json.Marshal(data))(s.t)})
		}
		for n := range 5 {
			text := fmt.Sprintf("%d.%d %s", round, n, strings.Repeat("x", 4<<10))
			call := fmt.Sprintf("call_%d_%d", round, n)
			asked := saying(text)
			asked.Item.Silent = n == 3
			add("item.create", asked)
			add("message.add", map[string]any{"role": "assistant", "content": text, "toolCalls": `[{"id":"` + call + `","type":"function","function":{"name":"probe","arguments":"{}"}}]`})
			add("message.add", map[string]any{"role": "tool", "toolCallId": call, "content": text})
		}
		reply := must(s.Client.Send(ctx, thread, batch))(s.t)
		if round == 0 {
			first, gone = reply.Result.Results[0].ItemID, reply.Result.Results[6].ItemID
		}
	}
	must(s.Client.Send(ctx, thread, events.EditMessage{ItemID: first, Content: events.JSON(`[{"type":"input_text","text":"edited"}]`)}))(s.t)
	must(s.Client.Send(ctx, thread, events.DeleteMessage{ItemID: gone}))(s.t)
	return thread, first
}

// items returns all items of a thread as they are, or were.
func (s *stage) items(thread string, at *events.At) []events.Item {
	s.t.Helper()
	var all []events.Item
	for cursor := ""; ; {
		page := must(client.Read(s.t.Context(), s.latest(), events.ListItems{ThreadID: thread, At: at, Cursor: cursor, Limit: new(int64(100))}))(s.t)
		all = append(all, page.Items...)
		if cursor = page.NextCursor; cursor == "" {
			if page.Total != int64(len(all)) {
				s.t.Errorf("%d of %d items of %s are listed", len(all), page.Total, thread)
			}
			return all
		}
	}
}

// document returns the messages of a thread's document as JSON.
func (s *stage) document(thread string) string {
	s.t.Helper()
	var messages []events.DocumentMessage
	for from := int64(0); ; {
		d := must(client.Read(s.t.Context(), s.latest(), events.GetThreadDocument{ThreadID: thread, FromMessage: &from}))(s.t)
		messages = append(messages, d.Messages...)
		if from = d.NextMessageIndex; from == 0 {
			break
		}
	}
	return string(must(json.Marshal(messages))(s.t))
}

// inherited returns what a thread has inherited with its first commit.
func (s *stage) inherited(thread string) *events.HistoryInherited {
	s.t.Helper()
	page := must(client.Read(s.t.Context(), s.Client, events.ListEvents{ThreadID: thread, Limit: new(int64(20))}))(s.t)
	for _, raw := range page.Events {
		if e := must(events.DecodeEvent(raw))(s.t); e.Type == events.HistoryInheritedType {
			return new(e.Data.(events.HistoryInherited))
		}
	}
	return nil
}

// sameItems compares what a fork has with what its parent had: ids and places of ids aside.
func (s *stage) sameItems(parent, child []events.Item) {
	s.t.Helper()
	if len(parent) != len(child) {
		s.t.Fatalf("%d items of %d", len(child), len(parent))
	}
	ids := map[string]string{"": ""}
	for i := range parent {
		ids[parent[i].ID] = child[i].ID
		want := parent[i]
		want.ID, want.ThreadID, want.ContextID, want.SourceItemID = child[i].ID, child[i].ThreadID, child[i].ContextID, parent[i].ID
		want.ParentItemID, want.Edited, want.UpdatedAt, want.Stamp, want.Status = ids[want.ParentItemID], false, "", child[i].Stamp, events.ItemCompleted
		if child[i].ID == parent[i].ID {
			s.t.Errorf("the copy of %s has the same id", parent[i].ID)
		}
		if a, b := must(json.Marshal(want))(s.t), must(json.Marshal(child[i]))(s.t); string(a) != string(b) {
			s.t.Fatalf("item %d is\n%.600s\nand not\n%.600s", i, b, a)
		}
	}
}

// verified checks the log, the contents and the read models.
func (s *stage) verified() {
	s.t.Helper()
	s.latest()
	nc := natstest.Dial(s.t, s.server.Addresses().NATS)
	defer nc.Close()
	log := must(eventlog.Open(nc, eventlog.Config{Patience: 5 * time.Minute}, zerolog.Nop(), nil))(s.t)
	defer log.Close()
	contents := must(audit.NewContents(s.t.Context(), log))(s.t)
	sum, err := audit.Verify(s.t.Context(), log, must(schema.New())(s.t), audit.Options{Checks: []audit.Check{contents}, Finding: func(f audit.Finding) { s.t.Error(f) }})
	if err != nil || sum.Threads == 0 {
		s.t.Errorf("%+v, %v", sum, err)
	}
	report, err := rebuild.Verify(s.t.Context(), log, rebuild.Scope{})
	if err != nil || report.Found > 0 {
		s.t.Errorf("%+v, %v", report, err)
	}
}

// A history over 512 KiB is inherited: the fork shows the same items, nothing of them is
// stored again by a second fork, and each thread goes its own way.
func TestFork_LongHistory(t *testing.T) {
	t.Parallel()
	var seen atomic.Int64
	s := newStage(t, withReactor("count", func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
		seen.Store(int64(len(in.Items)))
		return &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(`{"type":"output_text","text":"counted"}`)}}}, nil
	}))
	parent, edited := s.long()
	had := s.items(parent, nil)
	messages := s.document(parent)
	count := strings.Count(messages, `"role":`)
	fork := func(of string, d events.ForkThread) string {
		t.Helper()
		return must(s.Client.Send(t.Context(), of, d))(t).Result.ChildID
	}
	child := fork(parent, events.ForkThread{MessageIndex: new(int64(count - 1))})
	from := s.inherited(child)
	if from == nil || from.ThreadID != parent || len(from.Pages) < 4 {
		t.Fatalf("the fork inherits %+v", from)
	}
	s.sameItems(had, s.items(child, nil))
	if got := s.document(child); got != messages {
		t.Errorf("the document of the fork is\n%.900s\nand not\n%.900s", got, messages)
	}
	s.verified()

	stored := s.objectsHeld()
	again := fork(parent, events.ForkThread{ItemID: edited})
	if got := s.items(again, nil); s.inherited(again) != nil || len(got) != 1 || !strings.Contains(string(got[0].Content), "edited") {
		t.Errorf("the short fork has %d items, and inherits %+v", len(got), s.inherited(again))
	}
	twin := fork(parent, events.ForkThread{MessageIndex: new(int64(count - 1))})
	if same := s.inherited(twin); !slices.EqualFunc(same.Pages, from.Pages, func(a, b events.HistoryPart) bool { return a.Digest == b.Digest }) || s.objectsHeld() != stored {
		t.Errorf("the second fork has pages of its own: the store has %d bytes, and had %d", s.objectsHeld(), stored)
	}
	s.sameItems(had, s.items(twin, nil))
	most := fork(parent, events.ForkThread{MessageIndex: new(int64(count * 7 / 8))})
	if part := s.inherited(most); part == nil || part.Pages[0].Digest != from.Pages[0].Digest || s.objectsHeld() > stored+32<<10 {
		t.Errorf("the fork of most of it inherits %+v", part)
	}
	mostly := s.items(most, nil)
	s.sameItems(had[:len(mostly)], mostly)

	// An id is enough to find an inherited item.
	mine := s.items(child, nil)
	if got := must(client.Read(t.Context(), s.Client, events.GetItem{ItemID: mine[7].ID}))(t); got.ThreadID != child || string(got.Content) != string(mine[7].Content) {
		t.Errorf("the item by its id alone: %+v", got)
	}

	// The fork's own changes.
	at := must(client.Read(t.Context(), s.latest(), events.GetThread{ThreadID: child}))(t).Version
	must(s.Client.Send(t.Context(), child, events.EditMessage{ItemID: mine[5].ID, Content: events.JSON(`[{"type":"output_text","text":"mine"}]`)}))(t)
	must(s.Client.Send(t.Context(), child, events.EditMessage{ItemID: mine[0].ID, Silent: new(true)}))(t)
	must(s.Client.Send(t.Context(), child, events.DeleteMessage{ItemID: mine[9].ID}))(t)
	x := must(s.Client.Send(t.Context(), child, events.ReactThread{Text: new("how many?")}))(t)
	if e := s.end(x); e.Status != events.ExecutionCompleted || seen.Load() != int64(len(had)) {
		t.Errorf("the run ended %s %s; the model was sent %d items of %d", e.Status, e.ErrorText, seen.Load(), len(had))
	}
	now := s.items(child, nil)
	if len(now) != len(had)+1 || string(now[5].Content) != `[{"type":"output_text","text":"mine"}]` || !now[0].Silent || now[9].ID == mine[9].ID {
		t.Errorf("the fork has %d items; item 5 is %.80s", len(now), now[5].Content)
	}
	if next := now[len(now)-1]; next.Index%events.HistoryAlign != 1 || next.Index <= had[len(had)-1].Index {
		t.Errorf("its own items begin at %d", next.Index-1)
	}
	for _, d := range []events.GetItem{{ThreadID: child, ItemID: mine[9].ID}, {ItemID: mine[9].ID}, {ItemID: mine[7].ID + "0"}} {
		if _, err := client.Read(t.Context(), s.latest(), d); events.AsError(err).Code != events.NotFound {
			t.Errorf("item %+v, which is deleted or none: %v", d, err)
		}
	}
	if got := must(client.Read(t.Context(), s.Client, events.GetItem{ItemID: mine[5].ID}))(t); string(got.Content) != string(now[5].Content) {
		t.Errorf("the edited item by its id alone: %.80s", got.Content)
	}
	s.sameItems(had, s.items(child, &events.At{Version: &at}))
	s.sameItems(had, s.items(twin, nil))
	s.verified()

	// A fork of the fork has the changes, and shares the pages that did not change.
	grand := fork(child, events.ForkThread{MessageIndex: new(int64(count - 3))})
	if got := s.inherited(grand); got == nil || got.ThreadID != child || got.Pages[0].Digest == from.Pages[0].Digest || got.Pages[1].Digest != from.Pages[1].Digest {
		t.Errorf("the fork of the fork inherits %+v", got)
	}
	if got := s.items(grand, nil); !got[0].Silent || string(got[5].Content) != string(now[5].Content) {
		t.Errorf("the fork of the fork: %.100s", got[5].Content)
	}

	// Truncation hides inherited items, and the parent's end takes nothing from its forks.
	must(s.Client.Send(t.Context(), twin, events.TruncateThread{MessageIndex: new(int64(3))}))(t)
	if d := s.document(twin); strings.Count(d, `"role":`) != 4 {
		t.Errorf("the truncated fork has %d messages", strings.Count(d, `"role":`))
	}
	must(s.Client.Send(t.Context(), parent, events.DeleteThread{Purge: true}))(t)
	if got := s.items(child, nil); len(got) != len(now) {
		t.Errorf("the fork has %d items after its parent was purged", len(got))
	}
	s.verified()
}

// objectsHeld returns the bytes of the store of contents.
func (s *stage) objectsHeld() uint64 {
	s.t.Helper()
	status := must(s.objects().Status(s.t.Context()))(s.t)
	return status.Size()
}

// A thread whose inherited history is lost says so, and can still be read where the page is not
// needed, and be deleted.
func TestFork_LostPage(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	parent, _ := s.long()
	child := must(s.Client.Send(t.Context(), parent, events.ForkThread{MessageIndex: new(int64(170))}))(t).Result.ChildID
	pages := s.inherited(child).Pages
	lose := func() {
		t.Helper()
		if err := s.objects().Delete(t.Context(), "acme/"+pages[1].Digest); err != nil {
			t.Fatal(err)
		}
	}
	lose()
	twin := must(s.Client.Send(t.Context(), parent, events.ForkThread{MessageIndex: new(int64(170))}))(t).Result.ChildID
	if _, err := s.objects().GetInfo(t.Context(), "acme/"+pages[1].Digest); err != nil || s.inherited(twin).Pages[1].Digest != pages[1].Digest {
		t.Errorf("the next fork names a page that is lost: %v", err)
	}
	must(s.Client.Send(t.Context(), twin, events.DeleteThread{Purge: true}))(t)
	lose()
	s.stop()
	s.start("acme")

	nc := s.plain()
	for subject, body := range map[string]string{
		"skein.cmd.acme.item.create": `{"threadId":%q,"data":{"item":{"type":"message","role":"user","channel":"web","content":[]}}}`,
		"skein.cmd.acme.thread.fork": `{"threadId":%q,"data":{"messageIndex":150}}`,
		"skein.query.acme.item.list": `{"threadId":%q,"limit":100}`,
	} {
		if m := must(nc.Request(subject, fmt.Appendf(nil, body, child), time.Minute))(t); !strings.Contains(string(m.Data), `"unavailable"`) {
			t.Errorf("%s without a page of the history: %.300s", subject, m.Data)
		}
	}
	if got := must(client.Read(t.Context(), s.Client, events.GetThread{ThreadID: child}))(t); got.Title == "" {
		t.Errorf("the thread is %+v", got)
	}
	must(s.Client.Send(t.Context(), child, events.DeleteThread{Purge: true}))(t)
	if _, err := client.Read(t.Context(), s.latest(), events.GetThread{ThreadID: child}); events.AsError(err).Code != events.NotFound {
		t.Errorf("the deleted thread: %v", err)
	}
	must(s.Client.Send(t.Context(), parent, saying("more")))(t)
	again := must(s.Client.Send(t.Context(), parent, events.ForkThread{MessageIndex: new(int64(170))}))(t).Result.ChildID
	s.sameItems(s.items(parent, nil)[:len(s.items(again, nil))], s.items(again, nil)) // its pages are stored again
	s.verified()
}

// A fork of more items than a block of counts covers counts, numbers and finds them as its parent
// did, also where whole pages of the history have no item any more.
func TestFork_ManyItems(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	parent := must(s.Send(t.Context(), "", events.CreateThread{}))(t).ThreadID
	var ids []string
	for len(ids) < 1300 {
		var batch events.CommitThread
		for n := range 50 {
			asked := saying(fmt.Sprintf("%d %s", len(ids)+n, strings.Repeat("y", 700)))
			asked.Item.Silent = n%10 == 7
			batch.Commands = append(batch.Commands, events.SubCommand{Command: "item.create", Data: must(json.Marshal(asked))(t)})
		}
		for _, r := range must(s.Client.Send(t.Context(), parent, batch))(t).Result.Results {
			ids = append(ids, r.ItemID)
		}
	}
	var batch events.CommitThread
	for n, id := range ids[500:1200] { // a page in the middle has none left, others a few
		if n < 450 || n%3 == 0 {
			batch.Commands = append(batch.Commands, events.SubCommand{Command: "message.delete", Data: must(json.Marshal(events.DeleteMessage{ItemID: id}))(t)})
		}
		if len(batch.Commands) == 50 || n == 699 {
			must(s.Client.Send(t.Context(), parent, batch))(t)
			batch = events.CommitThread{}
		}
	}
	must(s.Client.Send(t.Context(), parent, events.EditMessage{ItemID: ids[2], Silent: new(true)}))(t)
	must(s.Client.Send(t.Context(), parent, events.EditMessage{ItemID: ids[7], Silent: new(false)}))(t)
	last := ids[len(ids)-1]
	child := must(s.Client.Send(t.Context(), parent, events.ForkThread{ItemID: last}))(t).Result.ChildID
	if from := s.inherited(child); from == nil || len(from.Pages) < 4 {
		t.Fatalf("the fork inherits %+v", from)
	}
	list := func(thread string, d events.ListMessages) (string, int64) {
		t.Helper()
		d.ThreadID = thread
		page := must(client.Read(t.Context(), s.latest(), d))(t)
		var text strings.Builder
		for _, m := range page.Messages {
			head, _, _ := strings.Cut(*m.Content, " ")
			text.WriteString(head + " ")
		}
		return text.String(), page.Total
	}
	for _, silent := range []bool{false, true} {
		for _, order := range []events.Order{"asc", "desc"} {
			for offset := int64(0); offset < 900; offset += 97 {
				d := events.ListMessages{GetMessagesOptions: events.GetMessagesOptions{Limit: new(int64(13)), Offset: &offset, Order: order, IncludeSilent: silent}}
				want, all := list(parent, d)
				if got, total := list(child, d); got != want || total != all || want == "" && offset < all {
					t.Errorf("from %d, %s, silent %v: %q of %d, want %q of %d", offset, order, silent, got, total, want, all)
				}
			}
		}
	}

	// An index counts what is shown now.
	for _, index := range []int64{5, 6, 30} {
		fork := must(s.Client.Send(t.Context(), parent, events.ForkThread{MessageIndex: &index}))(t).Result.ChildID
		one := events.GetMessagesOptions{Limit: new(int64(1)), Order: "asc", Offset: &index}
		want, _ := list(parent, events.ListMessages{GetMessagesOptions: one})
		if got, total := list(fork, events.ListMessages{GetMessagesOptions: one}); got != want || total != index+1 {
			t.Errorf("the fork at %d ends with %s, the message %d, and not with %s", index, got, total-1, want)
		}
	}

	// Both go on with the same number.
	for _, thread := range []string{parent, child} {
		must(s.Client.Send(t.Context(), thread, saying("mine")))(t)
	}
	number := func(thread string) int64 {
		items := s.items(thread, nil)
		return *items[len(items)-1].MessageID
	}
	if a, b := number(parent), number(child); a != b || a != 1300 {
		t.Errorf("the next message has number %d in the parent, and %d in the fork", a, b)
	}
	if a, b := must(client.Read(t.Context(), s.latest(), events.GetThread{ThreadID: parent}))(t), must(client.Read(t.Context(), s.Client, events.GetThread{ThreadID: child}))(t); a.ItemTypes != b.ItemTypes {
		t.Errorf("the fork counts %+v, its parent %+v", b.ItemTypes, a.ItemTypes)
	}

	// What was done to inherited items is known to a process that did not do it.
	mine := s.items(child, nil)
	must(s.Client.Send(t.Context(), child, events.DeleteMessage{ItemID: mine[3].ID}))(t)
	must(s.Client.Send(t.Context(), child, events.TruncateThread{MessageIndex: new(int64(500))}))(t)
	s.stop()
	s.start("acme")
	for _, gone := range []string{mine[3].ID, mine[len(mine)-2].ID} {
		if _, err := s.Client.Send(t.Context(), child, events.EditMessage{ItemID: gone, Silent: new(true)}); events.AsError(err).Code != events.NotFound {
			t.Errorf("an edit of an item that is hidden: %v", err)
		}
	}
	must(s.Client.Send(t.Context(), child, events.EditMessage{ItemID: mine[400].ID, Silent: new(true)}))(t)
	s.verified()
}
