package arguments

import (
	"strings"
	"testing"
)

// Every pattern of a schema counts, wherever it stands, up to the limit and not beyond.
func TestBoundPatterns(t *testing.T) {
	type object = map[string]any
	size := func(tree any) int {
		t.Helper()
		n, err := BoundPatterns(tree)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	one := size(object{"pattern": "a{900}"})
	if one < 900 || size(object{"type": "string"}) != 0 || size(object{"pattern": "("}) != 0 || size("a{900}") != 0 {
		t.Fatalf("a pattern of 900 letters has %d instructions", one)
	}
	for name, tree := range map[string]any{
		"of a property":      object{"properties": object{"x": object{"pattern": "a{900}"}}},
		"of names":           object{"patternProperties": object{"a{900}": object{}}},
		"of the second":      object{"anyOf": []any{object{}, object{"pattern": "a{900}"}}},
		"of a list in lists": []any{[]any{1, "x"}, []any{nil, object{"pattern": "a{900}"}}},
		"after another word": object{"description": "d", "pattern": "a{900}"},
	} {
		if n := size(tree); n != one {
			t.Errorf("%s: %d instructions, want %d", name, n, one)
		}
	}
	if n := size(object{"patternProperties": object{"a{900}": object{"pattern": "b{900}"}, "c{900}": object{}}, "not": object{"pattern": "d{900}"}}); n != 4*one {
		t.Errorf("four patterns have %d instructions, want %d", n, 4*one)
	}
	var list []any
	rest := MaxPatterns
	for ; rest >= 2*one; rest -= one {
		list = append(list, object{"pattern": "a{900}"})
	}
	fill := strings.Repeat("a", rest-size(object{"pattern": "a"})+1)
	if n := size(append(list, object{"pattern": fill})); n != MaxPatterns {
		t.Fatalf("%d instructions, want %d", n, MaxPatterns)
	}
	if _, err := BoundPatterns(append(list, object{"pattern": fill + "a"})); err == nil || !strings.Contains(err.Error(), "100001 instructions, and 100000 are allowed") {
		t.Errorf("one more: %v", err)
	}
	large := strings.Repeat("a", 4097)
	for name, tree := range map[string]any{
		"alone": object{"pattern": large}, "of names": object{"patternProperties": object{large: object{}}}, "in a list": []any{object{}, object{"pattern": large}},
		"of a property": object{"a": object{}, "properties": object{"x": object{"pattern": large}}, "z": object{}},
	} {
		if n, err := BoundPatterns(tree); err == nil {
			t.Errorf("a large one %s is taken with %d", name, n)
		}
	}
}
