package main

import (
	"reflect"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// A required field is bold, a text that restates the name is omitted, fields in a row without a
// text are one item, what Skein sends has no limits, a time since the epoch has its unit as type,
// and what only earlier builds wrote, or the top of the page says, is omitted.
func TestPage_Fields(t *testing.T) {
	s, err := newShapes()
	if err != nil {
		t.Fatal(err)
	}
	fields := []schema.Description{
		{Name: "itemId", Type: "id", Required: true, Doc: "The item."},
		{Name: "findings[].kind", Type: "text ≤ 32", Doc: "Its kind."},
		{Name: "place", Type: "integer ≥ 0", Doc: "The place."},
		{Name: "userId", Type: "text", Doc: "Only those of this user."},
		{Name: "to", Type: "text", Doc: "The state to move to."},
		{Name: "threadId", Type: "id", Doc: "The thread it belongs to."},
		{Name: "result.itemId", Type: "id", Doc: "The item that was created."},
		{Name: "result.key", Type: "text", Doc: "The part that was put."},
		{Name: "runId", Type: "id", Doc: "The run that it is part of."},
		{Name: "size", Type: "integer 1-1024", Doc: "Its longer side."},
		{Name: "endedAt", Type: "time", Doc: "When it ended."},
		{Name: "inputTokens", Type: "integer ≥ 0", Doc: "How many input tokens there were."},
		{Name: "keys", Type: "list ≤ 9 of text", Doc: "Only these keys."},
		{Name: "side", Type: "one of a, b or null", Doc: "The first one."},
		{Name: "used", Type: "list of object", Holds: reflect.TypeFor[events.Usage](), Doc: "By model."},
		{Name: "kind", Type: "one of model, prompt, agent, tool, policy, context, skill, reactor, webhook", Doc: "What it is."},
		{Name: "writtenAt", Type: "integer ≥ 0", Doc: "When somebody wrote, in microseconds since the epoch."},
		{Name: "rights", Type: "object", Doc: "The rights of its sender; absent: the whole tenant."},
		{Name: "oldKey", Type: "text", Doc: "In older logs: the key."},
		{Name: "value", Type: "any JSON", Doc: "What is stored."},
	}
	for output, want := range map[bool]string{
		false: "- **`itemId`** (id), `findings[].kind` (≤ 32), `place` (integer), `userId`, `to`, `threadId` (id),\n  `result.itemId` (id)\n- `result.key`: The part that was put.\n- `runId` (id): The run that it is part of.\n- `size` (integer 1-1024): Its longer side.\n" +
			"- `endedAt` (time), `inputTokens` (integer)\n- `keys` (text[] ≤ 9): Only these keys.\n- `side` (a|b|null): The first one.\n- `used` ([Usage](queries.md#usage)[]): By model.\n- `kind` ([kind](definitions.md))\n- `writtenAt` (microseconds): When somebody wrote.\n- `rights` (object): The rights of its sender.\n- `value` (JSON): What is stored.\n\n",
		true: "- **`itemId`** (id), `findings[].kind`, `place` (integer), `userId`, `to`, `threadId` (id),\n  `result.itemId` (id)\n- `result.key`: The part that was put.\n- `runId` (id): The run that it is part of.\n- `size` (integer): Its longer side.\n" +
			"- `endedAt` (time), `inputTokens` (integer)\n- `keys` (text[]): Only these keys.\n- `side` (a|b|null): The first one.\n- `used` ([Usage](queries.md#usage)[]): By model.\n- `kind` ([kind](definitions.md))\n- `writtenAt` (microseconds): When somebody wrote.\n- `rights` (object): The rights of its sender.\n- `value` (JSON): What is stored.\n\n",
	} {
		p := &page{shapes: s, output: output}
		p.described(fields, nil)
		if got := p.String(); got != want {
			t.Errorf("output %t: got\n%s\nwant\n%s", output, got, want)
		}
	}
}

// A section names the fields that queries share, and prints one that means something else.
func TestSplitShared(t *testing.T) {
	for doc, c := range map[schema.Description]string{
		{Name: "threadId", Type: "threadRef", Required: true, Doc: "The thread."}:                                                   "**`threadId`**",
		{Name: "threadId", Type: "threadRef", Doc: "The thread; finds the item faster."}:                                            "`threadId`",
		{Name: "threadId", Type: "threadRef", Doc: "Only those of this thread."}:                                                    "",
		{Name: "at", Type: "object", Doc: "As it was then; needs threadId."}:                                                        "`at`",
		{Name: "at", Type: "time", Doc: "When."}:                                                                                    "",
		{Name: "cursor", Type: "text ≤ 6144", Doc: "nextCursor of the page before."}:                                                "`cursor`",
		{Name: "limit", Type: "integer 1-1000", Doc: "The largest number to return; 50 if absent."}:                                 "`limit` (50)",
		{Name: "limit", Type: "integer 1-10000", Doc: "The largest number to return; 10,000 if absent."}:                            "`limit` (1-10000; 10,000)",
		{Name: "limit", Type: "integer 1-1000", Doc: "The largest number to return; as many as one answer holds if absent."}:        "`limit`",
		{Name: "limit", Type: "integer 1-1000", Doc: "The largest number to return; 50 if absent. A page may have fewer, or none."}: "",
		{Name: "limit", Type: "integer ≥ 0", Doc: "The largest number to return; no limit if absent."}:                              "`limit` (≥ 0; no limit)",
		{Name: "name", Type: "name", Doc: "Its name."}:                                                                              "",
	} {
		rest, shared := splitShared([]schema.Description{doc})
		switch {
		case c == "" && (len(rest) != 1 || len(shared) != 0):
			t.Errorf("%v is shared: %v", doc, shared)
		case c != "" && (len(shared) != 1 || shared[0] != c):
			t.Errorf("%v: got %v, want %s", doc, shared, c)
		}
	}
}

// An example of few plain values, or lists of them, is omitted, and any other is shown.
func TestPage_Instructive(t *testing.T) {
	for want, value := range map[string]any{
		"": map[string]any{"itemId": "itm_1", "b": []string{"2"}},
		"```json\n{\"a\": \"1\", \"b\": \"2\", \"c\": \"3\"}\n```\n\n": map[string]string{"a": "1", "b": "2", "c": "3"},
		"```json\n{\"calls\": [{\"a\": 1}]}\n```\n\n":                  map[string][]map[string]int{"calls": {{"a": 1}}},
	} {
		p := &page{}
		if err := p.instructive(value, 2); err != nil || p.String() != want {
			t.Errorf("%v: %v, got %q", value, err, p.String())
		}
	}
}
