package projections

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// author writes a random but legal history: what is refused is not in it.
type author struct {
	*house
	rnd     *rand.Rand
	threads []string
	items   map[string][]string
	execs   map[string][]string
	steps   map[string][]string
	n       int
}

func newAuthor(h *house, seed uint64) *author {
	return &author{
		house: h, rnd: rand.New(rand.NewPCG(seed, 1)), items: map[string][]string{}, execs: map[string][]string{}, steps: map[string][]string{},
	}
}

func pickOf[T any](a *author, list []T) (one T) {
	if len(list) > 0 {
		one = list[a.rnd.IntN(len(list))]
	}
	return one
}

// write does n random things.
func (a *author) write(n int) {
	a.Helper()
	for range n {
		a.n++
		if len(a.threads) == 0 || a.rnd.IntN(25) == 0 {
			a.threads = append(a.threads, a.do("thread.create", "", fmt.Sprintf(`{"key":"k-%d","title":"thread %d"}`, a.n, a.n)).ThreadID)
			continue
		}
		if a.rnd.IntN(12) == 0 {
			a.define()
			continue
		}
		a.step(pickOf(a, a.threads))
	}
}

// define changes some of the tenant's definitions, or removes some.
func (a *author) define() {
	a.Helper()
	name := func() string { return pickOf(a, []string{"a", "gpt-4.1", "x/y:z", "B_c"}) }
	data := fmt.Sprintf(`{"definitions":[{"kind":"model","name":%q,"definition":{"model":"v%d"}},{"kind":"prompt","name":%q,"definition":{"text":"v%d"}}]}`,
		name(), a.rnd.IntN(3), name(), a.rnd.IntN(3))
	if a.rnd.IntN(3) == 0 {
		data = fmt.Sprintf(`{"remove":[{"kind":"model","name":%q},{"kind":"prompt","name":%q}]}`, name(), name())
	}
	a.do("definition.apply", "", data)
}

func (a *author) step(thread string) {
	item, exec, step := pickOf(a, a.items[thread]), pickOf(a, a.execs[thread]), pickOf(a, a.steps[thread])
	var r *events.Reply
	var err error
	switch a.rnd.IntN(22) {
	case 0, 1, 2, 3, 4, 5:
		kind := pickOf(a, []string{
			`"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}],"metadata":{"a":1}`,
			`"type":"action_execute","content":{"callId":"c","name":"n","arguments":{}}`,
			`"type":"action_result","content":{"callId":"c","output":null}`,
		})
		r, err = a.try("item.create", thread, `{"item":{`+kind+`}}`)
	case 6:
		r, err = a.try("item.status", thread, `{"itemId":"`+item+`","to":"completed"}`)
	case 7:
		r, err = a.try("message.edit", thread, `{"itemId":"`+item+`","metadata":{"b":2},"silent":true}`)
	case 8, 9:
		r, err = a.try("message.delete", thread, `{"itemId":"`+item+`"}`)
	case 10, 11:
		r, err = a.try("execution.create", thread, `{"triggerItemId":"`+item+`"}`)
	case 12, 13:
		r, err = a.try("step.create", thread, `{"executionId":"`+exec+`"}`)
	case 14, 15:
		r, err = a.try("part.put", thread, fmt.Sprintf(`{"stepId":%q,"idx":%d,"type":"output_text","part":%d}`, step, a.rnd.IntN(4), a.n))
	case 16:
		r, err = a.try("step.status", thread, `{"stepId":"`+step+`","to":"completed"}`)
	case 17:
		r, err = a.try("execution.status", thread, `{"executionId":"`+exec+`","to":"failed","errorText":"no"}`)
	case 18:
		r, err = a.try("context.set", thread, fmt.Sprintf(`{"patch":{"k%d":%d}}`, a.rnd.IntN(3), a.n))
	case 19:
		r, err = a.try("thread.update", thread, fmt.Sprintf(`{"title":"t %d"}`, a.n))
	case 20:
		switch a.rnd.IntN(6) {
		case 0:
			r, err = a.try("thread.delete", thread, `{}`)
		case 1, 2:
			a.append(thread, events.Event{Type: events.HistoryTruncatedType, Data: events.HistoryTruncated{FromIndex: int64(a.rnd.IntN(20))}})
		default:
			a.append(thread, events.Event{Type: events.TraceRecordedType, Correlation: exec, Data: events.TraceRecorded{
				Kind: pickOf(a, []events.TraceKind{"log", "usage", "span"}), ExecutionID: exec, SpanID: pickOf(a, []string{"", "sp", step}),
				Text: "line", Data: []byte(`{"tokens":1}`),
			}})
		}
	case 21:
		id := func(kind string) string { return fmt.Sprintf("%s_r%d", kind, a.n) }
		r, err = a.try("thread.commit", thread, turn(id))
	}
	var refused *events.Error
	if err != nil && !errors.As(err, &refused) {
		a.Fatal(err)
	}
	if r == nil || r.Result == nil {
		return
	}
	for _, made := range append(r.Result.Results, *r.Result) {
		a.items[thread] = addTo(a.items[thread], made.ItemID)
		a.execs[thread] = addTo(a.execs[thread], made.ExecutionID)
		a.steps[thread] = addTo(a.steps[thread], made.StepID)
	}
}

// shortLived makes an item, lets something happen, and deletes it.
func (a *author) shortLived() {
	a.Helper()
	thread := a.do("thread.create", "", `{}`).ThreadID
	a.threads = append(a.threads, thread)
	item := a.do("item.create", thread, `{"item":{"type":"message","role":"user","content":[]}}`).Result.ItemID
	a.write(3)
	_, _ = a.try("message.delete", thread, `{"itemId":"`+item+`"}`)
}

// end deletes a thread, if it is still there.
func (a *author) end(thread string) {
	a.Helper()
	if _, err := a.try("thread.delete", thread, `{}`); err != nil && !errors.Is(err, &events.Error{Code: events.NotFound}) {
		a.Fatal(err)
	}
}

func addTo(list []string, id string) []string {
	if id == "" {
		return list
	}
	return append(list, id)
}

// append puts an event of a thread into the log that no command makes yet.
func (h *house) append(thread string, e events.Event) {
	h.Helper()
	last, err := h.log.Last(h.Context(), acme, thread)
	if err != nil || last == nil {
		h.Fatalf("%s: %v", thread, err)
	}
	if last.Events[len(last.Events)-1].Type == events.LifecycleDeletedType {
		return
	}
	e.Tenant, e.ThreadID, e.Version = acme, thread, last.Version+1
	e.Time = last.Events[len(last.Events)-1].Time + 1000
	e.ID = events.EventID(acme, thread, fmt.Sprint(last.Version), 0)
	if e.Subject == "" {
		e.Subject = thread
	}
	c, err := events.NewCommit(last.Chain, []events.Event{e})
	if err != nil {
		h.Fatal(err)
	}
	if err := h.log.Append(h.Context(), eventlog.Write{Commit: c, Expected: last.Seq}); err != nil {
		h.Fatal(err)
	}
}
