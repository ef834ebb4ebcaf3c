package query

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/service"
)

// changing is a list of a thread that has pages.
type changing struct {
	query, list, id string
	fields          string                  // that the query has besides its thread
	add             func(thread string) any // adds one, and returns its id
	remove          func(thread, id string) // removes one; nil: they stay
}

// pageAfter asks for a page, and returns the ids that it has.
func (a *asker) pageAfter(l changing, thread, cursor string, most int) (ids []string, next string) {
	a.Helper()
	body := fmt.Sprintf(`{"threadId":%q,"limit":%d%s`, thread, most, l.fields)
	if cursor != "" {
		body += fmt.Sprintf(`,"cursor":%q`, cursor)
	}
	out, err := a.q.Handle(a.Context(), acme, l.query, []byte(body+"}"), service.Meta{})
	if err != nil {
		a.Fatal(err)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		a.Fatal(err)
	}
	var page map[string]any
	if err := json.Unmarshal(raw, &page); err != nil {
		a.Fatal(err)
	}
	for _, one := range page[l.list].([]any) {
		ids = append(ids, fmt.Sprint(one.(map[string]any)[l.id]))
	}
	next, _ = page["nextCursor"].(string)
	return ids, next
}

// Lists of a thread that can grow come in pages, which lose and repeat nothing if one that was shown
// is removed, and others are added, between two of them.
func TestLists_PagesWhileTheyChange(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{States: h.Dispatcher})
	n := 0
	number := func() int { n++; return n }
	for _, l := range []changing{
		{"context.list", "contexts", "id", "", func(id string) any {
			nextMillisecond()
			return h.Do("context.create", id, fmt.Sprintf(`{"key":"c%d"}`, number())).Result.ContextID
		}, nil},
		{"effect.list", "effects", "id", `,"name":"x"`, func(id string) any {
			return h.Do("effect.schedule", id, fmt.Sprintf(`{"name":"x","delayMs":%d}`, 3_600_000+1000*number())).Result.EffectID
		}, func(id, effect string) { h.Do("effect.cancel", id, fmt.Sprintf(`{"effectId":%q}`, effect)) }},
		{"relationship.list", "relationships", "threadId", `,"type":"mention"`, func(id string) any {
			other := h.Do("thread.create", "", `{}`).ThreadID
			h.Do("thread.mention", id, fmt.Sprintf(`{"mentionedId":%q}`, other))
			return other
		}, nil},
		{"share.list", "shares", "id", "", func(id string) any { return h.Do("thread.share", id, `{}`).Result.ShareID },
			func(id, share string) { h.Do("thread.unshare", id, fmt.Sprintf(`{"shareId":%q}`, share)) }},
		{"file.list", "entries", "name", `,"path":"/d"`, func(id string) any {
			name := fmt.Sprintf("n%03d", number())
			h.Do("directory.create", id, fmt.Sprintf(`{"path":"/d/%s"}`, name))
			return name
		}, func(id, name string) { h.Do("directory.remove", id, fmt.Sprintf(`{"path":"/d/%s"}`, name)) }},
		{"queue.list", "queued", "id", "", func(id string) any {
			return h.Do("tool.queue", id, `{"name":"find","arguments":{}}`).Result.QueuedID
		}, nil},
	} {
		t.Run(l.query, func(t *testing.T) {
			id := h.Do("thread.create", "", `{}`).ThreadID
			if l.query == "file.list" {
				h.Do("directory.create", id, `{"path":"/d"}`)
			}
			if l.query == "queue.list" { // a run, for which what is queued waits
				l.add(id)
			}
			h.AwaitRunner(r)
			want, _ := a.pageAfter(l, id, "", 1000) // a thread has a context from the beginning
			for range 5 {
				want = append(want, fmt.Sprint(l.add(id)))
			}
			h.AwaitRunner(r)
			var got []string
			for cursor, pages := "", 1; ; pages++ {
				ids, next := a.pageAfter(l, id, cursor, 2)
				if len(ids) > 2 || pages > 10 {
					t.Fatalf("page %d has %d", pages, len(ids))
				}
				got = append(got, ids...)
				if cursor = next; cursor == "" {
					break
				}
				if pages == 1 {
					if l.remove != nil {
						l.remove(id, ids[0])
					}
					want = append(want, fmt.Sprint(l.add(id)))
					h.AwaitRunner(r)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the pages have %v, and not %v", got, want)
			}
			_, next := a.pageAfter(l, id, "", 1)
			a.refused(events.InvalidRequest, "item.list", fmt.Sprintf(`{"threadId":%q,"cursor":%q}`, id, next))
			a.refused(events.InvalidRequest, l.query, fmt.Sprintf(`{"threadId":%q%s,"cursor":"x"}`, id, l.fields))
		})
	}
}
