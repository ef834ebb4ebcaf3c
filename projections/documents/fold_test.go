package documents

import (
	"errors"
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// shows folds a history and compares documents with JSON, given by kind and id.
// Times are those of the history: its n-th commit is at second n.
func shows(t *testing.T, h *history, want map[Place]string) {
	t.Helper()
	s := fold(t, h, Until{})
	for p, doc := range want {
		p.Thread = ThreadName(tenant, h.id)
		got := "nothing"
		if have := s.Get(p); have != nil {
			raw, err := Encode(have)
			if err != nil {
				t.Fatal(err)
			}
			got = string(raw)
		}
		if doc == "" {
			doc = "nothing"
		}
		doc = strings.ReplaceAll(doc, "$T", h.id)
		if got != doc && !sameJSON(got, doc) {
			t.Errorf("%s %s:\nis   %s\nwant %s", NewModels().Of(p.Kind).Name, p.ID, got, doc)
		}
	}
}

func sameJSON(a, b string) bool {
	x, y := events.JSON(a), events.JSON(b)
	return (*jsontext.Value)(&x).Canonicalize() == nil && (*jsontext.Value)(&y).Canonicalize() == nil && string(x) == string(y)
}

func fold(t testing.TB, h *history, until Until) *Memory {
	t.Helper()
	s, err := NewModels().Fold(func(yield func(*events.Commit, error) bool) {
		for _, c := range h.commits {
			if !yield(c, nil) {
				return
			}
		}
	}, until, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The first commit of a history is at 10:00:01.123.
const at = `"2026-02-20T10:00:0`

// TestThread shows EK-15..EK-20.
func TestThread(t *testing.T) {
	h := newHistory(t, 1)
	h.do(events.CreateThread{Key: "support/42", AgentID: "triage", UserID: "u", Title: "T", Metadata: raw(`{"a":1}`), Env: raw(`{"tree":"main"}`)})
	ctx := h.state.Default
	created := `"id":"$T","key":"support/42","createdAt":` + at + `1.123Z","contextId":"` + ctx + `"`
	shows(t, h, map[Place]string{{}: `{` + created + `,"status":"open","agentId":"triage","userId":"u","title":"T","metadata":{"a":1},"env":{"tree":"main"},"createdAtMicros":1771581601123456,"version":3,"seq":3}`})

	h.do(events.SetThreadStatus{To: events.ThreadStreaming})
	h.do(events.UpdateThread{Title: to(""), Archived: to(true), Draft: to("d"), AutoSubmitDraft: to(true), AgentMode: to("m"), MaxTokens: to(int64(9)), UserID: to(""), Metadata: raw(`{"b":2}`)})
	h.add(events.Event{Type: events.AgentAssignedType, Data: events.AgentAssigned{AgentID: "billing"}})
	h.add(events.Event{Type: events.KeyReleasedType, Data: events.KeyReleased{Key: "support/42", ThreadID: h.id}})
	shows(t, h, map[Place]string{{}: `{` + strings.Replace(created, `"support/42"`, "null", 1) + `,"status":"streaming","updatedAt":` + at + `5.123Z","agentId":"billing","archived":true,
		"draft":"d","autoSubmitDraft":true,"agentMode":"m","maxTokens":9,"metadata":{"b":2},"env":{"tree":"main"},"createdAtMicros":1771581601123456,"changes":4,"version":7,"seq":15}`})

	// What it does not show by a field of its own, it shows by its version.
	h.add(events.Event{Type: events.FileWrittenType, Data: events.FileWritten{Path: "/a", MimeType: "text/plain"}})
	got := fold(t, h, Until{}).Get(Place{Thread: ThreadName(tenant, h.id)}).(*events.Thread)
	if got.Version != 8 || got.UpdatedAt != "2026-02-20T10:00:06.123Z" {
		t.Errorf("%+v", got)
	}
	h.do(events.DeleteThread{})
	if left := fold(t, h, Until{}).All(AllKinds); len(left) != 0 {
		t.Errorf("%d documents outlive their thread", len(left))
	}
}

// A document for each path that is there: SA-95, SA-96, SA-105, SA-106, SA-130.
func TestFiles(t *testing.T) {
	h := newHistory(t, 9)
	h.do(events.CreateThread{})
	h.do(events.WriteFile{Path: "/a/b.txt", MimeType: "text/plain", Metadata: raw(`{"k":1}`), Stored: &events.FileContent{Digest: "ab12", Size: 7, Width: 3, Height: 4}})
	h.do(events.CreateDirectory{Path: "/a/c"})
	file := func(path string) Place { return Place{Kind: Files, ID: FileID(path)} }
	second := func(n int64) string { return strconv.FormatInt(1771581600123456+n*1e6, 10) }
	shows(t, h, map[Place]string{
		file("/a"): `{"path":"/a","name":"a","mimeType":"inode/directory","storage":"directory","size":0,"isDirectory":true,"threadId":"$T",
			"createdAt":` + second(2) + `,"updatedAt":` + second(2) + `,"version":4,"seq":6}`,
		file("/a/b.txt"): `{"path":"/a/b.txt","name":"b.txt","mimeType":"text/plain","storage":"sha256:ab12","digest":"ab12","size":7,"isDirectory":false,"threadId":"$T",
			"width":3,"height":4,"metadata":{"k":1},"createdAt":` + second(2) + `,"updatedAt":` + second(2) + `,"version":4,"seq":6}`,
	})
	h.do(events.WriteFile{Path: "/a/b.txt", External: "s3://b/k", MimeType: "x/y"})
	h.do(events.RemoveDirectory{Path: "/a/c"})
	shows(t, h, map[Place]string{
		file("/a/c"): "",
		file("/a/b.txt"): `{"path":"/a/b.txt","name":"b.txt","mimeType":"x/y","storage":"s3://b/k","external":true,"size":0,"isDirectory":false,"threadId":"$T",
			"createdAt":` + second(2) + `,"updatedAt":` + second(4) + `,"version":6,"seq":12}`,
	})
	h.do(events.DeleteFile{Path: "/a/b.txt"})
	shows(t, h, map[Place]string{file("/a/b.txt"): ""})
	h.do(events.DeleteThread{})
	shows(t, h, map[Place]string{file("/a"): ""})
}

// TestContext shows EK-21..EK-29 and EK-160.
func TestContext(t *testing.T) {
	h := newHistory(t, 2)
	h.do(events.CreateThread{Context: raw(`{"a":1,"b":{"c":2}}`)})
	id := h.state.Default
	h.do(events.CreateContext{ID: "side", Key: "notes"})
	h.do(events.SetContext{Patch: raw(`{"a":null,"b":{"d":3}}`)})
	h.do(events.SetContext{ContextID: "side", Content: raw(`[1, 2]`)})
	h.do(events.SetContextStatus{ContextID: "side", To: events.ContextStreaming}, message("i1", "x"), message("i2", "y"))
	h.do(events.DeleteMessage{ItemID: "i1"})
	shows(t, h, map[Place]string{
		{Kind: Contexts, ID: id}: `{"id":"` + id + `","key":null,"threadId":"$T","status":"open","content":{"b":{"c":2,"d":3}},"createdAt":` + at + `1.123Z",
			"updatedAt":` + at + `6.123Z","itemTypes":{"message":1},"version":9,"seq":18}`,
		{Kind: Contexts, ID: "side"}: `{"id":"side","key":"notes","threadId":"$T","status":"streaming","content":[1,2],"createdAt":` + at + `2.123Z",
			"updatedAt":` + at + `5.123Z","version":8,"seq":15}`,
	})
	h.do(events.SetContext{ContextID: "side", Content: raw(`null`)})
	shows(t, h, map[Place]string{{Kind: Contexts, ID: "side"}: `{"id":"side","key":"notes","threadId":"$T","status":"streaming","content":null,"createdAt":` + at + `2.123Z",
			"updatedAt":` + at + `7.123Z","version":10,"seq":21}`})
}

// TestItem shows EK-33..EK-38 and EK-161.
func TestItem(t *testing.T) {
	h := newHistory(t, 3)
	h.do(events.CreateThread{})
	ctx := h.state.Default
	h.do(events.CreateItem{Item: events.NewItem{
		ID: "i1", Type: events.Message, Role: events.User, Channel: events.Web, Content: raw(`[{"type":"input_text","text":"hi"}]`),
		CreatedAt: "2020-01-01T00:00:00Z", Metadata: raw(`{"a":1,"b":2}`), Depth: to(int64(1)), Silent: true,
	}})
	h.do(events.CreateItem{Item: events.NewItem{ID: "i2", Type: events.ActionResult, ParentItemID: "i1", Content: raw(`{"callId":"c","output":[1]}`)}})
	h.do(events.SetItemStatus{ItemID: "i2", To: events.ItemCompleted})
	h.do(events.EditMessage{ItemID: "i1", Metadata: raw(`{"b":3,"c":null}`), Silent: to(false)})
	shows(t, h, map[Place]string{
		{Kind: Items, ID: "i1"}: `{"id":"i1","threadId":"$T","contextId":"` + ctx + `","type":"message","role":"user","status":"stored","channel":"web",
			"content":[{"type":"input_text","text":"hi"}],"createdAt":"2020-01-01T00:00:00.000Z","updatedAt":` + at + `5.123Z","index":0,"depth":1,
			"metadata":{"a":1,"b":3,"c":null},"messageId":0,"createdAtMicros":1577836800000000,"version":6,"seq":15}`,
		{Kind: Items, ID: "i2"}: `{"id":"i2","threadId":"$T","contextId":"` + ctx + `","type":"action_result","status":"completed",
			"content":{"callId":"c","output":[1]},"createdAt":` + at + `3.123Z","updatedAt":` + at + `4.123Z","index":1,"parentItemId":"i1","createdAtMicros":1771581603123456,"version":5,"seq":12}`,
	})
	h.do(events.EditMessage{ItemID: "i1", Content: raw(`[]`)})
	got := fold(t, h, Until{}).Get(Place{Kind: Items, Thread: ThreadName(tenant, h.id), ID: "i1"}).(*events.Item)
	if !got.Edited || string(got.Content) != "[]" {
		t.Errorf("%+v", got)
	}
	h.do(events.DeleteMessage{ItemID: "i1"})
	shows(t, h, map[Place]string{{Kind: Items, ID: "i1"}: ``})
}

// TestExecution shows EK-51..EK-60, EK-61..EK-72, EK-73..EK-79, and EK-162..EK-164:
// what hangs on what.
func TestExecution(t *testing.T) {
	h := newHistory(t, 4)
	h.do(events.CreateThread{})
	ctx := h.state.Default
	h.do(message("i1", "x"))
	h.do(events.CreateExecution{ID: "e", TriggerItemID: "i1", ReactionItemID: "r", WorkflowRunID: "w"})
	h.do(events.CreateStep{ID: "s", ExecutionID: "e"})
	h.do(events.PutPart{StepID: "s", Idx: to(int64(0)), Type: "output_text", Part: raw(`{"a": 1}`)})
	h.do(events.PutPart{StepID: "s", Idx: to(int64(1))})
	h.do(events.PutPart{StepID: "s", Idx: to(int64(0)), Part: raw(`2`)})
	h.do(events.SetStepStatus{StepID: "s", To: events.StepFailed, ToolCalls: raw(`[1]`), ToolExecutionResults: raw(`[2]`), ContinueLoop: to(false), ErrorText: "no"})
	h.do(events.SetExecutionStatus{ExecutionID: "e", To: events.ExecutionFailed, ErrorText: "no"}, events.FinishThread{ExecutionID: "e"})
	shows(t, h, map[Place]string{
		{Kind: Executions, ID: "e"}: `{"id":"e","threadId":"$T","contextId":"` + ctx + `","triggerItemId":"i1","reactionItemId":"r","workflowRunId":"w",
			"status":"failed","errorText":"no","finished":true,"stepCount":1,"createdAt":` + at + `3.123Z","updatedAt":` + at + `9.123Z","version":11,"seq":27}`,
		{Kind: Steps, ID: "e.s"}: `{"id":"s","threadId":"$T","executionId":"e","iteration":0,"status":"failed","eventId":"r","toolCalls":[1],
			"toolExecutionResults":[2],"continueLoop":false,"errorText":"no","createdAt":` + at + `4.123Z","updatedAt":` + at + `8.123Z","version":9,"seq":24}`,
		{Kind: Parts, ID: "s.0"}: `{"key":"s:0","threadId":"$T","stepId":"s","idx":0,"part":2,"updatedAt":` + at + `7.123Z","version":8,"seq":21}`,
		{Kind: Parts, ID: "s.1"}: `{"key":"s:1","threadId":"$T","stepId":"s","idx":1,"version":7,"seq":18}`,
	})
}

// TestTrace shows EK-157..EK-159.
func TestTrace(t *testing.T) {
	h := newHistory(t, 5)
	h.do(events.CreateThread{})
	h.do(message("i1", "x"))
	h.do(events.CreateExecution{ID: "e", TriggerItemID: "i1", SessionID: "sess_1"})
	h.do(events.CreateStep{ID: "s", ExecutionID: "e"})
	record := func(d events.TraceRecorded) string {
		d.SessionID = "sess_1"
		return h.add(events.Event{Type: events.TraceRecordedType, Correlation: "e", Data: d}).Events[0].ID
	}
	usage := record(events.TraceRecorded{Kind: "usage", ExecutionID: "e", Usage: &events.Usage{InputTokens: 3}, Data: raw(`{"in":3}`)})
	line := record(events.TraceRecorded{Kind: "log", SpanID: "s", Level: "warn", Text: "slow"})
	record(events.TraceRecorded{Kind: "span", SpanID: "call", ParentID: "s", Name: "tool", StartedAt: "2026-02-20T10:00:06.5Z", Data: raw(`1`)})
	record(events.TraceRecorded{Kind: "span", SpanID: "s", Data: raw(`{"model":"m"}`)})
	lost := record(events.TraceRecorded{Kind: "span", Name: "of no id"})
	h.do(events.SetStepStatus{StepID: "s", To: events.StepCompleted})
	h.do(events.SetExecutionStatus{ExecutionID: "e", To: events.ExecutionCompleted})
	shows(t, h, map[Place]string{
		{Kind: TraceRuns, ID: "e"}: `{"id":"e","threadId":"$T","sessionId":"sess_1","status":"completed","startedAt":` + at + `3.123Z","endedAt":"2026-02-20T10:00:11.123Z",
			"micros":8000456,"actor":"tester","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","usage":{"inputTokens":3},"version":12,"seq":33}`,
		{Kind: TraceSpans, ID: "e.s"}: `{"id":"s","runId":"e","threadId":"$T","sessionId":"sess_1","name":"step 0","status":"completed","startedAt":` + at + `4.123Z",
			"endedAt":"2026-02-20T10:00:10.123Z","micros":6000456,"data":{"model":"m"},"version":11,"seq":30}`,
		{Kind: TraceSpans, ID: "e.call"}: `{"id":"call","runId":"e","threadId":"$T","sessionId":"sess_1","parentId":"s","name":"tool","startedAt":` + at + `6.500Z",
			"endedAt":` + at + `7.123Z","micros":623456,"data":1,"version":8,"seq":21}`,
		{Kind: TraceEvents, ID: usage}: `{"id":"` + usage + `","threadId":"$T","runId":"e","sessionId":"sess_1","kind":"usage","usage":{"inputTokens":3},"data":{"in":3},"at":` + at + `5.123Z","atMicros":1771581605123456,"place":6,"version":6,"seq":15}`,
		{Kind: TraceEvents, ID: line}:  `{"id":"` + line + `","threadId":"$T","runId":"e","sessionId":"sess_1","spanId":"s","kind":"log","level":"warn","text":"slow","at":` + at + `6.123Z","atMicros":1771581606123456,"place":7,"version":7,"seq":18}`,
		{Kind: TraceEvents, ID: lost}:  `{"id":"` + lost + `","threadId":"$T","runId":"e","sessionId":"sess_1","kind":"span","at":` + at + `9.123Z","atMicros":1771581609123456,"place":10,"version":10,"seq":27}`,
	})
}

// TestHidden hides items in every way, several of them in one commit, and counts
// each once.
func TestHidden(t *testing.T) {
	h := newHistory(t, 6)
	h.do(events.CreateThread{})
	var list []any
	for i := range 150 {
		list = append(list, message("m"+PageID(int64(i)), "x"))
	}
	h.do(list...)
	del := func(i int64) events.Event {
		return events.Event{Type: events.MessageDeletedType, Subject: "m" + PageID(i), Data: events.MessageDeleted{ContextID: h.state.Default, Type: events.Message, Index: i}}
	}
	cut := func(i int64) events.Event {
		return events.Event{Type: events.HistoryTruncatedType, Data: events.HistoryTruncated{FromIndex: i}}
	}
	h.add(del(5), del(70), cut(140), cut(145), del(149), del(5))
	h.add(cut(100), cut(100))
	h.add(cut(1000))
	check := func(s *Memory, want int64) {
		t.Helper()
		name := ThreadName(tenant, h.id)
		thread := s.Get(Place{Thread: name}).(*events.Thread)
		ctx := s.Get(Place{Kind: Contexts, Thread: name, ID: h.state.Default}).(*events.Context)
		if thread.Items != want || thread.ItemTypes.Message != want || ctx.ItemTypes.Message != want || thread.NextItem != 150 {
			t.Errorf("the thread has %d (%d), its context %d, want %d; next %d", thread.Items, thread.ItemTypes.Message, ctx.ItemTypes.Message, want, thread.NextItem)
		}
		if n := len(s.All(Mask(0).With(Items))); n != int(want) {
			t.Errorf("%d documents of items, want %d", n, want)
		}
		shown := int64(0)
		for _, slot := range s.All(Mask(0).With(Index)) {
			page := slot.Doc.(*Page)
			for i := range page.Entries {
				if page.Entries[i].ShownAt(thread.Version + 1) {
					shown++
				}
			}
		}
		if shown != want {
			t.Errorf("the index shows %d, want %d", shown, want)
		}
	}
	check(fold(t, h, Until{}), 98)
	check(fold(t, h, Until{Seq: 9}), 138)
	check(fold(t, h, Until{Version: 152 + 3}), 138)
	check(fold(t, h, Until{Version: 152 + 1}), 149)
}

// TestEntryIsSmall: what a page of the index looks like.
func TestEntryIsSmall(t *testing.T) {
	e := Entry{Index: 7, ID: `i"7`, Context: 1, Type: events.ActionResult, Made: 12, Hidden: 13}
	b, err := json.Marshal(e)
	if err != nil || string(b) != `[7,"i\"7",1,"action_result",12,13]` {
		t.Fatalf("%s, %v", b, err)
	}
	var back Entry
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, e) {
		t.Errorf("%+v, %v", back, err)
	}
	e = Entry{Index: 7, ID: "i", Type: events.Message, Made: 12, Silent: true, Depth: 2, Calls: []int64{8, 9}}
	if b, err = json.Marshal(e); err != nil || string(b) != `[7,"i",0,"message",12,0,1,2,[8,9]]` {
		t.Fatalf("%s, %v", b, err)
	}
	back = Entry{}
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, e) {
		t.Errorf("%+v, %v", back, err)
	}
	for _, bad := range []string{`[]`, `{}`, `[1,2,3,4,5,6]`, `[1,"a",0,"message",1]`} {
		if json.Unmarshal([]byte(bad), &back) == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// A fold that is interrupted anywhere and continued shows what one in a single pass shows, reads no
// commit again, and none beyond its bound.
func TestFold_Continue(t *testing.T) {
	h := newHistory(t, 34)
	h.do(events.CreateThread{})
	for i := range 6 {
		h.do(message(strconv.Itoa(i), "x"))
	}
	within := h.commits[4].Events[0].Time // of one commit, and not of all of it
	h.commits[4].Events[len(h.commits[4].Events)-1].Time = within + 1
	torn := errors.New("torn")
	for _, until := range []Until{{}, {Version: h.commits[4].Version}, {Version: h.commits[4].Version - 1}, {Time: within}, {Seq: h.commits[4].Seq}} {
		want, f := fold(t, h, until), NewModels().NewFold(until)
		read, bytes, beyond := map[uint64]int{}, int64(0), 0
		upTo := func(n int) iter.Seq2[*events.Commit, error] {
			return func(yield func(*events.Commit, error) bool) {
				for _, c := range h.commits {
					if c.Seq <= f.Memory.Seq {
						continue
					}
					if n == 0 {
						yield(nil, torn)
						return
					}
					n--
					if read[c.Seq]++; !yield(c, nil) {
						return
					}
				}
			}
		}
		for n := range 20 {
			err := f.Continue(upTo(n%3), nil)
			if err == nil && n > 8 {
				break
			}
			if err != nil && !errors.Is(err, torn) {
				t.Fatal(err)
			}
		}
		if err := f.Continue(upTo(len(h.commits)), nil); err != nil {
			t.Fatal(err)
		}
		for _, c := range h.commits {
			if c.Seq <= want.Seq {
				bytes += int64(len(c.Body))
			}
			if n := read[c.Seq]; n > 1 {
				t.Errorf("until %+v: commit %d was read %d times", until, c.Seq, n)
			}
			if c.Seq > want.Seq {
				beyond += read[c.Seq]
			}
		}
		if beyond > 1 { // the first one says that the bound is reached
			t.Errorf("until %+v: %d commits were read beyond the bound", until, beyond)
		}
		if f.Memory.Version != want.Version || f.Memory.Seq != want.Seq || f.Bytes != bytes {
			t.Errorf("until %+v: it ends at version %d of commit %d, %d bytes; in one pass at %d of %d, %d bytes", until, f.Memory.Version, f.Memory.Seq, f.Bytes, want.Version, want.Seq, bytes)
		}
		for _, slot := range want.All(AllKinds) {
			a, errA := Encode(slot.Doc)
			b, errB := Encode(f.Memory.Get(slot.Place))
			if errA != nil || errB != nil || string(a) != string(b) {
				t.Errorf("until %+v: %s is\n%s\nand in one pass\n%s", until, slot.Place.Key(), b, a)
			}
		}
	}
}
