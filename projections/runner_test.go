package projections

import "testing"

func TestLiveIsWhatTheLogSays(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	a := h.do("thread.create", "", `{"key":"a","title":"A"}`).ThreadID
	b := h.do("thread.create", "", `{}`).ThreadID
	for n := range 5 {
		h.react(a, n)
		h.react(b, n)
	}
	h.await(r)
	h.same(a, b)
	first := h.do("item.create", a, `{"item":{"type":"message","role":"user","content":[]}}`).Result.ItemID
	h.do("message.delete", a, `{"itemId":"`+first+`"}`)
	h.do("thread.delete", b, `{}`)
	h.await(r)
	h.same(a, b)
}
