package query

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
)

// documentOf returns a thread's document, at least as it is after a reply.
func (a *asker) documentOf(r *events.Reply) *events.ThreadDocument {
	a.Helper()
	return ask[events.ThreadDocument](a, "thread.document", fmt.Sprintf(`{"threadId":%q,"minVersion":%d}`, r.ThreadID, r.Version))
}

// texts returns the first block of each message, in short.
func textsOf(messages []events.DocumentMessage) string {
	var all []string
	for _, m := range messages {
		one := string(m.Role)
		if m.MessageID != nil {
			one += fmt.Sprint(*m.MessageID)
		}
		for _, b := range m.Content {
			switch b.Type {
			case events.TextBlock:
				one += ":" + *b.Text
			case events.ToolUseBlock:
				one += ":" + b.Name + "?"
			case events.ToolResultBlock:
				one += ":" + b.ToolUseID + "!"
			}
		}
		all = append(all, one)
	}
	return strings.Join(all, " ")
}

func documentAsker(t *testing.T) *asker {
	h := newHouse(t)
	h.Run(projections.Config{})
	return h.asker(Config{States: h.Dispatcher})
}

// A new thread is exactly what Amp's createThread returns, and every change of it counts once.
func TestThreadDocument_CountsChanges(t *testing.T) { // AM-7 AM-9 AM-26
	a := documentAsker(t)
	for _, data := range []string{`{}`, `{"key":"k-1","context":{"a":1}}`} {
		r := a.Do("thread.create", "", data)
		doc := a.documentOf(r)
		got, err := json.Marshal(doc, json.Deterministic(true))
		if want := fmt.Sprintf(`{"v":0,"id":%q,"created":%d,"messages":[]}`, r.ThreadID, doc.Created); err != nil || string(got) != want || doc.Created == 0 {
			t.Errorf("a new thread is %s (%v), want %s", got, err, want)
		}
	}
	resolved := a.Do("thread.resolve", "", `{"key":"k-2"}`)
	if v := a.documentOf(resolved).V; v != 0 {
		t.Errorf("a resolved thread begins at v %d", v)
	}
	if v := a.documentOf(a.Do("thread.resolve", "", `{"key":"k-2"}`)).V; v != 0 {
		t.Errorf("after it was found by its key, it is at v %d", v)
	}
	id := resolved.ThreadID
	for n, c := range []struct{ name, data string }{
		{"thread.update", `{"title":"Order 42"}`},
		{"item.create", `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}}`},
		{"context.set", `{"patch":{"a":1}}`},
	} {
		if v := a.documentOf(a.Do(c.name, id, c.data)).V; v != int64(n+1) {
			t.Errorf("after %s v is %d, want %d", c.name, v, n+1)
		}
	}
	if v := a.documentOf(a.Do("trace.record", id, `{"kind":"log","level":"info","text":"x"}`)).V; v != 3 {
		t.Errorf("after a log line v is %d, want 3", v)
	}
	a.Do("thread.share", id, `{}`)
	if v := a.documentOf(a.Do("writer.claim", id, `{"holder":"ann"}`)).V; v != 3 {
		t.Errorf("after a share and a claim v is %d, want 3", v)
	}
	batch := a.Do("thread.commit", "", `{"commands":[{"command":"thread.create","data":{}},{"command":"thread.update","data":{"title":"x"}}]}`)
	if v := a.documentOf(batch).V; v != 1 {
		t.Errorf("a change in the commit that created the thread counts %d times", v)
	}
}

// The messages of a document are those that people see, each under its own number.
func TestThreadDocument_Messages(t *testing.T) { // AM-30 AM-31
	a := documentAsker(t)
	id := a.Do("thread.create", "", `{}`).ThreadID
	a.Do("message.add", id, `{"role":"system","content":"Be brief"}`)
	a.Do("message.add", id, `{"id":"q","role":"user","content":"Where?"}`)
	a.Do("message.add", id, `{"role":"assistant","content":"Soon","toolCalls":"[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"find\",\"arguments\":\"{}\"}}]"}`)
	a.Do("message.add", id, `{"role":"tool","toolCallId":"c1","content":"42"}`)
	a.Do("message.add", id, `{"role":"user","content":"hidden","silent":true}`)
	a.Do("message.add", id, `{"role":"assistant","content":"nested","depth":1}`)
	last := a.Do("message.add", id, `{"role":"user","content":"Thanks"}`)
	doc := a.documentOf(last)
	if got, want := textsOf(doc.Messages), "info0:Be brief user1:Where? assistant2:Soon:find? user:c1! user5:Thanks"; got != want {
		t.Errorf("the messages are\n%s, want\n%s", got, want)
	}
	if doc.NextMessageID != 6 {
		t.Errorf("the next number is %d, want 6", doc.NextMessageID)
	}
	last = a.Do("message.delete", id, `{"itemId":"q"}`)
	if got, want := textsOf(a.documentOf(last).Messages), "info0:Be brief assistant2:Soon:find? user:c1! user5:Thanks"; got != want {
		t.Errorf("after a deletion the messages are\n%s, want\n%s", got, want)
	}
	for from, want := range map[int]string{0: "info0:Be brief assistant2:Soon:find? user:c1! user5:Thanks", 2: "user:c1! user5:Thanks", 9: ""} {
		page := ask[events.ThreadDocument](a, "thread.document", fmt.Sprintf(`{"threadId":%q,"fromMessage":%d}`, id, from))
		if got := textsOf(page.Messages); got != want || page.NextMessageIndex != 0 {
			t.Errorf("from %d the messages are %s (next %d), want %s", from, got, page.NextMessageIndex, want)
		}
	}
	a.refused(events.NotFound, "thread.document", `{"threadId":"T-00000000-0000-4000-8000-000000000000"}`)
}

