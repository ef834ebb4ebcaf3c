// Package change compares two versions of a JSON Schema of the contract, and says what
// the difference means to those who keep to it. [Compare] does that, and [Bare] takes a
// schema's words out of it, so that the contract is recorded without them.
//
// Compare understands the keywords that this project's schemas use. Whatever it does not
// understand is a major change when it differs. What may enter is what decides on the
// version of the contract; reading and writing files is for dev/generate.
package change

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Level is the effect of a change of the contract on its users.
type Level uint8

// The levels, in increasing order.
const (
	Same  Level = iota
	Patch       // other text, same meaning
	Minor       // an addition
	Major       // anything else
)

func (l Level) String() string { return [...]string{"same", "patch", "minor", "major"}[l] }

// Side says who writes the documents of a schema.
type Side uint8

// The sides.
const (
	Asked    Side = iota + 1 // callers: commands, queries, definitions, the request
	Answered                 // Skein: events, documents, the reply
)

// maxDepth is how deep schemas may lie in one another to be compared.
const maxDepth = 64

// Compare returns how far a schema changed, and what changed: for each change its JSON
// pointer, what it was and its level.
//
// What callers may send may grow: that is minor. What Skein sends may get more optional properties and
// enum values: readers ignore those that they do not know. Every other change is major, including those
// that Compare does not understand.
func Compare(side Side, before, after []byte) (Level, []string) {
	c := comparison{side: side, seen: map[[2]string]bool{}}
	one, err1 := decode(before)
	two, err2 := decode(after)
	if err1 != nil || err2 != nil {
		c.add(Major, "", "not JSON")
		return c.level, c.reasons
	}
	c.before, c.after = definitions(one), definitions(two)
	c.changed = !reflect.DeepEqual(bare("", one, nil), bare("", two, nil))
	c.schema("", one, two)
	if c.level == Same && !reflect.DeepEqual(one, two) {
		c.add(Patch, "", "the order of a list, or the name of a definition")
	}
	return c.level, c.reasons
}

// change is one comparison.
type comparison struct {
	side          Side
	before, after map[string]any     // the definitions
	changed       bool               // more than text changed
	seen          map[[2]string]bool // pairs of definitions that are being or were compared
	depth         int
	level         Level
	reasons       []string
}

func (c *comparison) add(level Level, at jsontext.Pointer, format string, args ...any) {
	c.level = max(c.level, level)
	c.reasons = append(c.reasons, fmt.Sprintf("%s: %s (%s)", at, fmt.Sprintf(format, args...), level))
}

// wider records a change that makes more documents valid.
func (c *comparison) wider(at jsontext.Pointer, format string, args ...any) {
	level := Major
	if c.side == Asked {
		level = Minor
	}
	c.add(level, at, format, args...)
}

// schema compares two schemas at one place.
func (c *comparison) schema(at jsontext.Pointer, before, after any) {
	if c.depth++; c.depth > maxDepth {
		c.add(Major, at, "too deep to compare")
		return
	}
	defer func() { c.depth-- }()
	name1, ref1 := reference(before, c.before)
	name2, ref2 := reference(after, c.after)
	if ref1 || ref2 {
		if ref1 && ref2 {
			c.words(at, before, after)
			pair := [2]string{name1, name2}
			if c.seen[pair] {
				return
			}
			c.seen[pair] = true
		}
		if ref1 {
			before = c.before[name1]
		}
		if ref2 {
			at, after = jsontext.Pointer("/$defs").AppendToken(name2), c.after[name2]
		}
		c.schema(at, before, after)
		return
	}
	o, ok1 := understood(before, at == "")
	n, ok2 := understood(after, at == "")
	if !ok1 || !ok2 {
		c.opaque(at, "", before, after)
		return
	}
	if c.side == Asked && o["anyOf"] == nil && n["anyOf"] != nil && c.oneFits(at, before, n) {
		c.add(Minor, at.AppendToken("anyOf"), "may be something else too")
		return
	}
	for _, key := range union(o, n) {
		c.keyword(at, key, o, n)
	}
}

// words compares the annotations next to references.
func (c *comparison) words(at jsontext.Pointer, before, after any) {
	o, n := before.(map[string]any), after.(map[string]any)
	for _, key := range union(o, n) {
		if annotation(key) && !reflect.DeepEqual(o[key], n[key]) {
			c.add(Patch, at.AppendToken(key), "other words")
		}
	}
}

// oneFits reports whether a schema that only has anyOf has a branch that accepts everything
// that was accepted before.
func (c *comparison) oneFits(at jsontext.Pointer, before any, after map[string]any) bool {
	for key := range after {
		if key != "anyOf" && !annotation(key) {
			return false
		}
	}
	return slices.ContainsFunc(elements(after["anyOf"]), func(branch any) bool {
		try := *c
		try.seen, try.level, try.reasons = maps.Clone(c.seen), Same, nil
		try.schema(at.AppendToken("anyOf"), before, branch)
		return try.level < Major
	})
}

