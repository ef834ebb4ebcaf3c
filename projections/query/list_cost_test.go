package query

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
)

// costly is a list of a thread, and how a thread gets more of what it shows.
type costly struct {
	list, id string // the field of its entries, and theirs of an id
	fields   string
	few      int    // entries of a short thread; a long one has five times as many
	bytes    uint64 // how many times as many bytes a page of a long one may take, in halves
	grow     func(h *house, from, to int) (thread string)
}

// growing returns the lists whose pages are measured, by their queries.
func growing(h *house) map[string]costly {
	one := func(fields string) func(string, func(int) string) func(*house, int, int) string { // adds by commands, many at once
		return func(command string, data func(n int) string) func(*house, int, int) string {
			id := ""
			return func(h *house, from, to int) string {
				if id == "" {
					id = h.Do("thread.create", "", fields).ThreadID
				}
				for part := range slices.Chunk(numbers(from, to), events.MaxCommands) {
					var all []string
					for _, n := range part {
						all = append(all, fmt.Sprintf(`{"command":%q,"data":%s}`, command, data(n)))
					}
					h.Do("thread.commit", id, `{"commands":[`+strings.Join(all, ",")+`]}`)
				}
				return id
			}
		}
	}
	by := one(`{}`)
	item := func(n int) string {
		return fmt.Sprintf(`{"item":{"id":"i%05d","type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}`, n)
	}
	chats := func(_ *house, _, to int) string { id, _ := h.chat(to); return id }
	mentioned := ""
	return map[string]costly{
		"item.list":      {"items", "id", "", 200, 3, by("item.create", item)},
		"message.list":   {"messages", "id", `,"order":"asc"`, 200, 3, by("item.create", item)},
		"context.list":   {"contexts", "id", "", 200, 3, by("context.create", func(n int) string { return fmt.Sprintf(`{"key":"c%05d"}`, n) })},
		"log.list":       {"logs", "id", `,"order":"asc","level":"warn"`, 200, 3, by("trace.record", func(n int) string { return fmt.Sprintf(`{"kind":"log","level":"warn","text":"line %d"}`, n) })},
		"effect.list":    {"effects", "id", "", 200, 10, by("effect.schedule", func(n int) string { return fmt.Sprintf(`{"name":"x","delayMs":%d}`, 3_600_000+n) })},
		"file.list":      {"entries", "name", `,"path":"/"`, 200, 3, by("directory.create", func(n int) string { return fmt.Sprintf(`{"path":"/d%05d"}`, n) })},
		"execution.list": {"executions", "id", "", 200, 3, chats},
		"relationship.list": {"relationships", "threadId", `,"role":"child"`, 80, 6, func(h *house, from, to int) string {
			if mentioned == "" {
				mentioned = h.Do("thread.create", "", `{}`).ThreadID
			}
			for range to - from {
				h.Do("thread.mention", h.Do("thread.create", "", `{}`).ThreadID, fmt.Sprintf(`{"mentionedId":%q}`, mentioned))
			}
			return mentioned
		}},
	}
}

// elsewhere says of the other lists why their pages are not measured here.
func elsewhere() map[string]string {
	return map[string]string{
		"thread.list":     "from memory: TestManyThreads",
		"run.list":        "TestExecutionList_PageOfALongThread",
		"approval.list":   "by threads and by the index, as run.list",
		"share.list":      fmt.Sprintf("a thread has at most %d shares", events.MaxShares),
		"step.list":       "all steps of a run, without pages",
		"part.list":       "all parts of a step, without pages",
		"queue.list":      "from the thread's state, which is bounded",
		"definition.list": "of the tenant, from memory",
		"kv.list":         "pages of package pairs",
		"push.list":       "of the thread, at most events.MaxPushesOfRun of each run that has not ended",
		"event.list":      "the thread's log, a batch of commits at a time",
		"history.list":    "the log in its order",
		"chunk.list":      "the stream in its order",
		"webhook.list":    "of the tenant, as many as it has definitions",
		"worker.list":     "those that answer now",
	}
}

func numbers(from, to int) (list []int) {
	for n := from; n < to; n++ {
		list = append(list, n)
	}
	return list
}

// A page of a list reads as much of a long thread as of a short one: it is counted in the messages
// and bytes that the server sends for it.
func TestLists_APageCostsItsPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	lists, others := growing(h), elsewhere()
	for _, q := range events.Queries() {
		_, measured := lists[q.Name]
		if _, other := others[q.Name]; strings.HasSuffix(q.Name, ".list") && measured == other {
			t.Errorf("%s is a list, and its pages are to be measured, or to be listed with the reason why not", q.Name)
		}
	}
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{Progress: r.Progress(), States: h.Dispatcher})
	const page = 10
	for query, l := range lists {
		t.Run(query, func(t *testing.T) {
			c := changing{query: query, list: l.list, id: l.id, fields: l.fields}
			var messages, bytes [2]uint64
			for i, n := range []int{l.few, 5 * l.few} {
				thread := l.grow(h, []int{0, l.few}[i], n)
				h.AwaitRunner(r)
				first, next := a.pageAfter(c, thread, "", page)
				if len(first) != page || next == "" && query != "log.list" {
					t.Fatalf("the first page has %v, then %q", first, next)
				}
				_, middle := a.pageAfter(c, thread, next, n/2)
				for _, cursor := range []string{"", middle} {
					m, b := a.costs(func() { a.pageAfter(c, thread, cursor, page) })
					messages[i], bytes[i] = max(messages[i], m), max(bytes[i], b)
				}
			}
			t.Logf("%d and %d messages, %d and %d bytes", messages[0], messages[1], bytes[0], bytes[1])
			if messages[1] > messages[0]+messages[0]/2 || 2*bytes[1] > l.bytes*bytes[0] {
				t.Errorf("a page of %d takes %d messages and %d bytes, and one of %d takes %d and %d", l.few, messages[0], bytes[0], 5*l.few, messages[1], bytes[1])
			}
		})
	}
}

// costs returns how many messages a query reads, and how many bytes: the least of some times, as
// others use the connection as well.
func (a *asker) costs(query func()) (messages, bytes uint64) {
	messages, bytes = math.MaxUint64, math.MaxUint64
	for range 5 {
		before := a.q.log.Conn().Stats()
		query()
		after := a.q.log.Conn().Stats()
		messages, bytes = min(messages, after.InMsgs-before.InMsgs), min(bytes, after.InBytes-before.InBytes)
	}
	return messages, bytes
}
