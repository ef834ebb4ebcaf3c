package schema

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// ekResource is a document in EK 4: each field with a valid value. The fields that Skein
// requires in addition are in more.
type ekResource struct {
	name                         string
	required, nullable, optional map[string]string
	more                         map[string]string
}

func ekResources() []ekResource {
	const (
		when   = `"2026-02-20T10:00:00.000Z"`
		thread = `"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162"`
	)
	stamp := map[string]string{"version": "1", "seq": "1"}
	linked := map[string]string{"version": "1", "seq": "1", "threadId": thread}
	return []ekResource{
		{ // EK-15..EK-20
			name:     "thread",
			required: map[string]string{"id": thread, "status": `"streaming"`, "createdAt": when},
			nullable: map[string]string{"key": `"support/42"`},
			optional: map[string]string{"updatedAt": when},
			more:     stamp,
		},
		{ // EK-21..EK-28
			name:     "context",
			required: map[string]string{"id": `"ctx_1"`, "threadId": thread, "status": `"closed"`, "createdAt": when},
			nullable: map[string]string{"key": `"cart"`, "content": `{"a":[1]}`},
			optional: map[string]string{"updatedAt": when},
			more:     stamp,
		},
		{ // EK-33..EK-38, EK-161
			name:     "item",
			required: map[string]string{"id": `"itm_1"`, "type": `"action_result"`, "createdAt": when, "threadId": thread, "contextId": `"ctx_1"`},
			optional: map[string]string{"status": `"stored"`, "channel": `"email"`},
			more:     map[string]string{"version": "1", "seq": "1", "index": "0"},
		},
		{ // EK-51..EK-60, EK-162
			name:     "execution",
			required: map[string]string{"id": `"exe_1"`, "threadId": thread, "contextId": `"ctx_1"`, "triggerItemId": `"itm_u1"`, "reactionItemId": `"itm_a1"`, "status": `"failed"`, "createdAt": when},
			optional: map[string]string{"workflowRunId": `"wf 1"`, "updatedAt": when},
			more:     stamp,
		},
		{ // EK-61..EK-72, EK-163
			name:     "step",
			required: map[string]string{"id": `"stp_1"`, "executionId": `"exe_1"`, "iteration": "0", "status": `"running"`, "eventId": `"itm_a1"`, "createdAt": when},
			optional: map[string]string{"continueLoop": "false", "errorText": `"no"`, "updatedAt": when},
			more:     linked,
		},
		{ // EK-73..EK-78, EK-164
			name:     "part",
			required: map[string]string{"key": `"stp_1:0"`, "stepId": `"stp_1"`, "idx": "0"},
			optional: map[string]string{"type": `"output_text"`, "updatedAt": when},
			more:     linked,
		},
	}
}

// EK-15..EK-28, EK-33..EK-37, EK-51..EK-66, EK-69..EK-76, EK-78: the names of
// the fields, which of them are required, and which of those may be null. A
// field that is optional may be absent, and is never null.
func TestResourceFields(t *testing.T) {
	v := newValidator(t)
	for _, r := range ekResources() {
		takes := func(document map[string]events.JSON, want bool, why string) {
			t.Helper()
			b, err := json.Marshal(document, json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Resource(r.name, b); (err == nil) != want {
				t.Errorf("%s %s: %v", r.name, why, err)
			}
		}
		with := func(name, value string, optional bool) map[string]events.JSON {
			document := map[string]events.JSON{}
			parts := []map[string]string{r.required, r.nullable, r.more}
			if optional {
				parts = append(parts, r.optional)
			}
			for _, part := range parts {
				for k, v := range part {
					document[k] = events.JSON(v)
				}
			}
			delete(document, name)
			if value != "" {
				document[name] = events.JSON(value)
			}
			return document
		}
		takes(with("", "", true), true, "with all fields")
		takes(with("", "", false), true, "without the optional fields")
		for name := range r.required {
			takes(with(name, "", true), false, "without "+name)
			takes(with(name, "null", true), false, "with null for "+name)
			takes(with(name, "[]", true), false, "with a list for "+name)
		}
		for name := range r.nullable {
			takes(with(name, "", true), false, "without "+name)
			takes(with(name, "null", true), true, "with null for "+name)
		}
		for name := range r.optional {
			takes(with(name, "null", true), false, "with null for "+name)
			takes(with(name, "[]", true), false, "with a list for "+name)
		}
	}
}

// EK-15, EK-21, EK-36, EK-51, EK-61: the states are those of EK and no others.
func TestResourceStates(t *testing.T) {
	v := newValidator(t)
	states := map[string][]string{
		"thread":    {"open", "streaming", "closed", "failed"},
		"context":   {"open", "streaming", "closed"},
		"item":      {"stored", "pending", "completed"},
		"execution": {"executing", "completed", "failed"},
		"step":      {"running", "completed", "failed"},
	}
	every := map[string]bool{"": true, "OPEN": true, "cancelled": true}
	for _, list := range states {
		for _, s := range list {
			every[s] = true
		}
	}
	for _, r := range ekResources() {
		own := map[string]bool{}
		for _, s := range states[r.name] {
			own[s] = true
		}
		if len(own) == 0 {
			continue
		}
		document := map[string]events.JSON{}
		for _, part := range []map[string]string{r.required, r.nullable, r.more} {
			for k, v := range part {
				document[k] = events.JSON(v)
			}
		}
		for s := range every {
			document["status"] = events.JSON(quote(s))
			b, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Resource(r.name, b); (err == nil) != own[s] {
				t.Errorf("%s %q: %v", r.name, s, err)
			}
		}
	}
}