// keyword compares one keyword of two schemas that Compare understands.
func (c *comparison) keyword(at jsontext.Pointer, key string, o, n map[string]any) {
	before, after := o[key], n[key]
	in := at.AppendToken(key)
	switch key {
	case "$defs": // compared where they are used
	case "properties":
		c.properties(in, o, n)
	case "items":
		c.schema(in, orAny(before), orAny(after))
	case "anyOf":
		c.anyOf(in, before, after)
	case "allOf":
		c.allOf(in, before, after)
	case "enum", "required", "type":
		c.set(in, key, before, after)
	case "additionalProperties":
		if one, two := before == nil || before == true, after == nil || after == true; before == false && two {
			c.wider(in, "unknown properties are taken")
		} else if !(one && two) {
			c.opaque(in, key, before, after)
		}
	case "minimum", "minLength", "minItems", "maximum", "maxLength", "maxItems", "pattern":
		switch {
		case reflect.DeepEqual(before, after):
		case loosened(key, before, after):
			c.wider(in, "was %s, now %s", short(before), short(after))
		default:
			c.add(Major, in, "was %s, now %s", short(before), short(after))
		}
	default:
		c.opaque(in, key, before, after)
	}
}

func (c *comparison) properties(at jsontext.Pointer, o, n map[string]any) {
	before, ok1 := o["properties"].(map[string]any)
	after, ok2 := n["properties"].(map[string]any)
	if !ok1 && o["properties"] != nil || !ok2 && n["properties"] != nil {
		c.opaque(at, "", o["properties"], n["properties"])
		return
	}
	closed := o["additionalProperties"] == false
	open := o["additionalProperties"] == nil || o["additionalProperties"] == true
	for _, name := range union(before, after) {
		in := at.AppendToken(name)
		one, was := before[name]
		two, is := after[name]
		switch {
		case was && is:
			c.schema(in, one, two)
		case was:
			c.add(Major, in, "removed")
		case c.side == Asked && closed, c.side == Answered && open:
			c.add(Minor, in, "new")
		default: // any value was valid under that name, or none
			c.add(Major, in, "new")
		}
	}
}

// anyOf compares branch by branch.
func (c *comparison) anyOf(at jsontext.Pointer, before, after any) {
	one, two := elements(before), elements(after)
	if one == nil || len(two) < len(one) {
		c.opaque(at, "anyOf", before, after)
		return
	}
	for i := range one {
		c.schema(at.AppendToken(strconv.Itoa(i)), one[i], two[i])
	}
	if len(two) > len(one) {
		c.wider(at, "may be something else too")
	}
}

// allOf compares condition by condition: all of them apply to every document.
func (c *comparison) allOf(at jsontext.Pointer, before, after any) {
	one, two := elements(before), elements(after)
	if one == nil || len(two) != len(one) || reflect.DeepEqual(bare("allOf", before, nil), bare("allOf", after, nil)) {
		c.opaque(at, "allOf", before, after)
		return
	}
	for i := range one {
		c.schema(at.AppendToken(strconv.Itoa(i)), one[i], two[i])
	}
}

// set compares lists in which the order is irrelevant.
func (c *comparison) set(at jsontext.Pointer, key string, before, after any) {
	one, two := elements(before), elements(after)
	if reflect.DeepEqual(before, after) {
		return
	}
	if key != "required" && before != nil && after == nil {
		c.wider(at, "no more")
		return
	}
	if one == nil && (before != nil || key != "required") || two == nil && after != nil {
		c.add(Major, at, "was %s, now %s", short(before), short(after))
		return
	}
	for _, v := range without(one, two) {
		if key == "required" {
			c.wider(at, "%s is no more", short(v))
		} else if key != "type" || v != "integer" || !slices.Contains(two, "number") {
			c.add(Major, at, "%s is no more", short(v))
		}
	}
	for _, v := range without(two, one) {
		like := func(other any) bool { return reflect.TypeOf(other) == reflect.TypeOf(v) }
		switch {
		case key == "required":
			c.add(Major, at, "%s is new", short(v))
		case key == "enum" && slices.ContainsFunc(one, like):
			c.add(Minor, at, "%s is new", short(v))
		default:
			c.wider(at, "%s is new", short(v))
		}
	}
}

// opaque compares values that are only equal or not. A reference in them may refer to
// something that changed.
func (c *comparison) opaque(at jsontext.Pointer, key string, before, after any) {
	one, two := bare(key, before, nil), bare(key, after, nil)
	switch {
	case !annotation(key) && !reflect.DeepEqual(one, two), c.changed && refers(one):
		c.add(Major, at, "changed")
	case !reflect.DeepEqual(before, after):
		c.add(Patch, at, "other words")
	}
}
