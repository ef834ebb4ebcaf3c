package query

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections"
)

// model is a thread's messages as a plain list.
type model struct {
	*house
	rnd     *rand.Rand
	id      string
	side    string // another context
	list    []*said
	made    int
	waiting []string // commands of the commit in progress
}

// said is a message of the plain list.
type said struct {
	id, role, text, context string
	depth                   int
	silent, noText          bool
	calls                   []string
}

func (m *model) add(name string, format string, args ...any) {
	m.waiting = append(m.waiting, fmt.Sprintf(`{"command":%q,"data":%s}`, name, fmt.Sprintf(format, args...)))
}

// step makes a random change to the thread and to the list.
func (m *model) step() {
	var one *said
	at := 0
	if len(m.list) > 0 {
		at = m.rnd.IntN(len(m.list))
		one = m.list[at]
	}
	switch n := m.rnd.IntN(20); {
	case n < 9 || one == nil:
		m.made++
		s := &said{
			id: fmt.Sprintf("m%d", m.made), role: []string{"user", "assistant", "system", "tool"}[m.rnd.IntN(4)], text: fmt.Sprintf("text %d", m.made),
			silent: m.rnd.IntN(5) == 0, noText: m.rnd.IntN(6) == 0,
		}
		if m.rnd.IntN(4) == 0 {
			s.depth = m.rnd.IntN(12)
		}
		more := ""
		switch {
		case s.role == "tool":
			more = `,"toolCallId":"c"`
		case s.role == "assistant" && m.rnd.IntN(2) == 0:
			for i := range 1 + m.rnd.IntN(3) {
				s.calls = append(s.calls, fmt.Sprintf("c%d_%d", m.made, i))
			}
			more = fmt.Sprintf(`,"toolCalls":%q`, calls(s.calls))
		}
		if !s.noText {
			more += fmt.Sprintf(`,"content":%q`, s.text)
		}
		if m.rnd.IntN(6) == 0 {
			s.context = m.side
			more += fmt.Sprintf(`,"contextId":%q`, m.side)
		}
		m.add("message.add", `{"id":%q,"role":%q,"depth":%d,"silent":%v%s}`, s.id, s.role, s.depth, s.silent, more)
		m.list = append(m.list, s)
	case n < 11: // a call, or what only looks like one
		m.made++
		id := fmt.Sprintf("m%d", m.made)
		parent, depth := "", 0
		if m.rnd.IntN(3) > 0 {
			parent, depth = fmt.Sprintf(`"parentItemId":%q,`, one.id), one.depth+m.rnd.IntN(2)
		}
		m.add("item.create", `{"item":{"id":%q,"type":"action_execute",%s"depth":%d,"content":{"callId":%q,"name":"n","arguments":""}}}`, id, parent, depth, id)
		if parent != "" && one.role == "assistant" && one.context == "" && one.depth == depth && !one.alone() {
			one.calls = append(one.calls, id)
		} else {
			m.list = append(m.list, &said{id: id, role: "assistant", noText: true, depth: depth, calls: []string{id}})
		}
	case n < 12: // a reference is no message
		m.add("item.create", `{"item":{"type":"item_reference","content":{"itemId":%q}}}`, one.id)
	case n < 14:
		m.add("message.delete", `{"itemId":%q}`, one.id)
		m.list = slices.Delete(m.list, at, at+1)
	case n < 17:
		one.silent = m.rnd.IntN(2) == 0
		m.add("message.update", `{"messageId":%q,"silent":%v}`, one.id, one.silent)
	case !one.alone():
		m.made++
		one.text, one.noText = fmt.Sprintf("text %d", m.made), false
		m.add("message.update", `{"messageId":%q,"content":%q,"metadata":{"n":%d}}`, one.id, one.text, m.made)
	}
}

// alone reports whether the message is a call that is part of no other message.
func (s *said) alone() bool { return len(s.calls) == 1 && s.calls[0] == s.id }

