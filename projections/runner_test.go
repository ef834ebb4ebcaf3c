package projections

import "testing"

func TestLiveIsWhatTheLogSays(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	a := h.Do("thread.create", "", `{"key":"a","title":"A"}`).ThreadID
	b := h.Do("thread.create", "", `{}`).ThreadID
	for n := range 5 {
		h.React(a, n)
		h.React(b, n)
	}
	h.await(r)
	h.Same(a, b)
	first := h.Do("item.create", a, `{"item":{"type":"message","role":"user","content":[]}}`).Result.ItemID
	h.Do("message.delete", a, `{"itemId":"`+first+`"}`)
	h.Do("thread.delete", b, `{}`)
	h.await(r)
	h.Same(a, b)
}
