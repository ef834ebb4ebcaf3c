package audit

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

func (h *house) witness(file string, o ReadOptions) []Finding {
	h.t.Helper()
	var found []Finding
	if _, _, err := Witness(h.ctx, h.log, h.validator, strings.NewReader(file), o, func(f Finding) { found = append(found, f) }); err != nil {
		h.t.Fatal(err)
	}
	return found
}

// A file that was kept elsewhere shows what the log alone cannot: that its end was cut off,
// that a whole thread is missing, or that a history was rewritten with correct chains.
func TestWitness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(h *house)
		want   string // of the finding about threadTwo; empty: all is right
	}{
		"nothing":               {func(*house) {}, ""},
		"it went on":            {func(h *house) { h.do("thread.update", `{"threadId":"`+threadTwo+`","data":{"title":"x"}}`) }, ""},
		"its end cut off":       {cut(func(l []*nats.Msg) []*nats.Msg { return l[:16] }), "its end was cut off"},
		"a thread gone":         {cut(func(l []*nats.Msg) []*nats.Msg { return l[:9] }), "it is not in the log"},
		"renumbered":            {cut(func(l []*nats.Msg) []*nats.Msg { return append(l[9:18:18], l[:9]...) }), ""},
		"its history rewritten": {func(h *house) { cut(func(l []*nats.Msg) []*nats.Msg { return l[:9] })(h); h.fill(threadTwo) }, "rewritten"},
		"purged as it says": {func(h *house) {
			h.do("thread.delete", `{"threadId":"`+threadTwo+`","data":{"purge":true}}`)
			h.await("the purge", func() bool { return len(h.chains(threadTwo)) == 1 })
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.fill(threadOne)
			h.fill(threadTwo)
			key := signer(t)
			kept := h.export(ExportOptions{Signer: key, Chains: true})
			whole := h.export(ExportOptions{Signer: key})
			if len(kept)*2 > len(whole) || strings.Contains(kept, "hello") {
				t.Errorf("the ends of threads take %d bytes, all of it %d", len(kept), len(whole))
			}
			c.change(h)
			for _, file := range []string{kept, whole} {
				found := h.witness(file, ReadOptions{Key: key.Public()})
				if c.want == "" && len(found) > 0 {
					t.Errorf("%v", found)
				}
				if c.want != "" && (len(found) != 1 || found[0].Kind != KindWitness || found[0].Thread != threadTwo || !strings.Contains(found[0].Detail, c.want)) {
					t.Errorf("%v", found)
				}
			}
			if found, _ := h.verify(Options{LogOnly: true}); len(found) > 0 {
				t.Errorf("the log alone: %v", found)
			}
		})
	}
}

// cut rewrites the log with no writer of Skein's at work.
func cut(change func([]*nats.Msg) []*nats.Msg) func(*house) {
	return func(h *house) {
		h.stopRelay()
		h.rewrite("SKEIN_LOG", change)
		h.dispatch = newDispatcher(h)
	}
}

// An import writes threads in any order, so that some may come to have the file's sequences and
// others not: nothing was altered.
func TestWitness_ImportedInAnotherOrder(t *testing.T) {
	t.Parallel()
	from, to := newHouse(t), newHouse(t)
	const three = "T-0190a000-0000-7000-8000-000000000003"
	for _, id := range []string{threadOne, threadTwo, three} {
		from.do("thread.create", `{"threadId":"`+id+`"}`)
	}
	from.do("thread.update", `{"threadId":"`+threadTwo+`","data":{"title":"two"}}`)
	from.do("thread.update", `{"threadId":"`+threadOne+`","data":{"title":"one"}}`)
	file := from.export(ExportOptions{})
	for _, id := range []string{threadOne, threadTwo, three} { // of the sequences 1 and 5, 2 and 4, and 3, only 1 and 4 stay
		if _, _, err := to.importFile(from.export(ExportOptions{Tenant: "acme", Threads: []string{id}}), ReadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if found := from.witness(file, ReadOptions{}); len(found) > 0 {
		t.Errorf("the log itself: %v", found)
	}
	if found := to.witness(file, ReadOptions{}); len(found) > 0 {
		t.Errorf("the log of the import: %v", found)
	}
}