func calls(ids []string) string {
	var all []string
	for _, id := range ids {
		all = append(all, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"n","arguments":""}}`, id))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// commit sends the waiting commands.
func (m *model) commit() {
	if len(m.waiting) > 0 {
		m.Do("thread.commit", m.id, `{"commands":[`+strings.Join(m.waiting, ",")+`]}`)
		m.waiting = nil
	}
}

// ask compares random pages with the list.
func (m *model) ask(a *asker, pages int) {
	m.Helper()
	for range pages {
		q := map[string]any{"threadId": m.id}
		silent, depth, context := m.rnd.IntN(2) == 0, -1, ""
		if silent {
			q["includeSilent"] = true
		}
		if m.rnd.IntN(3) == 0 {
			depth = m.rnd.IntN(13)
			q["maxDepth"] = depth
		}
		all := m.matching(func(s *said) bool { return (silent || !s.silent) && (depth < 0 || s.depth <= depth) })
		if m.rnd.IntN(4) == 0 {
			context = []string{"", m.side}[m.rnd.IntN(2)]
			all = slices.DeleteFunc(all, func(s *said) bool { return s.context != context })
			q["contextId"] = context
			if context == "" {
				q["contextId"] = ask[events.Thread](a, "thread.get", fmt.Sprintf(`{"threadId":%q}`, m.id)).ContextID
			}
		}
		if m.rnd.IntN(2) == 0 {
			q["order"] = "asc"
		} else {
			slices.Reverse(all)
		}
		offset, limit := 0, 1000
		if m.rnd.IntN(2) == 0 {
			offset = m.rnd.IntN(len(all) + 20)
			q["offset"] = offset
		}
		if m.rnd.IntN(4) > 0 {
			limit = m.rnd.IntN(80)
			q["limit"] = limit
		}
		total := len(all)
		want := all[min(offset, total):min(offset+limit, total)]
		m.compare(a, q, want, total, offset+limit < total)
	}
	for _, s := range m.list[:min(5, len(m.list))] {
		got := ask[events.ThreadMessage](a, "message.get", fmt.Sprintf(`{"threadId":%q,"messageId":%q}`, m.id, s.id))
		m.equal(got, s)
	}
}

func (m *model) matching(fits func(*said) bool) (out []*said) {
	for _, s := range m.list {
		if fits(s) {
			out = append(out, s)
		}
	}
	return out
}

func (m *model) compare(a *asker, q map[string]any, want []*said, total int, more bool) {
	m.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		m.Fatal(err)
	}
	got := ask[events.MessageList](a, "message.list", string(body))
	if got.Total != int64(total) || len(got.Messages) != len(want) || got.HasMore != more || (got.NextCursor != "") != more {
		m.Fatalf("%s: %d of %d, more %v; want %d of %d, more %v", body, len(got.Messages), got.Total, got.HasMore, len(want), total, more)
	}
	for i := range want {
		m.equal(&got.Messages[i], want[i])
	}
}

func (m *model) equal(got *events.ThreadMessage, want *said) {
	m.Helper()
	text, list := "", ""
	if got.Content != nil {
		text = *got.Content
	}
	if got.ToolCalls != nil {
		list = *got.ToolCalls
	}
	wantList := ""
	if len(want.calls) > 0 {
		wantList = calls(want.calls)
	}
	if got.ID != want.id || string(got.Role) != want.role || got.Depth != int64(want.depth) || got.Silent != want.silent ||
		(got.Content == nil) != want.noText || !want.noText && text != want.text || list != wantList {
		m.Fatalf("%+v %q %q, want %+v", got, text, list, want)
	}
}

// Random changes are made to a thread and to a list in memory: random pages are the same
// while it grows, at its end, in the past, and after the read models were rebuilt
// (SA-38..SA-45, C-9, C-12).
func TestMessagesAreAPlainList(t *testing.T) {
	t.Parallel()
	seeds, rounds := uint64(3), 60 // about 3,000 items: three blocks
	if raceDetector {
		seeds, rounds = 1, 20
	}
	for seed := range seeds {
		h := newHouse(t)
		r, stop := h.Run(projections.Config{})
		a := h.asker(Config{})
		m := &model{house: h, rnd: rand.New(rand.NewPCG(seed, 7)), id: h.Do("thread.create", "", `{}`).ThreadID}
		m.side = h.Do("context.create", m.id, `{"key":"side"}`).Result.ContextID
		for range rounds {
			for range 1 + m.rnd.IntN(70) {
				m.step()
			}
			m.commit()
			if m.rnd.IntN(8) == 0 {
				h.AwaitRunner(r)
				m.ask(a, 5)
			}
		}
		h.AwaitRunner(r)
		m.ask(a, 150)
		m.cursors(a)
		h.Same(m.id)
		if report := h.Verify(); report.Found != 0 {
			t.Errorf("a verification says %+v", report)
		}
		stop()
		m.rebuild()
	}
}

// cursors reads all pages by cursors; a commit in between shifts nothing.
func (m *model) cursors(a *asker) {
	m.Helper()
	var ids []string
	want := m.matching(func(s *said) bool { return !s.silent })
	slices.Reverse(want)
	cursor := ""
	for {
		page := ask[events.MessageList](a, "message.list", fmt.Sprintf(`{"threadId":%q,"limit":97%s}`, m.id, cursor))
		for _, got := range page.Messages {
			ids = append(ids, got.ID)
		}
		if !page.HasMore {
			break
		}
		if cursor == "" {
			m.made++
			s := &said{id: fmt.Sprintf("m%d", m.made), role: "user", noText: true}
			m.add("message.add", `{"id":%q,"role":"user"}`, s.id)
			m.commit()
			m.list = append(m.list, s)
		}
		cursor = `,"cursor":"` + page.NextCursor + `"`
	}
	if len(ids) != len(want) {
		m.Fatalf("%d messages by cursors, want %d", len(ids), len(want))
	}
	for i := range ids {
		if ids[i] != want[i].id {
			m.Fatalf("place %d holds %s, want %s", i, ids[i], want[i].id)
		}
	}
	a.refused(events.InvalidRequest, "message.list", fmt.Sprintf(`{"threadId":%q,"order":"asc"%s}`, m.id, cursor))
	a.refused(events.InvalidRequest, "message.list", fmt.Sprintf(`{"threadId":%q,"offset":3%s}`, m.id, cursor))
}

// rebuild removes every document, lets them be rebuilt from the log, and compares again.
func (m *model) rebuild() {
	m.Helper()
	for _, p := range m.Models.List() {
		if err := m.EventLog.JetStream().DeleteStream(m.Context(), "KV_"+p.Bucket); err != nil {
			m.Fatal(err)
		}
	}
	r := projections.New(m.NewLog(), projections.Config{}, zerolog.Nop(), nil)
	if err := r.Ensure(m.Context()); err != nil {
		m.Fatal(err)
	}
	_, stop := m.StartRunner(r)
	defer stop()
	m.AwaitRunner(r)
	m.ask(m.asker(Config{Progress: r.Progress()}), 60)
	m.Same(m.id)
}

// A look back shows the messages of that version.
func TestMessagesAsTheyWere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	h.Do("message.add", id, `{"id":"a","role":"user","content":"1"}`)
	then := h.Do("message.add", id, `{"id":"b","role":"assistant","toolCalls":`+fmt.Sprintf("%q", calls([]string{"x"}))+`}`)
	h.Do("message.update", id, `{"messageId":"a","content":"2","silent":true}`)
	h.Do("message.delete", id, `{"itemId":"b"}`)
	h.AwaitRunner(r)
	was := ask[events.MessageList](a, "message.list", fmt.Sprintf(`{"threadId":%q,"order":"asc","at":{"version":%d}}`, id, then.Version))
	if was.Total != 2 || *was.Messages[0].Content != "1" || was.Messages[1].ToolCalls == nil {
		t.Errorf("%+v", was)
	}
	if now := ask[events.MessageList](a, "message.list", fmt.Sprintf(`{"threadId":%q,"includeSilent":true}`, id)); now.Total != 1 || *now.Messages[0].Content != "2" {
		t.Errorf("%+v", now)
	}
	if got := ask[events.ThreadMessage](a, "message.get", fmt.Sprintf(`{"threadId":%q,"messageId":"b"}`, id)); got != nil {
		t.Errorf("%+v", got)
	}
	a.refused(events.NotFound, "message.get", `{"threadId":"T-01900000-0000-7000-8000-000000000000","messageId":"b"}`)
	a.refused(events.NotFound, "message.list", `{"threadId":"T-01900000-0000-7000-8000-000000000000"}`)
}

// The oldest calls of a message that exceeds its limit lose their arguments, and say so.
func TestLargeCalls(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	h.Do("message.add", id, `{"id":"a","role":"assistant","content":"x"}`)
	text := strings.Repeat(`\"`, 100<<10)
	for i := range 12 {
		h.Do("item.create", id, fmt.Sprintf(`{"item":{"type":"action_execute","parentItemId":"a","content":{"callId":"c%d","name":"n","arguments":{"t":"%s"}}}}`, i, text))
	}
	h.AwaitRunner(r)
	list := ask[events.MessageList](a, "message.list", fmt.Sprintf(`{"threadId":%q}`, id))
	one := ask[events.ThreadMessage](a, "message.get", fmt.Sprintf(`{"threadId":%q,"messageId":"a"}`, id))
	for _, m := range []*events.ThreadMessage{one, &list.Messages[0]} {
		if size := len(readtest.Encode(t, m)); size > events.MaxPayload-(64<<10) {
			t.Errorf("the message has %d bytes", size)
		}
		var got []struct {
			ID       string `json:"id"`
			Elided   bool   `json:"elided"`
			Function struct {
				Arguments string `json:"arguments"`
			} `json:"function"`
		}
		readtest.Unmarshal(t, *m.ToolCalls, &got)
		if len(got) != 12 || !got[0].Elided || got[0].Function.Arguments != "" || got[11].Elided || len(got[11].Function.Arguments) < 200<<10 {
			t.Errorf("%d calls, %v %v", len(got), got[0].Elided, got[11].Elided)
		}
		for i, c := range got {
			if c.ID != fmt.Sprintf("c%d", i) {
				t.Errorf("call %d is %s", i, c.ID)
			}
		}
	}
}

