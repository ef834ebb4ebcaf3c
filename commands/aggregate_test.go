package commands

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// All commands of a thread have the same aggregate, wherever the request names it.
func TestAggregate(t *testing.T) {
	const id = "T-0190a7c0-0000-7000-8000-000000000001"
	derived := events.DeriveThreadID("acme", "c-1")
	for _, c := range []struct{ name, command, body, want string }{
		{"first", "item.create", `{"threadId":"` + id + `","data":{}}`, "acme." + id},
		{"spaced, last, and in the data", "item.create", `{ "data": {"threadId": "T-other"}, "threadId" : "` + id + `" }`, "acme." + id},
		{"by key", "item.create", `{"threadId":"key:support/1","data":{}}`, "acme.key:support/1"},
		{"created with its id", "thread.create", `{"commandId":"c-1","threadId":"` + id + `"}`, "acme." + id},
		{"created by a command with an id", "thread.create", `{"commandId":"c-1","data":{}}`, "acme." + derived},
		{"created", "thread.create", `{"data":{}}`, ""},
		{"of the tenant", "definition.apply", `{"data":{}}`, "acme"},
		{"of no aggregate", "kv.set", `{"data":{}}`, ""},
		{"no thread", "item.create", `{"commandId":"c-1","data":{}}`, ""},
		{"no string", "item.create", `{"threadId":["` + id + `"]}`, ""},
		{"no object", "item.create", `["threadId","` + id + `"]`, ""},
		{"no JSON", "item.create", `{"threadId"`, ""},
		{"empty", "item.create", ``, ""},
		{"unknown", "item.conjure", `{"threadId":"` + id + `"}`, ""},
		{"beyond what is read", "item.create", `{"data":"` + strings.Repeat("x", aggregateWithin) + `","threadId":"` + id + `"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Aggregate("acme", c.command, []byte(c.body)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