// What waits for the agent is in the document until it is a message, never in both and never in
// neither.
func TestThreadDocument_Queue(t *testing.T) { // AM-25 AM-82
	a := documentAsker(t)
	id := a.Do("thread.create", "", `{"agentId":"shout"}`).ThreadID
	react := func(text string) *events.Reply {
		return a.Do("thread.react", id, fmt.Sprintf(`{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, text))
	}
	first := react("one")
	second := react("two")
	a.Do("tool.queue", id, `{"name":"find","arguments":{}}`)
	doc := a.documentOf(react("three"))
	if got := textsOf(doc.Messages); got != "user0:one" {
		t.Errorf("the messages are %s", got)
	}
	var waiting []events.DocumentMessage
	for _, q := range doc.QueuedMessages {
		waiting = append(waiting, q.QueuedMessage)
	}
	if got := textsOf(waiting); got != "user1:two user2:three" || doc.QueuedMessages[0].ID != second.Result.QueuedID {
		t.Errorf("%s waits, as %+v", got, doc.QueuedMessages)
	}
	ended := a.Do("run.cancel", id, `{"executionId":"`+first.Result.ExecutionID+`"}`)
	doc = a.documentOf(ended)
	if len(doc.QueuedMessages) > 2 || strings.Count(textsOf(doc.Messages), "two")+len(doc.QueuedMessages) < 2 {
		t.Errorf("after the run: %s, and %d wait", textsOf(doc.Messages), len(doc.QueuedMessages))
	}
}

// A message keeps the number with which it waited, although others came in between.
func TestThreadDocument_NumbersOfQueuedMessages(t *testing.T) { // AM-83 AM-117
	a := documentAsker(t)
	id := a.Do("thread.create", "", `{"agentId":"shout"}`).ThreadID
	react := func(text, policy string) *events.Reply {
		return a.Do("thread.react", id, fmt.Sprintf(`{"text":%q,"policy":%q}`, text, policy))
	}
	first := react("zero", "enqueue")
	react("one", "enqueue")
	removed := react("two", "enqueue")
	react("three", "steer")
	a.Do("message.add", id, `{"role":"system","content":"four"}`)
	a.Do("queue.remove", id, fmt.Sprintf(`{"queuedId":%q}`, removed.Result.QueuedID))
	cancelled := a.Do("run.cancel", id, `{"executionId":"`+first.Result.ExecutionID+`"}`)
	if got, want := textsOf(a.documentOf(cancelled).Messages), "user0:zero user3:three info4:four assistant5 user1:one"; got != want {
		t.Errorf("the messages are %s, want %s", got, want)
	}
	last := a.Do("message.add", id, `{"role":"user","content":"five"}`)
	doc := a.documentOf(last)
	if got, want := textsOf(doc.Messages), "user0:zero user3:three info4:four assistant5 user1:one user6:five"; got != want || doc.NextMessageID != 7 {
		t.Errorf("the messages are %s, and the next number is %d; want %s, and 7", got, doc.NextMessageID, want)
	}
}

// Each field of a document is set by something that happens to threads. AM-7..AM-25, AM-90, AM-91
func TestThreadDocument_EveryField(t *testing.T) {
	t.Parallel()
	a := documentAsker(t)
	main := a.Do("thread.create", "", `{}`).ThreadID
	id := a.Do("thread.create", "", fmt.Sprintf(`{"agentId":"shout","mainThreadId":%q,"title":"T","env":{"initial":{"tags":["model:x"]}}}`, main)).ThreadID
	a.Do("thread.update", id, `{"draft":"d","autoSubmitDraft":true,"agentMode":"smart","maxTokens":9}`)
	a.Append(id, events.Event{Type: events.SkillActivatedType, Data: events.SkillActivated{Name: "refunds", Arguments: events.JSON(`{"a":1}`)}})
	a.Do("message.add", id, `{"role":"user","content":"Hi"}`)
	fork := a.Do("thread.fork", id, `{"messageIndex":0}`)
	a.Do("thread.react", id, `{"text":"one"}`)
	last := a.Do("thread.react", id, `{"text":"two"}`)
	child := a.Do("thread.update", fork.Result.ChildID, `{"archived":true}`)
	large := a.Do("thread.create", "", `{}`).ThreadID
	var end int64
	for range 12 {
		end = a.Do("message.add", large, fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("x", 400_000))).Seq
	}
	set := map[string]bool{}
	for _, doc := range []*events.ThreadDocument{
		a.documentOf(last), a.documentOf(child), ask[events.ThreadDocument](a, "thread.document", fmt.Sprintf(`{"threadId":%q,"fromMessage":0,"minSeq":%d}`, large, end)),
	} {
		v := reflect.ValueOf(*doc)
		for i := range v.NumField() {
			set[v.Type().Field(i).Name] = set[v.Type().Field(i).Name] || !v.Field(i).IsZero()
		}
	}
	for name, so := range set {
		if !so {
			t.Errorf("no document has %s", name)
		}
	}
	raw, err := json.Marshal(a.documentOf(last).ActivatedSkills)
	if want := `[{"name":"refunds","arguments":{"a":1}}]`; err != nil || string(raw) != want {
		t.Errorf("the active skills are %s (%v), want %s", raw, err, want)
	}
}

// A document that is too large for one answer is refused whole, and read in parts.
func TestThreadDocument_Parts(t *testing.T) {
	t.Parallel()
	a := documentAsker(t)
	id := a.Do("thread.create", "", `{}`).ThreadID
	text := strings.Repeat("x", 400_000)
	var last *events.Reply
	for range 12 {
		last = a.Do("message.add", id, fmt.Sprintf(`{"role":"user","content":%q}`, text))
	}
	e := a.refused(events.PayloadTooLarge, "thread.document", fmt.Sprintf(`{"threadId":%q,"minVersion":%d}`, id, last.Version))
	if !strings.Contains(e.Message, "fromMessage") {
		t.Errorf("the refusal does not say what to do: %s", e.Message)
	}
	next, numbers := int64(0), int64(0)
	for parts := 0; parts == 0 || next > 0; parts++ {
		doc := ask[events.ThreadDocument](a, "thread.document", fmt.Sprintf(`{"threadId":%q,"fromMessage":%d}`, id, next))
		if doc.V != 12 || parts > 11 || len(doc.Messages) == 0 {
			t.Fatalf("part %d is at v %d, with %d messages", parts, doc.V, len(doc.Messages))
		}
		for _, m := range doc.Messages {
			if *m.MessageID != numbers || *m.Content[0].Text != text {
				t.Errorf("message %d is %d", numbers, *m.MessageID)
			}
			numbers++
		}
		next = doc.NextMessageIndex
	}
	if numbers != 12 {
		t.Errorf("the parts have %d messages, want 12", numbers)
	}
}

// A document has the thread's relationships, and a summary those in which it is the child.
func TestThreadDocument_Relationships(t *testing.T) { // AM-19 AM-35 AM-39 AM-99
	a := documentAsker(t)
	one, two := a.Do("thread.create", "", `{}`).ThreadID, a.Do("thread.create", "", `{}`).ThreadID
	a.Do("message.add", one, `{"role":"user","content":"See the other"}`)
	made := a.Do("thread.mention", one, fmt.Sprintf(`{"mentionedId":%q,"comment":"the earlier order"}`, two))
	parent := a.documentOf(made)
	if n := len(parent.Relationships); n != 1 || parent.V != 2 {
		t.Fatalf("at v %d the parent has %d relationships", parent.V, n)
	}
	at := parent.Relationships[0].CreatedAt
	raw, err := json.Marshal(parent.Relationships, json.Deterministic(true))
	if want := fmt.Sprintf(`[{"threadID":%q,"type":"mention","role":"parent","messageIndex":0,"createdAt":%d,"comment":"the earlier order"}]`, two, at); err != nil || string(raw) != want || at == 0 {
		t.Errorf("the parent's relationships are %s (%v), want %s", raw, err, want)
	}
	list := ask[events.ThreadHistory](a, "thread.history", `{`+seqOf(made)+`}`)
	for _, s := range list.Threads {
		raw, err := json.Marshal(s.ParentRelationships, json.Deterministic(true))
		want := `[]`
		if s.ID == two {
			want = fmt.Sprintf(`[{"threadID":%q,"type":"mention","role":"child","messageIndex":0,"createdAt":%d,"comment":"the earlier order"}]`, one, s.ParentRelationships[0].CreatedAt)
		}
		if err != nil || string(raw) != want {
			t.Errorf("%s is the child of %s (%v), want %s", s.ID, raw, err, want)
		}
	}
	if got := ask[events.Thread](a, "thread.get", fmt.Sprintf(`{"threadId":%q}`, two)); got.Parents != nil {
		t.Errorf("thread.get shows %+v", got.Parents)
	}
}
