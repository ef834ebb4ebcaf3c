package commands

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/eventlog/pairs"
	"github.com/skein-threads/skein/events"
)

// Key-value pairs are of the tenant: they need no thread, make no event, and stand in no
// thread.commit; a submitted command is executed once, or its refusal recorded.
func TestPairs_CommandsOfTheTenant(t *testing.T) {
	w := newWorld(t, Config{})
	store := pairs.On(w.log.Streams(), pairs.Config{})
	w.d = w.another(Config{Pairs: store})
	before := w.lastSeq()
	value := func() string {
		e, err := store.Get(t.Context(), tenant, events.GetKV{Bucket: "b", Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		return string(e.Value)
	}
	set := func(id, value string) string {
		return `{"commandId":"` + id + `","data":{"bucket":"b","key":"k","value":` + value + `}}`
	}
	first := must(t, w.d, "kv.set", set("c-1", "1"))
	must(t, w.d, "kv.set", set("c-2", "null"))
	if again := must(t, w.d, "kv.set", set("c-1", "1")); again.Version != first.Version || value() != "null" {
		t.Errorf("the repeat is answered with %+v, and the value is %s", again, value())
	}
	large := `"` + strings.Repeat("x", events.MaxKVValue-2) + `"`
	must(t, w.d, "kv.set", set("c-3", large))
	refused(t, w.d, events.PayloadTooLarge, "kv.set", set("c-4", `"x`+large[1:]))
	if last := w.lastSeq(); last != before {
		t.Errorf("the log has %d commits more", last-before)
	}
	id := create(t, w.d)
	const data = `{"bucket":"b","key":"k","value":1}`
	refused(t, w.d, events.InvalidRequest, "kv.set", on(id, data))
	refused(t, w.d, events.InvalidRequest, "kv.set", `{"expectedVersion":1,"data":`+data+`}`)
	refused(t, w.d, events.InvalidRequest, "thread.commit", on(id, `{"commands":[{"command":"kv.set","data":`+data+`}]}`))
	refused(t, w.d, events.InvalidRequest, "kv.set", `{"data":{"bucket":"b","key":"","value":1}}`)
	refused(t, w.d, events.InvalidRequest, "kv.set", `{"data":{"bucket":"b","key":"k"}}`)
	refused(t, w.d, events.InvalidRequest, "kv.set", `{"data":{"bucket":"b","key":"k","value":1,"ttlSeconds":-1}}`)
	refused(t, w.d, events.InvalidRequest, "kv.delete", `{"data":{"bucket":"b"}}`)
}
