package readtest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// Author writes a random but legal history: what is refused is not in it.
type Author struct {
	*House
	Rand    *rand.Rand
	Threads []string
	items   map[string][]string
	execs   map[string][]string
	steps   map[string][]string
	n       int
}

// NewAuthor returns an author whose history depends on the seed alone.
func NewAuthor(h *House, seed uint64) *Author {
	return &Author{
		House: h, Rand: rand.New(rand.NewPCG(seed, 1)), items: map[string][]string{}, execs: map[string][]string{}, steps: map[string][]string{},
	}
}

func pickOf[T any](a *Author, list []T) (one T) {
	if len(list) > 0 {
		one = list[a.Rand.IntN(len(list))]
	}
	return one
}

// Write does n random things.
func (a *Author) Write(n int) {
	a.Helper()
	for range n {
		a.n++
		if len(a.Threads) == 0 || a.Rand.IntN(25) == 0 {
			a.Threads = append(a.Threads, a.Do("thread.create", "", fmt.Sprintf(`{"key":"k-%d","title":"thread %d"}`, a.n, a.n)).ThreadID)
			continue
		}
		if a.Rand.IntN(12) == 0 {
			a.define()
			continue
		}
		a.Step(pickOf(a, a.Threads))
	}
}

// define changes some of the tenant's definitions, or removes some.
func (a *Author) define() {
	a.Helper()
	name := func() string { return pickOf(a, []string{"a", "gpt-4.1", "x/y:z", "B_c"}) }
	data := fmt.Sprintf(`{"definitions":[{"kind":"model","name":%q,"definition":{"model":"v%d"}},{"kind":"prompt","name":%q,"definition":{"text":"v%d"}}]}`,
		name(), a.Rand.IntN(3), name(), a.Rand.IntN(3))
	if a.Rand.IntN(3) == 0 {
		data = fmt.Sprintf(`{"remove":[{"kind":"model","name":%q},{"kind":"prompt","name":%q}]}`, name(), name())
	}
	a.Do("definition.apply", "", data)
}

// Step does one random thing to a thread.
func (a *Author) Step(thread string) {
	item, exec, step := pickOf(a, a.items[thread]), pickOf(a, a.execs[thread]), pickOf(a, a.steps[thread])
	var r *events.Reply
	var err error
	switch a.Rand.IntN(32) {
	case 0, 1, 2, 3, 4, 5:
		kind := pickOf(a, []string{
			`"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}],"metadata":{"a":1}`,
			`"type":"action_execute","content":{"callId":"c","name":"n","arguments":{}}`,
			`"type":"action_result","content":{"callId":"c","output":null}`,
		})
		r, err = a.Try("item.create", thread, `{"item":{`+kind+`}}`)
	case 6:
		r, err = a.Try("item.status", thread, `{"itemId":"`+item+`","to":"completed"}`)
	case 7:
		r, err = a.Try("message.edit", thread, `{"itemId":"`+item+`","metadata":{"b":2},"silent":true}`)
	case 8, 9:
		r, err = a.Try("message.delete", thread, `{"itemId":"`+item+`"}`)
	case 10, 11:
		r, err = a.Try("execution.create", thread, `{"triggerItemId":"`+item+`"}`)
	case 12, 13:
		r, err = a.Try("step.create", thread, `{"executionId":"`+exec+`"}`)
	case 14, 15:
		r, err = a.Try("part.put", thread, fmt.Sprintf(`{"stepId":%q,"idx":%d,"type":"output_text","part":%d}`, step, a.Rand.IntN(4), a.n))
	case 16:
		r, err = a.Try("step.status", thread, `{"stepId":"`+step+`","to":"completed"}`)
	case 17:
		r, err = a.Try("execution.status", thread, `{"executionId":"`+exec+`","to":"failed","errorText":"no"}`)
	case 18:
		if a.n%2 == 0 {
			r, err = a.session(thread)
			break
		}
		r, err = a.Try("context.set", thread, fmt.Sprintf(`{"patch":{"k%d":%d}}`, a.Rand.IntN(3), a.n))
	case 19:
		if a.n%3 == 0 {
			r, err = a.Try("thread.share", thread, `{}`)
			break
		}
		r, err = a.Try("thread.update", thread, fmt.Sprintf(`{"title":"t %d"}`, a.n))
	case 20:
		switch a.Rand.IntN(6) {
		case 0:
			r, err = a.Try("thread.delete", thread, `{}`)
		case 1, 2:
			a.Append(thread, events.Event{Type: events.HistoryTruncatedType, Data: events.HistoryTruncated{FromIndex: int64(a.Rand.IntN(20))}})
		default:
			a.Append(thread, events.Event{Type: events.TraceRecordedType, Correlation: exec, Data: events.TraceRecorded{
				Kind: pickOf(a, []events.TraceKind{"log", "usage", "span"}), ExecutionID: exec, SpanID: pickOf(a, []string{"", "sp", step}),
				Text: "line", Data: []byte(`{"tokens":1}`),
			}})
		}
	case 21, 22:
		r, err = a.Try("thread.mention", thread, fmt.Sprintf(`{"mentionedId":%q}`, pickOf(a, a.Threads)))
	case 23:
		id := func(kind string) string { return fmt.Sprintf("%s_r%d", kind, a.n) }
		r, err = a.Try("thread.commit", thread, Turn(id))
	case 25:
		r, err = a.Try("thread.truncate", thread, fmt.Sprintf(`{"messageIndex":%d,"interrupt":true}`, a.Rand.IntN(12)))
	case 26:
		if r, err = a.Try("thread.fork", thread, fmt.Sprintf(`{"messageIndex":%d}`, a.Rand.IntN(12))); err == nil {
			a.Threads = append(a.Threads, r.Result.ChildID)
		}
	case 27:
		if r, err = a.Try("thread.handoff", thread, fmt.Sprintf(`{"summary":"s %d","comment":"c"}`, a.n)); err == nil {
			a.Threads = append(a.Threads, r.Result.ChildID)
		}
	case 28, 29:
		r, err = a.Try("state.merge", thread, fmt.Sprintf(`{"operations":[{"op":"set","key":"k%d","value":%d},{"op":"push","key":"l","value":%d,"max":3}],"listeners":[%s]}`,
			a.Rand.IntN(3), a.n, a.n, pickOf(a, []string{"", `"shop"`})))
	case 30:
		r, err = a.Try("state.destroy", thread, `{}`)
	case 31:
		r, err = a.Try("state.release", thread, fmt.Sprintf(`{"life":%d,"listener":"shop"}`, 1+a.Rand.IntN(3)))
	case 24:
		if r, err = a.Try("writer.claim", thread, `{"holder":"author","ttlMs":300000}`); err == nil {
			r, err = a.Try("writer.release", thread, fmt.Sprintf(`{"token":%q}`, r.Result.Token))
		}
	}
	var refused *events.Error
	if err != nil && !errors.As(err, &refused) {
		a.Fatal(err)
	}
	if r == nil {
		return
	}
	for _, made := range r.Results() {
		a.items[thread] = addTo(a.items[thread], made.ItemID)
		a.execs[thread] = addTo(a.execs[thread], made.ExecutionID)
		a.steps[thread] = addTo(a.steps[thread], made.StepID)
	}
}

