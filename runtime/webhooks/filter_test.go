package webhooks_test

import (
	"slices"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime/webhooks"
)

// A webhook is of what its types name, also where that is no entity of threads: keys, and the
// tenant's own definitions, whose data it has if it asks for it.
func TestHub_TypesOfKeysAndOfTheTenant(t *testing.T) {
	w := start(t)
	w.deliver(webhooks.Config{})
	v := receive(t, nil)
	w.define(w.c, "keys", v.URL, `,"types":["key.*"],"contents":true`)
	w.define(w.c, "definitions", v.URL, `,"types":["definition.*"],"contents":true`)
	w.define(w.c, "other", v.URL, `,"types":["file.*"]`)
	thread := w.thread(w.c, events.CreateThread{Key: "order:7"})
	has := func(all []delivery, hook string, typ events.Type) bool {
		return slices.ContainsFunc(all, func(d delivery) bool { return d.hook == hook && d.Type == string(typ) })
	}
	for _, d := range v.until(w, "the claim, and the definition", func(all []delivery) bool {
		return has(all, "keys", events.KeyClaimedType) && has(all, "definitions", events.DefinitionChangedType)
	}) {
		if len(d.Data) == 0 {
			t.Errorf("no data: %s", d.raw)
		}
	}
	if _, err := w.c.Send(w.ctx, thread, events.DeleteThread{}); err != nil {
		t.Fatal(err)
	}
	all := v.until(w, "the release", func(all []delivery) bool { return has(all, "keys", events.KeyReleasedType) })
	t.Logf("%+v", all)
	for _, typ := range []events.Type{events.KeyClaimedType, events.KeyReleasedType} {
		n := 0
		for _, d := range all {
			if d.hook == "keys" && d.Type == string(typ) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s was sent %d times", typ, n)
		}
	}
}
