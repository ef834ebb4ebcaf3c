package schema

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/internal/change"

	stdjson "encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/skein-threads/skein/events"
)

// EK-182, EK-183: what callers sent before a change that is not major is still
// taken. Schemas are changed at random, and documents made up for them.
func TestNoMinorChangeRefusesWhatWasTaken(t *testing.T) {
	v := newValidator(t)
	levels := map[change.Level]int{}
	broken := 0 // major changes that a document shows to be major
	for seed := range max(100, rounds(300)) {
		g := newInventor(seed, 0.05)
		c := pick(g, events.Commands())
		path, sh := commandPath(c.Name), v.commands[c.Name].shape
		if g.often(0.4) {
			q := pick(g, events.Queries())
			path, sh = queryPath(q.Name), v.queries[q.Name].shape
		}
		body, err := files.ReadFile("files/" + path)
		if err != nil {
			t.Fatal(err)
		}
		var whole any
		numbers := stdjson.NewDecoder(bytes.NewReader(body))
		numbers.UseNumber()
		if err := numbers.Decode(&whole); err != nil {
			t.Fatal(err)
		}
		for range 1 + g.IntN(2) {
			alter(g, whole)
		}
		other, err := stdjson.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		one, err1 := jsonschema.CompileString("before.json", string(body))
		two, err2 := jsonschema.CompileString("after.json", string(other))
		if err1 != nil || err2 != nil {
			continue // no schema any more
		}
		forth, why := change.Compare(change.Asked, body, other)
		back, whyBack := change.Compare(change.Asked, other, body)
		levels[forth]++
		shown := false
		for range 20 {
			raw := g.document(sh)
			instance, err := parse([]byte(raw))
			if err != nil {
				continue
			}
			was, is := one.Validate(instance) == nil, two.Validate(instance) == nil
			shown = shown || was && !is
			if was && !is && forth < change.Major || is && !was && back < change.Major {
				t.Errorf("%s, seed %d: %s %q, back %s %q: %t, then %t: %s\n%s", path, seed, forth, why, back, whyBack, was, is, raw, other)
				return
			}
		}
		if shown {
			broken++
		}
	}
	if levels[change.Minor] < 10 || levels[change.Major] < 10 || broken < 10 {
		t.Errorf("too few changes tell something: %v, %d broken", levels, broken)
	}
}

// alter changes something of a schema.
func alter(g inventor, value any) {
	switch v := value.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 {
			return
		}
		key := pick(g, keys)
		if strings.HasPrefix(key, "$") && key != "$defs" {
			return
		}
		if deep := v[key]; g.often(0.85) && (key != "required" || g.often(0.5)) {
			switch inner := deep.(type) {
			case map[string]any:
				alter(g, inner)
				return
			case []any:
				if n := len(inner); n > 1 && g.often(0.5) {
					at := g.IntN(n)
					v[key] = slices.Delete(slices.Clone(inner), at, at+1)
				} else if n > 0 {
					alter(g, pick(g, inner))
				}
				return
			case stdjson.Number:
				v[key] = stdjson.Number(pick(g, []string{"0", "1", "2", "64", "256", "100000"}))
				return
			case string:
				if key == "type" {
					v[key] = pick(g, []any{"string", "integer", "number", "object", []any{deep, "null"}, []any{"string", "integer"}})
				}
				return
			case bool:
				v[key] = !inner
				return
			}
		}
		switch g.IntN(3) {
		case 0:
			delete(v, key)
		case 1:
			v["anyOf"] = []any{maps.Clone(v), map[string]any{"type": "null"}}
		default:
			v[pick(g, []string{"maxLength", "minimum", "minLength"})] = stdjson.Number("2")
		}
	}
}