// session starts a session of a thread, completes one, or changes the thread's state in one.
func (a *Author) session(thread string) (*events.Reply, error) {
	a.Helper()
	id := fmt.Sprintf("sess_%x", a.Rand.IntN(4)+a.n/50*4)
	switch a.Rand.IntN(3) {
	case 0:
		return a.Try("session.start", thread, fmt.Sprintf(`{"sessionId":%q}`, id))
	case 1:
		return a.Try("session.complete", thread, fmt.Sprintf(`{"sessionId":%q,"errorText":%q}`, id, pickOf(a, []string{"", "no"})))
	}
	return a.Try("state.merge", thread, fmt.Sprintf(`{"operations":[{"op":"push","key":"k","value":%d,"max":5}],"session":{"id":%q,"completed":%v}}`,
		a.n, id, a.Rand.IntN(2) == 0))
}

// ShortLived creates an item, lets something happen, and deletes it.
func (a *Author) ShortLived() {
	a.Helper()
	thread := a.Do("thread.create", "", `{}`).ThreadID
	a.Threads = append(a.Threads, thread)
	item := a.Do("item.create", thread, `{"item":{"type":"message","role":"user","content":[]}}`).Result.ItemID
	a.Write(3)
	_, _ = a.Try("message.delete", thread, `{"itemId":"`+item+`"}`)
}

// End deletes a thread, if it is still there.
func (a *Author) End(thread string) {
	a.Helper()
	if _, err := a.Try("thread.delete", thread, `{}`); err != nil && !events.IsNotFound(err) {
		a.Fatal(err)
	}
}

func addTo(list []string, id string) []string {
	if id == "" {
		return list
	}
	return append(list, id)
}

// Append puts an event of a thread into the log that no command makes yet.
func (h *House) Append(thread string, e events.Event) {
	h.Helper()
	last, err := h.EventLog.Last(h.Context(), Acme, thread)
	if err != nil || last == nil {
		h.Fatalf("%s: %v", thread, err)
	}
	if last.Events[len(last.Events)-1].Type == events.LifecycleDeletedType {
		return
	}
	e.Tenant, e.ThreadID, e.Version = Acme, thread, last.Version+1
	e.Time = last.Events[len(last.Events)-1].Time + 1000
	e.ID = events.EventID(Acme, thread, fmt.Sprint(last.Version), 0)
	if e.Subject == "" {
		e.Subject = thread
	}
	c, err := events.NewCommit(last.Chain, []events.Event{e})
	if err != nil {
		h.Fatal(err)
	}
	if err := h.EventLog.Append(h.Context(), eventlog.Write{Commit: c, Expected: last.Seq}); err != nil {
		h.Fatal(err)
	}
}
