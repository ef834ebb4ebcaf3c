package commands

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// What a caller made up is refused whole, with a short answer.
func TestState_HostileMerges(t *testing.T) {
	w := newWorld(t, Config{})
	id := w.make()
	do := func(operations string) (*events.Reply, *events.Error) {
		return ask(t, w.d, "state.merge", `{"threadId":"`+id+`","data":{"operations":[`+operations+`]}}`)
	}
	if _, refusal := do(`{"op":"set","key":"a","value":1},{"op":"set","key":"__proto__","value":null}`); refusal != nil {
		t.Fatal(refusal)
	}
	for name, operations := range map[string]string{
		"none":                  ``,
		"too many":              strings.Repeat(`{"op":"clear"},`, 10_000) + `{"op":"clear"}`,
		"a repeated name":       `{"op":"set","key":"x","value":{"a":1,"a":2}}`,
		"a repeated field":      `{"op":"set","key":"x","key":"y","value":1}`,
		"a long key":            `{"op":"set","key":"` + strings.Repeat("k", 10_000) + `","value":1}`,
		"no key":                `{"op":"set","value":1}`,
		"an empty key":          `{"op":"delete","key":""}`,
		"no value":              `{"op":"push","key":"x"}`,
		"a value of a delete":   `{"op":"delete","key":"x","value":1}`,
		"a key of a clear":      `{"op":"clear","key":"x"}`,
		"max of a set":          `{"op":"set","key":"x","value":1,"max":3}`,
		"no window":             `{"op":"push","key":"x","value":1,"max":-1}`,
		"an unknown operation":  `{"op":"__proto__","key":"x","value":1}`,
		"an unknown field":      `{"op":"set","key":"x","value":1,"ttl":5}`,
		"a number that is none": `{"op":"set","key":"x","value":{"a":[-1e400]}}`,
		"deep nesting":          `{"op":"set","key":"x","value":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + `}`,
		"a push to a number":    `{"op":"set","key":"b","value":1},{"op":"push","key":"a","value":1}`,
		"half a surrogate":      `{"op":"set","key":"x","value":"\ud800"}`,
		"a bad listener":        `{"op":"clear"}],"listeners":["*.>"`,
		"userId of a thread":    `{"op":"clear"}],"userId":"ada","listeners":["x"`,
	} {
		_, refusal := do(operations)
		if refusal == nil || refusal.Code != events.InvalidRequest {
			t.Errorf("%s: %v", name, refusal)
		} else if len(refusal.Message) > 1024 {
			t.Errorf("%s: the refusal has %d bytes", name, len(refusal.Message))
		}
	}
	if _, refusal := do(`{"op":"set","key":"x","value":"` + strings.Repeat("x", events.MaxMergeBytes) + `"}`); refusal == nil || refusal.Code != events.PayloadTooLarge {
		t.Errorf("an event that is too large: %v", refusal)
	}
	v, err := w.d.Values(t.Context(), tenant, id, events.GetState{})
	if err != nil || string(v.Values) != `{"a":1,"__proto__":null}` || v.Life != 1 {
		t.Errorf("the state is %.1000s of life %d, %v", v.Values, v.Life, err)
	}
	if _, refusal := ask(t, w.d, "state.merge", `{"data":{"operations":[{"op":"clear"}],"create":true}}`); refusal == nil || refusal.Code != events.InvalidRequest {
		t.Errorf("a merge that names no thread: %v", refusal)
	}
	if _, refusal := ask(t, w.d, "state.merge", `{"threadId":"key:nobody","data":{"operations":[{"op":"clear"}],"create":true}}`); refusal == nil || refusal.Code != events.NotFound {
		t.Errorf("a merge by a key that no thread has: %v", refusal)
	}
}

// Another process sees at once what this one wrote, and both create a thread once.
func TestState_TwoProcesses(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	const id = "thrd_abc123def456789012345678901"
	for i, d := range []*Dispatcher{w.d, other, w.d, other} {
		if _, refusal := ask(t, d, "state.merge", `{"threadId":"`+id+`","data":{"create":true,"operations":[{"op":"push","key":"m","value":1}]}}`); refusal != nil {
			t.Fatal(refusal)
		}
		for _, reader := range []*Dispatcher{w.d, other} {
			v, err := reader.Values(t.Context(), tenant, id, events.GetState{})
			if want := `{"m":[` + strings.TrimSuffix(strings.Repeat("1,", i+1), ",") + `]}`; err != nil || string(v.Values) != want {
				t.Errorf("after merge %d a process shows %+v, %v", i, v, err)
			}
		}
	}
}