// A page and its counts are of one version of the thread, however fast that grows.
func TestMessagesAmidWrites(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{Progress: r.Progress()})
	id := h.Do("thread.create", "", `{}`).ThreadID
	const all = 400
	written := make(chan error, 1)
	go func() {
		for i := range all {
			if _, err := h.Try("message.add", id, fmt.Sprintf(`{"role":"user","content":"%d"}`, i)); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	h.AwaitRunner(r)
	for last, done := int64(0), false; last < all; {
		page := ask[events.MessageList](a, "message.list", fmt.Sprintf(`{"threadId":%q,"limit":20,"offset":5}`, id))
		if page.Total < last || int64(len(page.Messages)) != min(20, max(0, page.Total-5)) {
			t.Fatalf("%d of %d, after %d", len(page.Messages), page.Total, last)
		}
		for i, m := range page.Messages {
			if want := fmt.Sprint(page.Total - 6 - int64(i)); *m.Content != want {
				t.Fatalf("place %d of %d holds %s, want %s", i, page.Total, *m.Content, want)
			}
		}
		last = page.Total
		if !done {
			select {
			case err := <-written:
				if err != nil {
					t.Fatal(err)
				}
				done = true
				h.AwaitRunner(r)
			default:
			}
		}
	}
}

// What the document of a thread counts may be later than the index: a list of messages or items
// waits for the index, or says that it is behind.
func TestMessages_WaitForTheIndex(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, stop := h.Run(projections.Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	h.Do("message.add", id, `{"role":"user","content":"one"}`)
	h.AwaitRunner(r)
	stop()
	a := h.asker(Config{Wait: 20 * time.Millisecond})
	h.Await(a.q.cfg.Progress)
	a.q.cfg.Progress.Set(1) // the index shows the thread alone
	body := fmt.Sprintf(`{"threadId":%q}`, id)
	a.refused(events.ProjectionBehind, "message.list", body)
	a.refused(events.ProjectionBehind, "item.list", body)
	a.refused(events.ProjectionBehind, "thread.document", body)
}
